"""Why a published number and a measured one differ: protocol variants, tried from stored outputs where they can be."""

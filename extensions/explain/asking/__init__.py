"""Models asked their questions again in other ways, and judges about the answers, on some of the samples."""

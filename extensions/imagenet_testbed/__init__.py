"""Names and files of ImageNet-testbed: reading and writing of its table of results."""

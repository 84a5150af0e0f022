"""Names and files of ImageNet-testbed: its table of results, written and read."""

"""Published values: their sources, reading of their files, and comparisons."""

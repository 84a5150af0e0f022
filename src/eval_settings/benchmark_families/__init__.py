"""Settings of published benchmarks: their common parts, and their names."""

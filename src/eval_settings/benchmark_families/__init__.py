"""Settings of published benchmarks: what they have in common, and their names."""

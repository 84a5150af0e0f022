"""CLIP-CC-Bench's result files and published results."""

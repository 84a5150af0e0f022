"""CLIP benchmark's result files, read and written."""

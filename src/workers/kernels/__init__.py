"""Kernels, each of which computes shards of one kind of input."""

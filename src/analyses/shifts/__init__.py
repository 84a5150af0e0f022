"""Stored outputs under a change of the data: unknown samples, corruptions, factors, people on the same images."""

"""Scores and metrics of cells from stored values."""

"""Scorers of each task: scores of samples, and the metrics of a setting."""

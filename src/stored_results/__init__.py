"""Stored results, read for people and for analyses: predictions, samples side by side, rankings."""

"""Estimates of scores from a few samples or without labels; samples whose labels are in doubt."""

"""Estimates of scores from a few samples or without labels; detection of doubtful labels."""

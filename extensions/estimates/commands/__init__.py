"""Estimates from few samples or without labels, and doubtful labels: one command each."""

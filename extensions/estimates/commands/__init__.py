"""Estimates from few samples or without labels, and labels in doubt: one command each."""

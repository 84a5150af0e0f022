"""Estimates from few samples or without labels, one command each."""

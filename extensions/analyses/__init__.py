"""Comparisons of models on shared samples, from stored results: no model, data or GPU is needed."""

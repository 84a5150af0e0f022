"""Estimates of a mean score: from a few of the samples, or without labels."""

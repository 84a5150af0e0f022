"""Analyses from stored outputs alone, one command each."""

"""Analyses of stored outputs under a change of the data, one command each."""

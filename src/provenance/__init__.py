"""Provenance of stored results: what they were computed from, and whether that has changed."""

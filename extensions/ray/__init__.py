"""The executor on a Ray cluster."""

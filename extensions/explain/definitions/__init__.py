"""Definitions of `testbed.extensions.explain` for the registry."""

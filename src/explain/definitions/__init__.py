"""Definitions that `testbed.explain` adds to the registry."""

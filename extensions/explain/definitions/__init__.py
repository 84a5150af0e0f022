"""Definitions that `testbed.extensions.explain` adds to the registry."""

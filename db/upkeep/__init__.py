"""Maintenance of a store: checks, repair, merging, removal."""

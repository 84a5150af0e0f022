"""Figures of whatever a store holds; `testbed.plotting.figures` draws all of them."""

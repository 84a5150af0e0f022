"""Figures of a store's results; `testbed.plotting.figures` draws all of them."""

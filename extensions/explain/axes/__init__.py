"""Axes, one or a few of a kind per module; each calls `testbed.extensions.explain.axis.add_axis`."""

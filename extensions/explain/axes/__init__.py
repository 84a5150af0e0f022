"""A file for each axis or a few of one kind; each calls `testbed.extensions.explain.axis.add_axis`."""

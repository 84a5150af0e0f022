"""``testbed store``: commands that manage the store."""

"""``testbed store``: commands on the store itself."""

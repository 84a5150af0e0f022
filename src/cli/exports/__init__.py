"""``testbed export``: results and outputs as files."""

"""``testbed export vlmevalkit`` and ``testbed compare-recorded``."""

"""``testbed published`` and ``testbed publish``."""

"""``testbed serve`` and ``testbed site``."""

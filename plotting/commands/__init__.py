"""The command ``testbed figures``."""

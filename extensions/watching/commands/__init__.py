"""The command ``testbed watch``."""

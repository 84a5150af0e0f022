"""The command ``testbed gate``."""

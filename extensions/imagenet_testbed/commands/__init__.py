"""The command ``testbed export csv``."""

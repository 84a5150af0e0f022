"""The command ``testbed export clip-cc``."""

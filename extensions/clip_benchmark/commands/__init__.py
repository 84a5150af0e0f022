"""The command ``testbed export clip-benchmark``."""

"""The command ``testbed export datacomp``."""

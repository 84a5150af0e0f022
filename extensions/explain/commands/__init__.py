"""The command ``testbed explain``."""

"""Processes: how they are started, how they end, what they use."""

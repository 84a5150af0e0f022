"""testbed in Python: `evaluate`, stored results as frames, and registering definitions."""

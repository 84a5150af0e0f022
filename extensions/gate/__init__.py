"""A gate: whether a new model may replace another one."""

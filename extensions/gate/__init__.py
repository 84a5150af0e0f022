"""A gate that decides whether a new model may replace another one."""

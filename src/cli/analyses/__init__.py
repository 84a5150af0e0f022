"""The analyses of ``db.py``, from stored outputs alone."""

"""Alembic's folder. A migration imports nothing of the live code, so that it does tomorrow what it does today."""

# Oldest first; a test compares them with the files in versions.
REVISIONS = ("1", "2", "3", "4")
HEAD = REVISIONS[-1]

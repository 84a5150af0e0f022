"""Alembic's folder. A migration imports nothing of the live code, so that it does tomorrow what it does today."""

# Oldest first; a test compares them with the files in versions.
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
HEAD = REVISIONS[-1]

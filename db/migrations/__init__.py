"""Alembic's folder. Migrations import nothing from the live code, so that their effect never changes."""

# Oldest first; a test compares them with the files in versions.
REVISIONS = ("1", "2", "3", "4")
HEAD = REVISIONS[-1]

"""Alembic's folder. A migration imports nothing of the live code, so that it does tomorrow what it does today."""

"""Stores with evaluations that were not computed."""

from built_stores import backend, build, builder, postgres_store_url, raw, start_python, store_url, whole  # noqa: F401

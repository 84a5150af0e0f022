"""Stores with evaluations that were not computed."""

from built_stores import backend, build, builder, postgres_store_url, raw, store_url  # noqa: F401

"""A store of a published table made up for the tests, and one with samples of every task."""

from published_world import browser, published, table, world  # noqa: F401

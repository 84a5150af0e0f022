"""The tests here run the toy world in this process."""

from lab import lab, new_lab, work  # noqa: F401

"""The fuzz tests say by themselves how many examples they take; see ``fuzzing.py``."""

import fuzzing  # noqa: F401 -- loads the profile

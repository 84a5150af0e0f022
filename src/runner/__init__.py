"""A run from its plan to its report, and the checks of what is stored."""

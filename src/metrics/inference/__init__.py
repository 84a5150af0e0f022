"""Intervals, tests, ranks and corrections of measured numbers."""

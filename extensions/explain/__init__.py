"""Explains why published and measured numbers differ, by trying protocol variants, on stored outputs if possible."""

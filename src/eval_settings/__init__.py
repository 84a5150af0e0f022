"""Eval settings: one file per family; each registers what it defines."""

"""Shared terminal code of commands and figures: options, errors, tables, JSON."""

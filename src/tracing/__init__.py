"""Traces what the user's code reads while it runs: files, folders, variables, modules."""

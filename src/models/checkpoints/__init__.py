"""Checkpoint files: which formats they have, which entries, and how their tensors are named."""

"""Outputs as bytes: how they are encoded, where they lie, how they are deleted."""

"""What stored results were computed from, and whether that is as it was."""

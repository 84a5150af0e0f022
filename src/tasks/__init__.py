"""What each task needs of a model, what is computed for it, and how it is scored: one file for each ``task=``."""

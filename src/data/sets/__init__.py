"""Data sets by name, as their authors distribute them."""

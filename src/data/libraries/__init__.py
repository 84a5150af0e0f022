"""Data sets as other libraries keep them."""

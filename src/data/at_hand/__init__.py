"""Data at hand: files, archives, tables and Python objects that are data sets by what they hold."""

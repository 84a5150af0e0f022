"""Published values beside measured ones: how their files are read, named and compared."""

"""Published values: where they are, how their files are read, and how they compare with each other."""

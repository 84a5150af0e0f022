"""What exists only to take or to write the names, files and forms of the tools that testbed succeeds."""

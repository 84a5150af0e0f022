"""Where samples come from, how they are read, and what tells their content apart."""

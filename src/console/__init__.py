"""What commands and figures share at the terminal: options, errors, tables, JSON."""

"""How the database is reached: its URL, engines, errors, and what may be done again."""

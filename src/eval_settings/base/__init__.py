"""Building blocks of eval settings: definitions, names, and derived settings."""

"""Database connections: URLs, engines, errors and retries."""

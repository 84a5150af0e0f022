"""Sources of samples, reading them, and digests of their content."""

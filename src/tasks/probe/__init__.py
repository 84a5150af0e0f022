"""Linear probes: what they are, and how they are fitted."""

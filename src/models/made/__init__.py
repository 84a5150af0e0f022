"""Models that are made of others: from stored outputs, or from weights."""

"""Workers: one loop that computes shards."""

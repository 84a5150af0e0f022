"""How a worker computes its shards: one loop."""

"""How a worker computes one shard: a kernel for each thing that can be read."""

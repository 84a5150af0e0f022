"""The graph of a run: nodes, passes over inputs that are read together, and the shards that workers take."""

"""How a run computes what is planned: shards, executors, leases, progress, outcomes."""

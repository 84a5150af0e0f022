"""Execution of a plan: shards, executors, leases, progress, outcomes."""

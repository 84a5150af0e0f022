"""From requested cells to stored results: plan, passes, workers, store."""

"""Every Eval Ever's records, schema 0.3.0: results of a model with a line for each sample, written and read."""

"""Every Eval Ever's records, schema 0.3.0: reading and writing of results with a line for each sample."""

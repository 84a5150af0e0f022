"""What answers in text say: rules that read them, how they are scored, and the tables that benchmarks report."""

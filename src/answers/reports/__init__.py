"""The numbers that benchmarks report, from the verdicts on answers."""

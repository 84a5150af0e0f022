"""The numbers that benchmarks report, from the verdicts on answers: `testbed.answers.reports.report.report`."""

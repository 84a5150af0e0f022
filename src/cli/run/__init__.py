"""What ``testbed run`` does besides the run: its options, its progress, its report, its files."""

"""What ``eval.py`` does besides the run: its options, its progress, its report, its files."""

"""``testbed run`` around the run itself: options, progress, report and files."""

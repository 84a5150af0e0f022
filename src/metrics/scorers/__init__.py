"""What each task stores: scores of samples, and the metrics of a setting."""

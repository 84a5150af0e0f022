"""DataComp's result files, and the means of its leaderboard, from stored results."""

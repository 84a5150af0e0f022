"""How each task prepares, predicts, scores and aggregates."""

"""CLIPScore: the metric that loads models."""

"""Building blocks of models: definitions, capabilities, weights, and loaded models."""

"""What models are made of: definitions, capabilities, weights, and models that are loaded."""

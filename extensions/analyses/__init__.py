"""Models side by side on the samples that they share, from what is stored: no model, data or GPU is needed."""

"""Analyses of what is stored: models side by side on the samples that they share. No model, data or GPU is needed."""

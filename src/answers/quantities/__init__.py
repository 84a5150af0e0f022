"""Quantities in answers: numbers in digits, words or LaTeX, with their signs, factors and units, read as a whole."""

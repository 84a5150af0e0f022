"""Asks models their questions in other ways, and judges about the answers, on some of the samples."""

"""Anchors: a few samples that tell the score of all, chosen from what other models did."""

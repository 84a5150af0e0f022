"""Watching a training run: checkpoints are evaluated as they appear, and each is compared with the best before."""

"""Selective prediction: which answers are given, if a model may leave out those that it is least sure of."""

"""Models from what is at hand: networks and estimators in memory, programs in files, transformers' classifiers."""

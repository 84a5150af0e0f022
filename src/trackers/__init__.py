"""Results in experiment trackers: TensorBoard, Weights & Biases, MLflow."""

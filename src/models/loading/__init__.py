"""Sources of loaders: hubs, folders, checkpoints, configurations."""

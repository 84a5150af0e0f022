"""What loaders read: hubs, folders, checkpoints, configurations."""

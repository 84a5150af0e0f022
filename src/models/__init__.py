"""Models: one file per family; each registers what it defines, and imports torch only inside its loaders."""

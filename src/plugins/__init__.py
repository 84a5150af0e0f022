"""The files of plug-ins: how they are found and run."""

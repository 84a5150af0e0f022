"""The files of plug-ins: how they are found and run, and what their imports mean."""

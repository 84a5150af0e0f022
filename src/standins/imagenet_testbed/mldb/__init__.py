"""In place of ImageNet-testbed's package ``mldb``, which keeps checkpoints and results on a server."""

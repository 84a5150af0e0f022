"""What files of other tools import, served to plug-ins: the names of ImageNet-testbed, VLMEvalKit and mldb."""

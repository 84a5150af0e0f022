"""Stand-ins for other tools' modules, served to plug-ins: ImageNet-testbed, VLMEvalKit and mldb."""

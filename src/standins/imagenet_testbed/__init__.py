"""Stand-ins for the modules that ImageNet-testbed's files import, served to plug-ins.

`testbed.plugins.import_names` maps their names. Nothing else in testbed uses these modules.
"""

"""What ImageNet-testbed's files import, served to plug-ins.

`testbed.plugins.import_names` says under which names. Nothing else in testbed uses these modules.
"""

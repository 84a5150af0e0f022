"""What ImageNet-testbed's own files import, for files that are used as plug-ins: helpers, and stand-ins for its server.

`testbed.identity.import_names` says under which names. Nothing else in testbed uses these modules.
"""

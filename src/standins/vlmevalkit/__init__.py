"""What files in VLMEvalKit's form import, served to plug-ins where VLMEvalKit itself is not installed.

`testbed.plugins.import_names` says under which names. Nothing here downloads, unpickles, or runs the text of a cell as
code.
"""

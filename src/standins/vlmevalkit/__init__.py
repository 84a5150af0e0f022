"""Stand-ins for the modules that files in VLMEvalKit's form import, where VLMEvalKit itself is not installed.

`testbed.plugins.import_names` maps their names. Nothing here downloads, unpickles, or runs the text of a cell as
code.
"""

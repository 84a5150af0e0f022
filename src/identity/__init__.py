"""Identities of definitions, by their content: canonical descriptions, digests, fingerprints.

Three rules decide whether a stored result is reused:

1. The **identity** of a cell is a digest of what the user defined: functions and classes by their text with all that
   they refer to, values, samples and weights by their content; another identity is another evaluation.
2. The **record** of an evaluation lists what was read while it was computed, which may not show in definitions: files,
   folders, environment variables, modules, libraries, and testbed's own code.
3. **Samples are checked** if the identity is current but the record is not, or if the identity differs only in the
    wording of code and the places of files: eight are computed again, and the result is reused if they are equal.

So the identity (`describe`, `code`, `classes`) need not reach everything, if the record (`testbed.tracing`,
`testbed.provenance`) covers the rest; and `alike` need not be exact, since it only avoids computing all samples.
"""

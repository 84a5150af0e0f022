"""What a definition is, by its content: canonical descriptions, digests, fingerprints.

When a stored result is reused follows from three sentences:

1. The **identity** of a cell is a digest of what the user defined: functions and classes by their text with all that
   they refer to, values, samples and weights by their content; another identity is another evaluation.
2. The **record** of an evaluation holds what was read while it was computed, which definitions need not show: files,
   folders, environment variables, modules, libraries, and testbed's own code.
3. **Samples are looked at** where the identity is today's and the record is not, or where the identity differs only in
   how code is written and where files lie: eight are computed again, and the result is reused if they are equal.

So the identity (`describe`, `code`, `classes`) need not reach everything, if the record (`testbed.tracing`,
`testbed.provenance`) has what it does not reach; and `alike` need not be exact, since it only spares computing all.
"""

"""Results, outputs, texts and verdicts as files in testbed's own formats."""

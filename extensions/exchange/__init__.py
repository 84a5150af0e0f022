"""Results, outputs, texts and verdicts as files of testbed's own forms."""

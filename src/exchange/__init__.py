"""Results and outputs as files: testbed's own tables, and the formats of CLIP benchmark and CLIP-CC-Bench."""

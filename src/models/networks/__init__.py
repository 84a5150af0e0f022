"""Networks of testbed's own, and tables of published ones."""

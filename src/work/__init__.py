"""How a worker computes it: one loop, and a kernel for each thing that can be read."""

"""The parts of a store, each with the statements of one subject."""

"""What a definition is, by its content: canonical descriptions, digests, fingerprints."""

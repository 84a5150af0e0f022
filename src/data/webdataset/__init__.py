"""CLIP benchmark's webdataset format: reading, finding and writing it."""

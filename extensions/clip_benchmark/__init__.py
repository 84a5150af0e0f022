"""Reading and writing of CLIP benchmark's result files."""

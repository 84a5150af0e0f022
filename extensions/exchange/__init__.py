"""Files in and out: results, outputs, texts, verdicts, webdatasets, corrupted images."""

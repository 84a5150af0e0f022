"""BLEU, ROUGE-L and CIDEr-D: words and phrases that a caption shares with reference captions."""

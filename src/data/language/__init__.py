"""What is said in words: class names, prompts, languages, sentences."""

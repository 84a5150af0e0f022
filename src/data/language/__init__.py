"""Language: class names, prompts, languages, sentences."""

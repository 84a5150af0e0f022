"""What answers in text say: prompts, rules that read answers, and how they are scored."""

"""Answers in text: prompts, rules that read answers, and their scores."""

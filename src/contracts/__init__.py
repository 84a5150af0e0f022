"""The user's objects: what they return is checked, and what is theirs is left as it was."""

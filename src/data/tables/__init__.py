"""Tables of questions: their files, their rows, and recorded answers to them."""

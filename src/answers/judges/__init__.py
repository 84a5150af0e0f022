"""Questions for judges, readings of their replies, and human labels beside theirs."""

"""What judges are asked, how their replies are read, and human labels beside theirs."""

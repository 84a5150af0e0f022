"""What judges are asked, how their replies are read, and the labels of people beside theirs."""

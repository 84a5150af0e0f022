"""Tasks, one file for each ``task=``: required capabilities, what is computed for a cell, and how it is scored."""

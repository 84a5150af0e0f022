"""What a run has to do: definitions are opened, cells identified and looked up in the store."""

"""What a run has to do: definitions opened, cells identified, looked up in the store, put into passes."""

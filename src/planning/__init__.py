"""Planning: definitions are opened, cells identified and looked up in the store."""

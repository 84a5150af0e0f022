"""What eval settings are made of: definitions, names, and settings that follow from others."""

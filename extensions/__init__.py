"""Extensions: code that does not affect stored numbers. Each is registered by entry points; see `testbed.extending`."""

"""Extensions: everything that bears on no stored number. Each comes by entry points; see `testbed.extending`."""

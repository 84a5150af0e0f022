"""Imported by the fork server of data workers, when it starts: it ends together with the worker that it serves."""

from testbed.lifeline import end_with_parent

end_with_parent()

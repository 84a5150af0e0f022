"""Imported first by a fork server: it ends with the process that it serves, and only then.

Ctrl-C and a batch system's SIGTERM reach all processes; the run itself stops its workers.
"""

import gc
import os

from testbed.process.parent_death import end_with_parent
from testbed.process.signals import ignore_all, let_through

# What is imported here stays: neither this process nor those forked from it look through it, which took them half a
# second each and a copy of their own.
gc.disable()
os.register_at_fork(before=gc.freeze, after_in_child=gc.enable)
end_with_parent()
ignore_all()
let_through()

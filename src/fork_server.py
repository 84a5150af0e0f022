"""Imported first by a fork server: it ends with the process that it serves, and only then.

Ctrl-C and a batch system's SIGTERM reach all processes; the run itself tells its workers to stop.
"""

import gc
import signal

from testbed.lifeline import end_with_parent

gc.disable()  # what is imported here stays; processes turn it on again
end_with_parent()
for _number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(_number, signal.SIG_IGN)

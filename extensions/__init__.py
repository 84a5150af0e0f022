"""Extensions: code that does not affect stored numbers. Each is registered by entry points; see `testbed.extending`."""

import os

__path__[:] = map(os.path.realpath, __path__)  # an editable install finds this folder by a link (setup.py)

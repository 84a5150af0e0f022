"""Extensions: everything that bears on no stored number. Each comes by entry points; see `testbed.extending`."""

import os

__path__[:] = map(os.path.realpath, __path__)  # an editable install finds this folder by a link (setup.py)

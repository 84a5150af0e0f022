"""Figures and tables of stored results."""

import os

if __name__ != "testbed.plotting":
    raise ImportError(f"import this package as 'testbed.plotting', not as {__name__!r} (pip install -e . comes first)")

__path__[:] = map(os.path.realpath, __path__)  # an editable install finds this folder by a link (setup.py)

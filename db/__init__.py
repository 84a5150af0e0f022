"""The results store: its tables, and the class that reads and writes them."""

import os

if __name__ != "testbed.db":
    raise ImportError(
        f"import this package as 'testbed.db', not as {__name__!r} (pip install -e . makes it importable)"
    )

__path__[:] = map(os.path.realpath, __path__)  # an editable install finds this folder by a link (setup.py)

"""``python -m testbed``: the same as the command ``testbed``."""

from __future__ import annotations

from testbed.cli.start import main

if __name__ == "__main__":
    main()

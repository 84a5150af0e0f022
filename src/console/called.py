"""Naming the programs as the user calls them: ``python eval.py`` or ``testbed eval``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# as our messages say it; not the end of a path
_NAMED = re.compile(r"(?<![\w/.\\-])(?:python )?(eval|db)\.py(?![\w/\\])")


def as_called(text: str, program: str | None = None) -> str:
    """A message that names ``eval.py`` or ``db.py``, with the words by which the user called the running program.

    Args:
        text: The message.
        program: The running program's path. Default: ``sys.argv[0]``.

    Examples:
        >>> as_called("the store is empty; run: python eval.py --models MODEL", "/usr/bin/testbed")
        'the store is empty; run: testbed eval --models MODEL'
        >>> as_called("db.py --grid prints it", "/usr/bin/testbed")
        'testbed db --grid prints it'
    """
    name = Path(program or sys.argv[0]).name.removesuffix(".exe")
    if name == "testbed":
        form = "testbed {}"
    elif name == "__main__.py":  # of python -m testbed
        form = "python -m testbed {}"
    else:
        return text
    return _NAMED.sub(lambda found: form.format(found[1]), text)

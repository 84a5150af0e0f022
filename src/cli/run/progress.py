"""Progress of commands that compute: bars in a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from testbed.console.streams import terminal

if TYPE_CHECKING:
    from testbed.execution.progress import Progress
    from testbed.graph.options import RunOptions


def command_progress(options: RunOptions) -> Progress:
    """Returns the progress reporter for a run with these options, on stderr."""
    from testbed.execution.progress import LineProgress, RichProgress

    if not sys.stderr.isatty() or options.progress_interval is not None:
        return LineProgress(sys.stderr, options.progress_interval)
    from rich.console import Console

    return RichProgress(Console(file=terminal(sys.stderr)))

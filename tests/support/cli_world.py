"""Words of the command line that several tests of it share."""

from __future__ import annotations

from pathlib import Path

WORLD = str(Path(__file__).parent.parent / "plugins" / "world.py")
WORLD_CELLS = ("--plugin", WORLD, "--models", "world-plain", "--eval-settings", "world", "world-dark")
LOGREG = ("--models", "digits-logreg", "--eval-settings", "digits")


def eval_inline(program, *words, **options):
    return program("eval.py", *WORLD_CELLS, "--executor", "inline", "--limit", "100", *words, **options)

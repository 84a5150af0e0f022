"""Writes ``constraints.txt``: one version of each package that testbed or an extra needs, by uv.

``python docs/make_constraints.py [more constraints]``. The extra ``vllm`` is left out, since vLLM pins one
version of torch; so are the CUDA libraries, which torch chooses.
"""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {"vllm"}
CHOSEN_BY_TORCH = ("nvidia-", "cuda-", "triton")
HEADING = "# Versions that CI tests, by python docs/make_constraints.py: pip install -c constraints.txt -e '.[…]'"


def main(more: list[str]) -> None:
    """Resolves all extras together, for every platform and Python that testbed supports."""
    cfg = configparser.ConfigParser()
    cfg.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = [word for name in cfg["options.extras_require"] if name not in LEFT_OUT for word in ("--extra", name)]
    given = [word for file in more for word in ("--constraints", file)]
    resolved = subprocess.run(
        [
            *("uv", "pip", "compile", "setup.cfg", *extras, *given),
            *("--universal", "--python-version", "3.11", "--no-annotate", "--no-header", "--strip-extras"),
            *("--no-emit-index-url", "--quiet"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if resolved.returncode:
        sys.exit(resolved.stderr)
    kept = [line for line in resolved.stdout.splitlines() if line and not line.startswith(CHOSEN_BY_TORCH)]
    (ROOT / "constraints.txt").write_text("\n".join([HEADING, *kept, ""]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Writes the table of packages in CONTRIBUTING.md: `python docs/make_packages.py`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
_TABLE = re.compile(r"\| package \| what is in it \|\n\|---\|---\|\n(\|.*\n)*")


def packages() -> dict[str, str]:
    """The folder of each package, and the first line of its docstring."""
    found = {}
    for top in ("src", "db", "plotting", "extensions"):
        for path in sorted((ROOT / top).rglob("__init__.py")):
            if "tests" in path.relative_to(ROOT).parts:
                continue
            folder = str(path.parent.relative_to(ROOT))
            found[folder] = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
    return dict(sorted(found.items(), key=lambda each: each[0].split("/")))


def table() -> str:
    """The table, as Markdown."""
    rows = [f"| `{folder}/` | {text.replace('``', '`')} |" for folder, text in packages().items()]
    return "\n".join(["| package | what is in it |", "|---|---|", *rows, ""])


def main() -> None:
    """Writes the page."""
    page = PAGE.read_text(encoding="utf-8")
    assert _TABLE.search(page)
    PAGE.write_text(_TABLE.sub(lambda _: table(), page), encoding="utf-8")


if __name__ == "__main__":
    main()

"""What the website needs besides docs/: CONTRIBUTING.md and CHANGELOG.md as pages, and where the package's sources are."""

from __future__ import annotations

import atexit
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


@event_priority(100)  # before mkdocstrings asks where Python looks
def on_config(config: Any) -> None:
    """Shows mkdocstrings the package as it is installed: it reads files, and ours lie in three folders."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    package = Path(folder.name, "testbed")
    package.mkdir()
    for path in [*(ROOT / "src").iterdir(), ROOT / "db", ROOT / "plotting"]:
        (package / path.name).symlink_to(path)
    sys.path.insert(0, folder.name)


def on_files(files: Any, config: Any) -> Any:
    """Adds the two pages; on a code host they lie at the root, where people look for them."""
    for page, name in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=re.sub(r"\]\(docs/", "](", text)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lets links to the files at the root lead to their pages."""
    for name, source in PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({name}")
    return markdown

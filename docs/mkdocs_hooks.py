"""Adds files of the repository's root to the website, and finds the package's sources."""

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
EXAMPLES = "examples"


@event_priority(100)  # before mkdocstrings asks where Python looks
def on_config(config: Any) -> None:
    """Shows mkdocstrings the package as it is installed: it reads files, and ours lie in four folders."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    package = Path(folder.name, "testbed")
    package.mkdir()
    for path in [*(ROOT / "src").iterdir(), *(ROOT / name for name in ("db", "plotting", "extensions"))]:
        (package / path.name).symlink_to(path)
    sys.path.insert(0, folder.name)


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages and files that lie at the root of the repository, where people look for them."""
    for page, name in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=re.sub(r"\]\(docs/", "](", text)))
    for path in sorted((ROOT / EXAMPLES).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Adapts links to the website's paths, and gives the home page the full width."""
    if page.is_homepage:
        page.meta["hide"] = ["toc"]
    up = "../" * page.file.src_uri.count("/")
    for name, source in PAGES.items():
        markdown = markdown.replace(f"]({up}../{source}", f"]({up}{name}")
    return markdown.replace(f"]({up}../{EXAMPLES}/", f"]({up}{EXAMPLES}/")

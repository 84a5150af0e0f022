"""Adds files of the repository's root to the website."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
EXAMPLES = "examples"


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

"""The documentation as a website: complete, and without anything from another host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser import BROWSER, drive
from playwright.sync_api import sync_playwright

BUILT = os.environ.get("TESTBED_BUILT_DOCS")  # by .ci/run


@pytest.fixture(scope="module")
def website(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    pytest.importorskip("mkdocs", reason="needs pip install -e '.[docs]'")
    if BUILT:
        return Path(BUILT)
    folder = tmp_path_factory.mktemp("website")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_navigation(root: Path) -> None:
    nav = (root / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r": (\S+\.md)$", nav, flags=re.MULTILINE)
    pages = {path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")}
    assert set(listed) == pages | {"contributing.md", "changelog.md"}  # these lie at the root
    assert len(listed) == len(set(listed))


@pytest.mark.long
def test_no_page_loads_anything_from_another_host(website: Path) -> None:
    pages = list(website.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=[\"']?([^\s\"'>]+)", text)
        links = re.findall(r"<link\b[^>]*>", text)
        loaded += [
            address
            for link in links
            if not re.search(r"rel=[\"']?(canonical|prev|next)\b", link)
            for address in re.findall(r"\bhref=[\"']?([^\s\"'>]+)", link)
        ]
        loaded += re.findall(r"@import[^;]*|url\(([^)]*)\)", text)
        assert [each for each in loaded if re.match(r"[\"']?(https?:)?//", each)] == [], page
    for style in website.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']*", text) == [], style


def test_the_reference_has_what_definition_files_import(website: Path) -> None:
    reference = (website / "api.html").read_text(encoding="utf-8")
    for name in (
        "testbed.models.model_base.Model",
        "testbed.eval_settings.eval_setting_base.EvalSetting",
        "testbed.db.parts.outputs.Outputs.read",
        "testbed.metrics.inference.paired.compare",
    ):
        assert f'id="{name}"' in reference, name


def test_the_index_of_the_search_is_built_in(website: Path) -> None:
    index = (website / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "first-hour.html" in index


def test_nothing_but_pages_and_what_they_show_is_published(website: Path) -> None:
    assert [path for path in website.rglob("*") if path.name == "__pycache__" or path.suffix == ".pyc"] == []


def test_links_to_other_files_lead_to_files_of_the_website(website: Path) -> None:
    lost = []
    for page in website.rglob("*.html"):
        for address in re.findall(r"<a\b[^>]*\bhref=[\"']?([^\s\"'>]+)", page.read_text(encoding="utf-8")):
            path = unquote(urlsplit(address).path)
            if path and not urlsplit(address).scheme and page.name != "404.html" and not (page.parent / path).is_file():
                lost.append(f"{page.relative_to(website)}: {address}")
    assert lost == []


@drive
def test_the_search_finds_pages_that_are_opened_as_files(website: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((website / "index.html").as_uri())
        box = page.get_by_role("textbox", name="Search")
        box.focus()
        page.locator(".md-search-result__meta", has_text="Type to start searching").wait_for(state="attached")
        box.click()
        for words, name in (
            ("webdatasets", "datasets"),
            ("ImageNet-C", "corruptions"),
            ("--decoded-cache", "running"),  # an option
            ("booktabs", "figures"),  # a word in code: \\usepackage{booktabs}
            ("StandardTransform", "api"),
        ):
            box.fill("")
            box.press_sequentially(words)
            link = f'.md-search-result__link[href^="{(website / name).as_uri()}.html"]'
            found = page.locator(".md-search-result__item").first.locator(link).first
            found.wait_for(state="attached")
        browser.close()

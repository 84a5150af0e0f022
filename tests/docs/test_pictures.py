"""The pictures of the documentation: there is one of each figure, and the pages show them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from browser import drive
from PIL import Image
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.plotting.figures import KINDS

ROOT = Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("make_pictures", ROOT / "docs" / "make_pictures.py")
make_pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_pictures)


def shown(page: str) -> set[str]:
    return set(re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / page).read_text(encoding="utf-8")))


def test_there_is_a_picture_of_each_kind_of_figure_and_a_page_shows_it() -> None:
    assert make_pictures.FIGURES.keys() | {make_pictures.OF_A_RUN, make_pictures.OF_A_TABLE} == KINDS.keys()
    assert {f"pictures/{kind}.png" for kind in KINDS} <= shown("docs/figures.md")
    assert {path.stem for path in (ROOT / "docs" / "pictures").glob("*.png")} == KINDS.keys()
    assert make_pictures.PAGE in shown("docs/index.md")


def test_the_home_page_begins_with_how_to_install_and_what_comes_out() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    install, result, picture = (text.index(each) for each in ("pip install -e .", "98.70 %", "leaderboard.png"))
    assert install < result < picture < text.index("| You want to |")


@drive
@pytest.mark.long
def test_pictures_are_drawn_of_a_store(tmp_path: Path) -> None:
    url, samples = str(tmp_path / "testbed.db"), samples_of([0, 1, 2, 3] * 10)
    with Store.create(url) as store:
        for place, model in enumerate(("first", "second")):
            put(store, model, "val", samples, saying([0, 1, 2, 3] * (9 - place) + [0] * (4 + 4 * place)))
    make_pictures._testbed("site", "--out", str(tmp_path / "site"), "--db-url", url)
    paths = [tmp_path / "page.png", tmp_path / "ranking.png"]
    make_pictures._photograph(tmp_path / "site" / "index.html", paths[0])
    make_pictures.draw_figures(url, {"ranking--val": paths[1]})
    for path, width in zip(paths, (make_pictures.SIZE["width"], make_pictures.WIDTH), strict=True):
        image = Image.open(path).convert("RGB")
        assert image.width == width
        assert len(image.resize((64, 64)).getcolors(64 * 64)) > 10  # there is something on it

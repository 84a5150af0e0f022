"""Makes the pictures of the documentation: the web page, and one figure of each kind.

python docs/make_pictures.py [--db-url URL] [--out DIR]   (needs the extras figures and test, and a Chromium or Chrome)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import click
from PIL import Image

PAGE = "leaderboard.png"
FIGURES = {  # kind → what is drawn of the demo
    "shifts": "shift--digits--digits-c.gaussian_noise",
    "severity": "severity-mean--digits-c",
    "ranking": "ranking--digits",
    "reliability": "reliability--digits",
    "coverage": "coverage--digits",
    "confusion": "confusion--digits--digits-knn",
    "cost": "cost--digits",
}
OF_A_RUN = "training"  # its picture shows a watched training run, which the demo does not have
OF_A_TABLE = "compute"  # that of this one CLIP benchmark's scaling table: probe_benchmark/openclip_results.csv
SIZE = {"width": 1280, "height": 570}
# The columns of the leaderboard's picture: as many as fit into its width.
COLUMNS = (
    *("digits", "digits-even", "digits-inverted", "digits-rotated"),
    *("digits-c.brightness.3", "digits-c.contrast.3", "digits-c.gaussian_noise.3"),
)
WIDTH = 900  # pixels of a figure
COLOURS = 128


@click.command()
@click.option("--db-url", help="A store with the demo's results.  [default: the demo is run]")
@click.option("--watched", metavar="URL", help="A store with a watched training run.  [default: its picture stays]")
@click.option(
    "--scaling", type=click.Path(path_type=Path), help="CLIP benchmark's table.  [default: its picture stays]"
)
@click.option("--out", type=click.Path(path_type=Path), default=Path(__file__).parent)
def main(db_url: str | None, watched: str | None, scaling: Path | None, out: Path) -> None:
    """Writes the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if db_url is None:
            db_url = str(folder / "demo.db")
            _testbed("run", "demo", "--on", "demo", "--db-url", db_url)
        _testbed("site", "--out", str(folder / "site"), "--db-url", db_url)
        _photograph(folder / "site" / "index.html", out / PAGE)
        (out / "pictures").mkdir(exist_ok=True)
        draw_figures(db_url, {FIGURES[kind]: out / "pictures" / f"{kind}.png" for kind in FIGURES})
        if watched is not None:
            draw_figures(watched, {"training--runs_a": out / "pictures" / f"{OF_A_RUN}.png"})
        if scaling is not None:
            url = str(folder / "scaling.db")
            _testbed("import", str(scaling), "--db-url", url)
            draw_figures(url, {"compute--imagenet1k": out / "pictures" / f"{OF_A_TABLE}.png"}, scaling)
    for path in (out / PAGE, *((out / "pictures").glob("*.png"))):
        Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def _testbed(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "testbed", *words], check=True)


def _photograph(page: Path, to: Path) -> None:
    """Takes a picture of a page as it is when it is opened."""
    from playwright.sync_api import sync_playwright

    browsers = filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser")))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=next(browsers, None), args=["--no-sandbox"])
        opened = browser.new_page(viewport=SIZE, color_scheme="light")
        opened.goto(f"{page.as_uri()}#/?cols={quote('|'.join(COLUMNS))}")
        opened.wait_for_selector("#board tbody tr")
        opened.screenshot(path=to)
        browser.close()


def draw_figures(db_url: str, paths: dict[str, Path], compute: Path | None = None) -> None:
    """Draws figures of a store, by their names."""
    from testbed.plotting.figures import figures
    from testbed.plotting.images import write_images

    drawn, _ = figures(db_url, compute=compute)
    if lacking := paths.keys() - drawn.keys():
        raise click.ClickException(f"the store has no {', '.join(sorted(lacking))}; it has {', '.join(drawn)}")
    write_images([drawn[name] for name in paths], list(paths.values()))
    for path in paths.values():
        image = Image.open(path).convert("RGB")
        image.resize((WIDTH, round(image.height * WIDTH / image.width))).save(path)


if __name__ == "__main__":
    main()

"""Small images in a folder, and a data set of them read as a run reads it."""

from __future__ import annotations

from pathlib import Path

from table_world import photo

from testbed.data.source import ImageSource

IMAGES = ("a.jpg", "b.jpg", "val2014/a.jpg", "val2014/b.jpg", "images/a.jpg", "images/b.jpg", "val2017/a.jpg")


def with_images(folder: Path, *names: str) -> None:
    for name in names or IMAGES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(photo("coffee", 8))


def use(source: ImageSource) -> None:
    """Reads all of a small data set, as a run does."""
    positions = list(range(len(source.ids)))
    source.digests(positions)
    for position in positions[:3]:
        source.image(position)

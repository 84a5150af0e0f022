"""Reading a webdataset in any order: against a folder of the same files, and against the package webdataset in order.

The package needs to be installed for its part (pip install webdataset); without it, that part is left out. All images
are JPEG crops of real photos, and decoded to RGB by Pillow in each case, in one thread of one process.
"""

from __future__ import annotations

import io
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from paired import compare, machine
from PIL import Image

from testbed.data.decode import decode_file
from testbed.data.source import ImageSource
from testbed.data.webdataset.source import WebDataset
from testbed.extensions.exchange.webdataset_export import export


class ShardCrops(ImageSource):
    """Crops of real photos."""

    def __init__(self, count: int, side: int) -> None:
        from skimage import data

        self.name = "crops"
        self.photos = [data.astronaut(), data.chelsea(), data.coffee(), data.rocket()]
        self.side = side
        self.ids = [str(number) for number in range(count)]
        self.targets = [number % 4 for number in range(count)]

    def image(self, position: int) -> Image.Image:
        """A crop."""
        photo = self.photos[position % 4]
        top, left = position % (photo.shape[0] - self.side), 7 * position % (photo.shape[1] - self.side)
        return Image.fromarray(photo[top : top + self.side, left : left + self.side])

    def digests(self, positions: Any) -> list[str]:
        """Their numbers."""
        return [str(position) for position in positions]


@click.command()
@click.option("--count", default=4000, show_default=True, help="Images.")
@click.option("--side", default=224, show_default=True, help="Of each, in pixels.")
@click.option("--shard", default=1000, show_default=True, help="Images in a shard.")
@click.option("--repeats", default=7, show_default=True, help="Counted pairs.")
def main(count: int, side: int, shard: int, repeats: int) -> None:
    """Prints the ratios of times, ours over the other's."""
    click.echo(f"{machine()}; {count:,} JPEG images of {side} × {side} in shards of {shard:,}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TESTBED_CACHE"] = f"{folder}/cache"
        root = Path(folder)
        export(ShardCrops(count, side), root / "wds", "test", "classification", image_format="jpg", max_count=shard)
        for what in ("read once", "remembered"):
            start = time.perf_counter()
            source = WebDataset(root / "wds")
            click.echo(f"opening, its shards {what}: {time.perf_counter() - start:.3f} s")
        files = []
        (root / "files").mkdir()
        for position in range(count):
            files.append(root / "files" / f"{position}.jpg")
            files[-1].write_bytes(source.image_bytes(position))
        order = list(range(count))
        random.Random(0).shuffle(order)
        compare(
            "bytes in random order / of files",
            lambda: [source.image_bytes(entry) for entry in order],
            lambda: [files[entry].read_bytes() for entry in order],
            repeats,
        )
        compare(
            "images in random order / of files",
            lambda: [source.image(entry).size for entry in order],
            lambda: [decode_file(files[entry]).size for entry in order],
            repeats,
        )
        pattern = str(root / "wds" / "test" / f"{{0..{(count - 1) // shard}}}.tar")
        bare, decoded = _package(pattern, count, False), _package(pattern, count, True)
        if bare is None or decoded is None:
            click.echo("the package webdataset is not installed: no comparison with it")
            return
        compare(
            "bytes in random order / package webdataset in order",
            lambda: [(source.image_bytes(entry), source.targets[entry]) for entry in order],
            bare,
            repeats,
        )
        compare(
            "images in random order / package webdataset in order",
            lambda: [(source.image(entry).size, source.targets[entry]) for entry in order],
            decoded,
            repeats,
        )


def _package(pattern: str, count: int, decode: bool) -> Callable[[], object] | None:
    """Reading all images and labels with the package, as CLIP benchmark does it."""
    try:
        import webdataset
    except ImportError:
        return None

    def samples() -> Iterator[Any]:
        for sample in webdataset.WebDataset(pattern, shardshuffle=False, nodesplitter=lambda shards: shards):
            label = int(sample["cls"])
            if not decode:
                yield sample["jpg"], label
                continue
            with Image.open(io.BytesIO(sample["jpg"])) as image:
                yield image.convert("RGB").size, label

    def work() -> None:
        assert sum(1 for _ in samples()) == count

    return work


if __name__ == "__main__":
    main()

"""Images that are read with loss are counted and named, without decoding them a second time."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from PIL import Image, ImageOps
from tables import cases

import testbed
from testbed.cli.program import command
from testbed.data.at_hand.files import open_file
from testbed.data.decode import LOSSES, decode_bytes, decoder, eight_bits, losses
from testbed.data.formats.image_folder import ImageFolder
from testbed.data.left_out import SAME_CONTENT
from testbed.errors import DefinitionError
from testbed.inputs import Inputs, using

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 6, 4), dtype=np.uint8)
RGB = Image.fromarray(PIXELS[..., :3])


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def turned(form: str, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(RGB, form, exif=exif)


def deep(largest: int, form: str = "PNG") -> bytes:
    values = np.linspace(0, largest, 48).astype(np.uint16).reshape(8, 6)
    return saved(Image.fromarray(values), form)


PALETTE = RGB.quantize(8)
CASES = {
    "plain JPEG": (saved(RGB, "JPEG"), []),
    "plain PNG": (saved(RGB, "PNG"), []),
    "plain WebP": (saved(RGB, "WEBP", lossless=True), []),
    "grey": (saved(RGB.convert("L"), "PNG"), []),
    "palette": (saved(PALETTE, "PNG"), []),
    "EXIF that turns nothing": (turned("JPEG", 1), []),
    "EXIF that is not valid": (turned("JPEG", 77), []),
    "JPEG turned": (turned("JPEG", 6), ["orientation"]),
    "JPEG mirrored": (turned("JPEG", 2), ["orientation"]),
    "PNG turned": (turned("PNG", 3), ["orientation"]),
    "WebP turned": (turned("WEBP", 8), ["orientation"]),
    "TIFF turned, which Pillow turns": (turned("TIFF", 6), []),
    "RGBA": (saved(Image.fromarray(PIXELS), "PNG"), ["transparency"]),
    "grey with alpha": (saved(Image.fromarray(PIXELS[..., :2], "LA"), "PNG"), ["transparency"]),
    "palette with a transparent colour": (saved(PALETTE, "PNG", transparency=0), ["transparency"]),
    "WebP with alpha": (saved(Image.fromarray(PIXELS), "WEBP", lossless=True), ["transparency"]),
    "CMYK": (saved(RGB.convert("CMYK"), "JPEG"), ["cmyk"]),
    "GIF of two frames": (saved(RGB, "GIF", save_all=True, append_images=[RGB.rotate(180)]), ["frames"]),
    "TIFF of two pages": (saved(RGB, "TIFF", save_all=True, append_images=[RGB]), ["frames"]),
    "16 bits": (deep(65535), []),
    "16 bits, just enough": (deep(8192), []),
    "12 bits in 16": (deep(4095), ["dark"]),
    "12 bits in 16, TIFF": (deep(4095, "TIFF"), ["dark"]),
    "black 16 bits": (deep(0), ["dark"]),
    "no image": (b"nothing", []),
    "cut": (turned("JPEG", 6)[:20], []),
}


@cases("name", CASES)
def test_what_is_lost_of_an_image_is_known(name: str) -> None:
    data, expected = CASES[name]
    assert losses(io.BytesIO(data)) == expected


def test_what_is_lost_is_lost() -> None:
    """The pixels that decoding gives are not those that a viewer shows."""
    image = decode_bytes(CASES["JPEG turned"][0], "turned")
    assert image.size == RGB.size
    assert np.asarray(decode_bytes(CASES["12 bits in 16"][0], "deep")).max() <= 15


def test_headers_are_read_and_pixels_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    load = Image.Image.load
    monkeypatch.setattr(Image.Image, "load", lambda self: loaded.append(self.format) or load(self))
    for name in ("plain JPEG", "JPEG turned", "plain PNG", "PNG turned", "RGBA", "CMYK"):
        losses(io.BytesIO(CASES[name][0]))
    assert loaded == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "set"
    for label in ("cat", "dog"):
        (root / label).mkdir(parents=True)
    for name, form in (("JPEG turned", "jpg"), ("RGBA", "png"), ("CMYK", "jpeg"), ("plain PNG", "png")):
        (root / "cat" / f"{name}.{form}").write_bytes(CASES[name][0])
    (root / "dog" / "copy.png").write_bytes(CASES["plain PNG"][0])
    (root / "dog" / "deep.png").write_bytes(CASES["12 bits in 16"][0])
    return root


def remarks(root: Path, positions: Any = None) -> dict[str, tuple[int, tuple[str, ...], bool]]:
    source = ImageFolder(root, "set")
    positions = range(len(source)) if positions is None else positions
    found = source.remarks(positions, source.describe_samples(positions))
    return {each.reason: (each.count, each.names, each.expected) for each in found}


def test_a_folder_counts_what_is_lost_and_what_it_has_twice(folder: Path) -> None:
    assert remarks(folder) == {
        LOSSES["orientation"]: (1, ("cat/JPEG turned.jpg",), True),
        LOSSES["transparency"]: (1, ("cat/RGBA.png",), True),
        LOSSES["cmyk"]: (1, ("cat/CMYK.jpeg",), True),
        LOSSES["dark"]: (1, ("dog/deep.png",), True),
        SAME_CONTENT: (1, ("dog/copy.png",), True),
    }


def test_only_the_samples_of_a_setting_count_and_one_that_is_taken_twice_is_no_copy(folder: Path) -> None:
    source = ImageFolder(folder, "set")
    plain, rgba = (source.ids.index(f"cat/{name}.png") for name in ("plain PNG", "RGBA"))
    assert remarks(folder, [plain, plain]) == {}
    assert remarks(folder, [rgba, rgba]) == {LOSSES["transparency"]: (1, ("cat/RGBA.png",), True)}


def test_files_are_looked_at_once_and_again_after_they_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import testbed.data.content as content

    looked: list[Any] = []
    monkeypatch.setattr(content, "losses", lambda file: looked.append(file.name) or losses(file))
    first, second = remarks(folder), remarks(folder)
    assert first == second
    assert len(looked) == 5  # two of the six have the same content
    (folder / "dog" / "deep.png").write_bytes(CASES["plain JPEG"][0])
    assert LOSSES["dark"] not in remarks(folder)
    assert len(looked) == 6
    (folder / "dog" / "copy.png").unlink()
    assert SAME_CONTENT not in remarks(folder)


def _zipped(folder: Path, form: str) -> Path:
    return Path(shutil.make_archive(str(folder.parent / "set"), form, folder))


def _listed(folder: Path) -> Path:
    """A CSV file with the path and the label of each image."""
    files = sorted(folder.glob("*/*.*"))
    table = folder.parent / "set.csv"
    table.write_text("path,label\n" + "".join(f"{file},{file.parent.name}\n" for file in files))
    return table


def _with_bytes(folder: Path) -> Path:
    """A Parquet file with the bytes of each image."""
    files = sorted(folder.glob("*/*.*"))
    table = folder.parent / "set.parquet"
    columns = {"image": [file.read_bytes() for file in files], "label": [file.parent.name for file in files]}
    pd.DataFrame(columns).to_parquet(table)
    return table


def _sharded(folder: Path) -> Path:
    """A WebDataset shard."""
    shard = folder.parent / "shards" / "set-0.tar"
    shard.parent.mkdir()
    with tarfile.open(shard, "w") as tar:
        for index, file in enumerate(sorted(folder.glob("*/*.*"))):
            label = str(["cat", "dog"].index(file.parent.name)).encode()
            for name, data in ((f"{index}{file.suffix}", file.read_bytes()), (f"{index}.cls", label)):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return shard.parent


@pytest.mark.parametrize(
    "form", [partial(_zipped, form="zip"), partial(_zipped, form="tar"), _listed, _with_bytes, _sharded]
)
def test_it_is_counted_wherever_the_images_lie(form: Callable[[Path], Path], folder: Path) -> None:
    if form is _with_bytes:
        pytest.importorskip("pyarrow")
    source = open_file(str(form(folder)), "set")
    found = {each.reason: each.count for each in source.remarks(range(6), source.describe_samples(range(6)))}
    lost = [LOSSES[each] for each in ("orientation", "transparency", "cmyk", "dark")]
    assert found == dict.fromkeys([*lost, SAME_CONTENT], 1)


def test_a_run_says_it_and_when_it_is_run_again_and_turns_if_asked_for(folder: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from testbed.registry import registry\n"
        "from testbed.models.model_base import Model, StandardTransform, StandardNormalization\n"
        "def load():\n"
        "    import torch\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 4 * 4, 2))\n"
        "registry.add_model(Model(name='tiny', transform=StandardTransform(4, 4), classifier_loader=load,\n"
        "    normalization=StandardNormalization((0, 0, 0), (1, 1, 1)), eval_batch_size=4))\n"
    )
    lines = []
    for exif in ("stored", "stored", "turn"):
        asked = ["run", "tiny", "--on", str(folder), "--plugin", str(plugin), "--exif", exif, "--strict"]
        done = CliRunner().invoke(command, [*asked, "--db-url", str(tmp_path / "store.db")], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        lines.append(" ".join(done.output.split()))
    told = [LOSSES[each] for each in ("transparency", "cmyk", "dark")]
    for said in lines:
        assert all(f"{reason}: 1" in said for reason in (*told, SAME_CONTENT))
    assert [f"{LOSSES['orientation']}: 1 (cat/JPEG turned.jpg)" in said for said in lines] == [True, True, False]
    assert ["1 stored" in said for said in lines] == [False, True, False]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_as_a_viewer_does_if_asked_for(orientation: int) -> None:
    data, upright = (
        turned("PNG", orientation),
        ImageOps.exif_transpose(Image.open(io.BytesIO(turned("PNG", orientation)))),
    )
    assert np.array_equal(decode_bytes(data, "x"), RGB)
    before = decoder()
    with using(replace(Inputs.from_environment(), exif="turn")):
        assert np.array_equal(decode_bytes(data, "x"), upright)
        assert np.array_equal(Image.open(io.BytesIO(eight_bits(data, "x"))).convert("RGB"), upright)
        assert decoder() != before
        assert np.asarray(decode_bytes(CASES["12 bits in 16"][0], "x")).max() == 15


def test_evaluate_turns_images_if_asked_for(folder: Path, tmp_path: Path) -> None:
    sizes: list[tuple[int, int]] = []

    def small(image: Image.Image) -> torch.Tensor:
        sizes.append(image.size)
        return torch.zeros(3, 4, 4)

    network, asked = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2)), {"transform": small}
    asked |= {"db": tmp_path / "store.db", "progress": False, "executor": "inline", "workers": 0}
    for exif in ("stored", "turn"):
        sizes.clear()
        testbed.evaluate(network, str(folder), exif=exif, **asked)
        assert (6, 8) in sizes
        assert ((8, 6) in sizes) == (exif == "turn")
    with pytest.raises(DefinitionError, match="exif is 'upright'"):
        testbed.evaluate(network, str(folder), exif="upright", **asked)

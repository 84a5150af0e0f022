"""``testbed corrupt``: the files that it writes, that it goes on where it stopped, and its clear errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

from testbed.corruptions import IMAGENET_C, corrupt
from testbed.data.perturbation import sample_seed
from testbed.errors import DataError, DefinitionError, UnsupportedError
from testbed.extensions.exchange.commands import corrupt as program


@pytest.fixture
def tree(tmp_path, photos):
    """A folder of photos of several sizes and kinds, one in a folder of its own."""
    root = tmp_path / "photos"
    (root / "deep" / "er").mkdir(parents=True)
    Image.fromarray(photos[0]).save(root / "astronaut.png")
    Image.fromarray(photos[1]).save(root / "deep" / "cat.jpg", quality=95)
    Image.fromarray(photos[2][:, :, 0]).save(root / "deep" / "er" / "coffee.JPEG")
    (root / "notes.txt").write_text("no image")
    return root


def run(*words, code=0, catch=False):
    result = CliRunner().invoke(program.command, [str(word) for word in words], standalone_mode=False)
    if catch:
        return result.exception
    if result.exception:
        raise result.exception
    assert result.return_value == code, result.output
    return result


def pixels(path):
    return np.asarray(Image.open(path))


def test_images_are_what_the_settings_make_of_them(tree, tmp_path):
    out = tmp_path / "out"
    said = run(tree, out, "--corruptions", "fog", "gaussian_noise", "--severities", "2", "5", "--processes", "1")
    assert "12 images written" in said.output
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*"))
    names = ["astronaut.png", "deep/cat.jpg.png", "deep/er/coffee.JPEG.png"]
    assert files == sorted(f"{c}/{s}/{name}" for c in ("fog", "gaussian_noise") for s in (2, 5) for name in names)
    with Image.open(tree / "deep" / "cat.jpg") as image:
        width, height = image.size
        scale = 256 / min(width, height)
        resized = image.convert("RGB").resize((int(width * scale), int(height * scale)), Image.Resampling.BILINEAR)
    left, top = round((resized.width - 224) / 2), round((resized.height - 224) / 2)
    plain = np.asarray(resized.crop((left, top, left + 224, top + 224)))
    tensor = torch.from_numpy(plain.copy()).permute(2, 0, 1)[None].float() / 255
    for name in ("fog", "gaussian_noise"):
        seed = sample_seed(f"imagenet-c.{name}.5_in-memory", "deep/cat.jpg", 0)
        expected = corrupt(tensor, name, 5, [seed])[0].permute(1, 2, 0).mul(255).round().numpy()
        found = pixels(out / name / "5" / "deep" / "cat.jpg.png")
        assert np.abs(found.astype(int) - expected).max() <= 1


def test_images_may_keep_their_size_and_be_jpeg(tree, tmp_path):
    out = tmp_path / "out"
    words = ("--corruptions", "contrast", "--severities", "1", "--size", "0", "--format", "jpeg", "--processes", "1")
    run(tree, out, *words, "--quality", "30")
    assert pixels(out / "contrast/1/deep/cat.jpg").shape == pixels(tree / "deep/cat.jpg").shape
    assert pixels(out / "contrast/1/astronaut.png.jpg").shape == pixels(tree / "astronaut.png").shape
    assert Image.open(out / "contrast/1/deep/er/coffee.JPEG").format == "JPEG"
    assert (out / "contrast/1/deep/cat.jpg").stat().st_size < (tree / "deep/cat.jpg").stat().st_size / 3


def test_several_processes_write_the_same(tree, tmp_path, photos):
    for number in range(40):
        Image.fromarray(photos[3][number : number + 64, :64]).save(tree / f"{number}.png")
    words = ("--corruptions", "snow", "glass_blur", "--severities", "4", "--size", "32")
    run(tree, tmp_path / "one", *words, "--processes", "1")
    run(tree, tmp_path / "two", *words, "--processes", "2")
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.png"))
    assert len(files) == 86
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_what_is_there_is_left_as_it_is(tree, tmp_path):
    out = tmp_path / "out"
    words = (tree, out, "--corruptions", "pixelate", "--severities", "1", "2", "--size", "48", "--processes", "1")
    run(*words)
    mark = out / "pixelate" / "1" / "astronaut.png"
    mark.write_bytes(b"mine")
    (out / "pixelate" / "2" / "astronaut.png").unlink()
    said = run(*words)
    assert "1 image written" in said.output
    assert "5 already existed" in said.output
    assert mark.read_bytes() == b"mine"
    assert pixels(out / "pixelate" / "2" / "astronaut.png").shape == (48, 48, 3)


def test_all_19_are_the_default(tree, tmp_path, monkeypatch, photos):
    from testbed.corruptions.frost_pictures import NAMES

    (tmp_path / "frost").mkdir()
    for name in NAMES:
        Image.fromarray(photos[0]).save(tmp_path / "frost" / name)
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    out = tmp_path / "out"
    run(tree, out, "--size", "32", "--processes", "1")
    assert sorted(path.name for path in out.iterdir()) == sorted(IMAGENET_C)
    assert sum(1 for path in out.rglob("*.png")) == 19 * 5 * 3


def test_an_unreadable_image_is_told_and_the_others_are_written(tree, tmp_path):
    (tree / "broken.png").write_bytes((tree / "astronaut.png").read_bytes()[:900])
    words = (tree, tmp_path / "out", "--corruptions", "fog", "--severities", "1", "--size", "32", "--processes", "1")
    said = run(*words, code=1)
    assert "broken.png cannot be decoded" in said.output
    assert "3 images written" in said.output


def test_a_target_that_cannot_be_written_is_told(tree, tmp_path):
    (tmp_path / "file").write_text("in the way")
    words = (tree, tmp_path / "file", "--corruptions", "fog", "--severities", "1", "--size", "32", "--processes", "1")
    error = run(*words, catch=True)
    assert isinstance(error, DataError)
    assert "cannot be written" in str(error)


def test_mistakes_are_told_before_anything_is_written(tree, tmp_path, monkeypatch):
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    monkeypatch.setattr("testbed.corruptions.frost_pictures.PACKAGES", ())
    out = tmp_path / "out"
    empty = tmp_path / "empty"
    empty.mkdir()
    cases = [
        ((tmp_path / "nowhere", out), DataError, "is not a folder"),
        ((empty, out, "--corruptions", "fog"), DataError, "contains no images"),
        ((tree, tree / "out"), DataError, "is inside"),
        ((tree, tree), DataError, "is inside"),
        ((tree, out, "--corruptions", "fogg"), DefinitionError, "did you mean fog?"),
        ((tree, out, "--corruptions", "fog", "frost"), UnsupportedError, "photographs"),
    ]
    for words, kind, text in cases:
        error = run(*words, catch=True)
        assert isinstance(error, kind), error
        assert text in str(error)
    assert "--severities is a whole number from 1 to 5, not 6" in str(run(tree, out, "--severities", "6", catch=True))
    assert not out.exists()
    assert sorted(Path(each).name for each in tree.iterdir()) == ["astronaut.png", "deep", "notes.txt"]

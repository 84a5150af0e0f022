"""Decoded images on disk: bit-equal, bounded, shared by processes, and never half of one."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest
import torch
from toy import Work, toy_catalog, toy_model, toy_setting

from testbed.data.decoded import DecodedImages
from testbed.db.store import Store
from testbed.graph.fuse import pixels_key
from testbed.graph.options import RunOptions
from testbed.models.model_base import StandardTransform
from testbed.runner.run import run

FORK = multiprocessing.get_context("fork")
GIB = 2**30


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "decoded"


def image(seed: int, side: int = 8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (3, side, side), generator=generator, dtype=torch.uint8).to(torch.float32).div(255)


def digest(number: int) -> str:
    return f"{number:032x}"


def test_the_next_model_with_the_same_transform_decodes_nothing(tmp_path: Path, work: Work) -> None:
    catalog = toy_catalog(
        toy_model("first"),
        toy_model("second", seed=1),
        toy_model("wider", transform=StandardTransform(20, 16)),
        toy_setting(),
    )
    cached = RunOptions(db_url=str(tmp_path / "cached.db"), executor="inline", decoded_cache=GIB)
    for model, expected in (("first", 600), ("second", 0), ("wider", 600)):
        work.clear()
        assert run(catalog, cached, [model], ["toy-all"]).ok
        assert work["images read"] == expected, model
        assert work["images through networks"] == 600
    plain = RunOptions(db_url=str(tmp_path / "plain.db"), executor="inline")
    assert run(catalog, plain, ["second"], ["toy-all"]).ok
    outputs = []
    for url in (cached.db_url, plain.db_url):
        with Store.open(url) as store:
            (evaluation,) = store.evaluations.find(["second"], ["toy-all"])
            outputs.append(store.outputs.read(evaluation.id, "logits").tobytes())
    assert outputs[0] == outputs[1]


def test_an_image_comes_back_bit_equal() -> None:
    images = DecodedImages("a", GIB)
    assert images.get(digest(1)) is None
    images.put(digest(1), image(1))
    images.put(digest(2), image(2, side=5))
    there = DecodedImages("a", GIB)
    there.put(digest(3), image(3))
    for each in (images, there):
        for number, side in ((1, 8), (2, 5), (3, 8)):
            found = each.get(digest(number))
            assert found is not None
            assert torch.equal(found, image(number, side))


def test_several_processes_write_at_a_time() -> None:
    def write(first: int) -> None:
        images = DecodedImages("a", GIB)
        for number in range(first, first + 60):
            images.put(digest(number), image(number))

    writers = [FORK.Process(target=write, args=(first,)) for first in (0, 30, 60)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    images = DecodedImages("a", GIB)
    for number in range(120):
        found = images.get(digest(number))
        assert found is not None
        assert torch.equal(found, image(number))


@pytest.mark.parametrize("bits", [lambda image: image * 0.999, lambda image: image.to(torch.float64)])
def test_what_would_come_back_changed_is_not_stored(bits: object, cache: Path) -> None:
    images = DecodedImages("a", GIB)
    images.put(digest(1), bits(image(1)))  # type: ignore[operator]
    assert images.get(digest(1)) is None


def test_damage_is_decoded_again(cache: Path) -> None:
    images = DecodedImages("a", GIB)
    for number in range(3):
        images.put(digest(number), image(number))
    pixels, index = cache / "a" / "pixels", cache / "a" / "index"
    data = bytearray(pixels.read_bytes())
    data[5] ^= 1  # of the first
    pixels.write_bytes(data[:-7])  # the end of the last
    index.write_bytes(index.read_bytes() + b"half a record")
    there = DecodedImages("a", GIB)
    assert [there.get(digest(number)) is None for number in range(3)] == [True, False, True]
    there.put(digest(7), image(7))
    again = DecodedImages("a", GIB)
    assert torch.equal(again.get(digest(7)), image(7))


def test_it_is_bounded_and_gives_up_what_was_not_used_for_longest(cache: Path) -> None:
    size = image(0).numel()
    for key in ("old", "older"):
        images = DecodedImages(key, GIB)
        for number in range(4):
            images.put(digest(number), image(number))
    os.utime(cache / "older" / "index", (1, 1))
    os.utime(cache / "old" / "index", (2, 2))
    new = DecodedImages("new", 8 * size + 1000)
    for number in range(20):
        new.put(digest(number), image(number))
    assert not (cache / "older").exists()
    assert not (cache / "old").exists()
    assert sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) <= 8 * size + 1000
    assert new.get(digest(0)) is not None
    assert new.get(digest(19)) is None


def test_the_name_of_pixels_is_that_of_the_transform(tmp_path: Path) -> None:
    one = pixels_key(StandardTransform(8, 8), None)
    assert one is not None
    assert one == pixels_key(StandardTransform(8, 8), None)
    others = [pixels_key(StandardTransform(9, 8), None), pixels_key(StandardTransform(8, 8), StandardTransform(9, 9))]
    assert len({one, *others}) == 3
    assert pixels_key(lambda image: image, None) is None  # it may depend on more than its text


def test_its_files_are_closed_with_it() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        DecodedImages("a", GIB).put(digest(1), image(1))
    assert len(os.listdir("/proc/self/fd")) <= before + 1

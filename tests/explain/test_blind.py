"""The search for protocols, asked for values that PIL, torchvision, torch and open_clip alone give.

`benchmarks/explain_blind.py` asks for all variants on a test set of 20,000 images.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import blind_world as world
import numpy as np
import pytest
from blind_variants import CELLS, Blind, images, scores, texts

from testbed.explain.axis import NotApplicableError, Stage, Variant, axes
from testbed.explain.bench import Bench
from testbed.explain.cell import StoredCell

METRICS = ("top1", "top5", "mean_per_class_recall")
SINGLES = [
    ("classifier", "class order: numbers for folders that were sorted as text"),
    ("classifier", "labels: the labels of blind-relabelled"),
    ("fewer", "candidate classes: all 16 classes compete"),
    ("clip", "templates: CLIP's best 7 for ImageNet"),
    ("clip", "class names: the data set's own"),
    ("clip", "spelling of prompts: no punctuation"),
    ("clip", "context length: texts cut after 8 tokens"),
    ("classifier", "image size: 24 pixels"),
    ("classifier", "channel order: blue first"),
    ("classifier", "mean and standard deviation: 0.5 and 0.5"),
    ("classifier", "resizing: none, only cropped"),
    ("clip", "resizing: squashed to the input's shape"),
]
EXACT = 7  # of them need no images
ALL = 20_000  # forward passes: as many as the arms may take
ROUNDED = ("image size: 27 pixels", "image size: 55 pixels")  # the resized side may be rounded down or not
PAIRS = [
    ("clip", "templates: one prompt, '{c}'", "labels: the labels of blind-relabelled"),
    ("fewer", "candidate classes: all 16 classes compete", "first samples: the first 250"),
]


@pytest.fixture(scope="module")
def blind(tmp_path_factory: Any) -> Iterator[Blind]:
    folder = world.make(tmp_path_factory.mktemp("blind") / "world", world.SMALL)
    made = Blind(folder, folder / "store.db")
    with made.store:
        yield made


def variants(opened: StoredCell, *stages: Stage) -> dict[str, Variant]:
    found: dict[str, Variant] = {}
    for axis in axes():
        with contextlib.suppress(NotApplicableError):
            found |= {str(each): each for each in (axis.of(opened) if axis.stage in stages else ())}
    return found


@pytest.mark.parametrize("cell", CELLS)
def test_exact_values_are_those_of_the_reference(blind: Blind, cell: str) -> None:
    model, setting, _ = CELLS[cell]
    opened = StoredCell.open(blind.store, blind.catalog, model, setting)
    bench = Bench(opened, METRICS)
    found = variants(opened, Stage.SCORES, *([Stage.TEXTS] if cell == "clip" else []))
    known = [*scores(cell, blind.size(cell)), *(texts() if cell == "clip" else ())]
    assert {name for name, _ in known} <= found.keys()
    for name, _ in known:
        values = blind.values(cell, [name])
        for metric, estimate in zip(METRICS, bench.exact((found[name],)), strict=True):
            within = 1e-12 if found[name].stage == Stage.SCORES else 1.01 / blind.size(cell)
            assert estimate.value == pytest.approx(values[metric], abs=within, rel=0), (name, metric)


@pytest.mark.parametrize("cell", ["classifier", "clip"])
def test_outputs_under_other_preprocessing_are_those_of_the_reference(blind: Blind, cell: str) -> None:
    model, setting, protocol = CELLS[cell]
    opened = StoredCell.open(blind.store, blind.catalog, model, setting)
    bench = Bench(opened, ["top1"])
    found = variants(opened, Stage.IMAGES)
    rows = range(0, blind.size(cell), blind.size(cell) // 24)
    for name, changes in images(cell):
        if name in found and name not in ROUNDED:
            pixels = bench.pixels((found[name],))
            bench.images.run([pixels], rows)
            expected = blind.reference.run(protocol.changed(**changes).images, rows)
            within = 0.2 if name.startswith("precision") else 1e-4
            np.testing.assert_allclose(bench.images.outputs(pixels, rows), expected, within, within, err_msg=name)


def test_single_variants_are_found(blind: Blind) -> None:
    asked = [
        blind.ask(cell, [truth], {"top1": blind.values(cell, [truth])["top1"]}, samples=ALL) for cell, truth in SINGLES
    ]
    assert [each for each in asked if not each.recovered] == []
    assert all(each.forwards == 0 for each in asked[:EXACT])


def test_pairs_are_found(blind: Blind) -> None:
    for cell, *truth in PAIRS:
        values = blind.values(cell, truth)
        given = {metric: values[metric] for metric in ("top1", "mean_per_class_recall")}
        asked = blind.ask(cell, truth, given, samples=ALL, stages=[Stage.SCORES, Stage.TEXTS])
        assert asked.recovered, asked


def test_numbers_that_no_variant_gives_are_unexplained(blind: Blind) -> None:
    for cell in ("classifier", "fewer"):
        names = [name for name, _ in scores(cell, blind.size(cell))]
        known = {blind.values(cell, [name])["top1"] for name in names} | set(blind.values(cell).values())
        free = [place / 1000 for place in range(300, 700) if min(abs(place / 1000 - each) for each in known) > 0.005]
        assert not blind.ask(cell, [], {"top1": free[len(free) // 2]}, stages=[Stage.SCORES]).explained

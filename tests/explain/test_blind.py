"""The search for protocols, asked for values that PIL, torchvision, torch and open_clip alone give.

`benchmarks/explain_blind.py` asks for all variants on a test set of 20,000 images.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import blind_world as world
import pytest
from blind_variants import CELLS, Blind, scores, texts

from testbed.explain.axis import Stage, axes
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
PAIRS = [
    ("clip", "templates: one prompt, '{c}'", "labels: the labels of blind-relabelled"),
    ("classifier", "resizing: none, only cropped", "unreadable images: unreadable images left out"),
]


@pytest.fixture(scope="module")
def blind(tmp_path_factory: Any) -> Iterator[Blind]:
    folder = world.make(tmp_path_factory.mktemp("blind") / "world", world.SMALL)
    made = Blind(folder, folder / "store.db")
    with made.store:
        yield made


@pytest.mark.parametrize("cell", CELLS)
def test_exact_values_are_those_of_the_reference(blind: Blind, cell: str) -> None:
    model, setting, _ = CELLS[cell]
    opened = StoredCell.open(blind.store, blind.catalog, model, setting)
    bench = Bench(opened, METRICS)
    stages = [Stage.SCORES, Stage.TEXTS] if cell == "clip" else [Stage.SCORES]
    found = {str(each): each for axis in axes() if axis.stage in stages for each in axis.of(opened)}
    known = [*scores(cell, blind.size(cell)), *(texts() if cell == "clip" else ())]
    assert {name for name, _ in known} <= found.keys()
    for name, _ in known:
        values = blind.values(cell, [name])
        for metric, estimate in zip(METRICS, bench.exact((found[name],)), strict=True):
            within = 1e-12 if found[name].stage == Stage.SCORES else 1.01 / blind.size(cell)
            assert estimate.value == pytest.approx(values[metric], abs=within, rel=0), (name, metric)


def test_single_variants_are_found(blind: Blind) -> None:
    asked = [blind.ask(cell, [truth], {"top1": blind.values(cell, [truth])["top1"]}) for cell, truth in SINGLES]
    assert [each for each in asked if each.verdict not in ("gives it", "undecided")] == []
    assert [each for each in asked if not each.recovered][1:] == []  # one may be
    assert all(each.forwards == 0 for each in asked[:7])


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " + ".join(pair[1:]))
def test_pairs_are_found(blind: Blind, pair: tuple[str, ...]) -> None:
    cell, *truth = pair
    values = blind.values(cell, truth)
    asked = blind.ask(cell, truth, {metric: values[metric] for metric in ("top1", "mean_per_class_recall")})
    assert asked.recovered, asked


def test_numbers_that_no_variant_gives_are_unexplained(blind: Blind) -> None:
    for cell in ("classifier", "clip"):
        known = {blind.values(cell, [name])["top1"] for name in blind.variants(cell)} | set(blind.values(cell).values())
        free = [place / 1000 for place in range(600) if min(abs(place / 1000 - each) for each in known) > 0.005]
        assert not blind.ask(cell, [], {"top1": free[len(free) // 2]}).explained

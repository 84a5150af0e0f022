"""The search for protocols, asked for values that PIL, torchvision, torch and open_clip alone give.

`benchmarks/explain_blind.py` asks for all variants on a test set of 20,000 images.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import blind_world as world
import numpy as np
import pytest
import torch
from blind_variants import CELLS, ROUNDING, Blind, images, scores, texts

from testbed.extensions.explain.axis import NotApplicableError, Stage, Variant, axes
from testbed.extensions.explain.bench import Arm, Bench
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.race import Race
from testbed.extensions.explain.sampling import SampledValue
from testbed.extensions.explain.search import explain

# It trains three networks, and searches pairs for minutes; the other files of this folder show the parts.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
METRICS = ("top1", "top5", "mean_per_class_recall")
SINGLES = [
    ("classifier", "class order: numbers for folders that were sorted as text"),
    ("classifier", "labels: the labels of blind-relabelled"),
    ("fewer", "candidate classes: all 16 classes compete"),
    ("clip", "templates: CLIP's best 7 for ImageNet"),
    ("clip", "context length: texts cut after 8 tokens"),
    ("classifier", "image size: 24 pixels"),
    ("clip", "resizing: squashed to the input's shape"),
]
MORE = [
    ("clip", "class names: the data set's own"),
    ("clip", "spelling of prompts: no punctuation"),
    ("classifier", "mean and standard deviation: 0.5 and 0.5"),
    ("classifier", "resizing: none, only cropped"),
]
EXACT = 5  # of them need no images: none is run, but where chance alone would give the value as well
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


def variants(opened: EvaluatedCell, *stages: Stage) -> dict[str, Variant]:
    found: dict[str, Variant] = {}
    for axis in axes():
        with contextlib.suppress(NotApplicableError):
            found |= {str(each): each for each in (axis.of(opened) if axis.stage in stages else ())}
    return found


@pytest.mark.parametrize("cell", CELLS)
def test_exact_values_are_those_of_the_reference(blind: Blind, cell: str) -> None:
    model, setting, _ = CELLS[cell]
    opened = EvaluatedCell.open(blind.store, blind.catalog, model, setting)
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
    opened = EvaluatedCell.open(blind.store, blind.catalog, model, setting)
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


def calibration_error(probabilities: torch.Tensor, right: np.ndarray[Any, Any]) -> float:
    """Over 15 bins, each open below."""
    confidence = probabilities.amax(dim=1)
    total = 0.0
    for low in range(15):
        inside = ((confidence > low / 15) & (confidence <= (low + 1) / 15)).numpy()
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence.numpy()[inside].mean())
    return float(total)


def cosines_of(blind: Blind) -> tuple[torch.Tensor, np.ndarray[Any, Any]]:
    """Those of the readable images, and whether the largest is that of the right class."""
    cosines = torch.from_numpy(blind.reference.logits(CELLS["clip"][2]))
    readable = ~cosines.isnan().any(dim=1)
    labels = blind.reference.labels["test"][readable.numpy()]
    return cosines[readable], cosines[readable].argmax(dim=1).numpy() == labels


def test_only_calibration_depends_on_how_logits_become_probabilities(blind: Blind) -> None:
    model, setting, _ = CELLS["clip"]
    cosines, right = cosines_of(blind)
    own = world.load(blind.reference.folder, "clip")[0].logit_scale.exp().item()
    expected = {
        "logit scale: 1: logits are cosines": cosines.softmax(dim=1),
        "logit scale: 14.3, as before training": (cosines / 0.07).softmax(dim=1),
        "logit scale: the network's own, with its bias": (own * cosines).softmax(dim=1),
        "probabilities: sigmoid of each logit": (100 * cosines).sigmoid(),
    }
    opened = EvaluatedCell.open(blind.store, blind.catalog, model, setting)
    found = variants(opened, Stage.SCORES)
    bench, accuracy = Bench(opened, ["ece"]), Bench(opened, ["top1"])
    (stored,) = bench.exact(())
    assert stored.value == pytest.approx(calibration_error((100 * cosines).softmax(dim=1), right), abs=1e-4)
    for name, probabilities in expected.items():
        (estimate,) = bench.exact((found[name],))
        assert estimate.value == pytest.approx(calibration_error(probabilities, right), abs=1e-4), name
        assert accuracy.idle(found[name]), name


def test_a_published_calibration_error_is_explained_without_images(blind: Blind) -> None:
    model, setting, _ = CELLS["clip"]
    cosines, right = cosines_of(blind)
    value = calibration_error((cosines / 0.07).softmax(dim=1), right)
    told = explain(blind.store, blind.catalog, model, setting, {"ece": (round(value, 4), ROUNDING)})
    assert [each.name for each in told.giving] == ["logit scale: 14.3, as before training"]
    assert told.forwards == 0
    assert told.not_tried["interpolation"] == "ece is not estimated from some of the images"


@pytest.mark.parametrize("singles", [SINGLES[:EXACT], SINGLES[EXACT:], MORE])
def test_single_variants_are_found(blind: Blind, singles: list[tuple[str, str]]) -> None:
    asked = [
        blind.ask(cell, [truth], {"top1": blind.values(cell, [truth])["top1"]}, samples=ALL) for cell, truth in singles
    ]
    assert [each for each in asked if not each.recovered] == []
    if singles == SINGLES[:EXACT]:
        assert [not each.forwards for each in asked] == [each.explained for each in asked]
        assert sum(each.explained for each in asked) >= 3


def test_where_something_stored_gives_the_very_number_both_are_offered_if_images_are_run(blind: Blind) -> None:
    truth, stored = "channel order: blue first", "metric: 100 − top-5"
    published = {"top1": blind.values("classifier", [truth])["top1"]}
    assert round(published["top1"], 4) == round(1 - blind.values("classifier")["top5"], 4)
    asked = blind.ask("classifier", [truth], published)
    assert (asked.verdict, asked.others, asked.forwards) == ("not tried", [stored], 0)
    asked = blind.ask("classifier", [truth], published, thorough=True)
    assert (asked.verdict, asked.others) == ("gives it", [stored])


@pytest.mark.parametrize("pair", PAIRS)
def test_pairs_are_found_without_images(blind: Blind, pair: tuple[str, ...]) -> None:
    cell, *truth = pair
    values = blind.values(cell, truth)
    asked = blind.ask(cell, truth, {metric: values[metric] for metric in METRICS}, samples=0)
    assert asked.recovered, asked
    assert not asked.read, asked


def test_a_pair_that_chance_would_hardly_give_keeps_images_from_being_run(blind: Blind) -> None:
    """Of 600 samples, 600 pairs would give two metrics about once by chance, three metrics hardly ever."""
    cell, *truth = PAIRS[0]
    values = blind.values(cell, truth)
    asked = blind.ask(cell, truth, {metric: values[metric] for metric in METRICS})
    assert asked.recovered, asked
    assert not asked.read, asked
    assert asked.sentence.endswith("Preprocessing was not tried: --thorough tries it."), asked


def test_a_pair_that_chance_may_give_does_not_keep_images_from_being_run(blind: Blind) -> None:
    cell, *truth = PAIRS[1]
    asked = blind.ask(cell, truth, {"top1": blind.values(cell, truth)["top1"]}, samples=64)
    assert asked.forwards, asked


def test_pairs_of_preprocessing_are_found_where_several_metrics_tell_them_apart(blind: Blind) -> None:
    truth = ["interpolation: nearest", "resizing: squashed to the input's shape"]
    values = blind.values("classifier", truth)
    asked = blind.ask("classifier", truth, {metric: values[metric] for metric in METRICS})
    assert asked.recovered, asked
    few = blind.ask("classifier", truth, {metric: values[metric] for metric in METRICS}, samples=1000)
    assert not few.explained, few
    assert re.search(r"--samples \d+ would decide most", few.sentence), few


def test_a_single_variant_that_pairs_excluded_is_said_to_be_excluded(
    blind: Blind, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Race.run

    def excluding(race: Race, arms: Iterable[Arm], budget: int, until_sure: bool = False) -> None:
        run(race, arms, budget, until_sure)
        if until_sure:  # that is, with pairs
            race.known.update(
                {arm: (SampledValue(1e-9, 1e-6, 500),) * len(METRICS) for arm in race.known if len(arm) == 1}
            )

    monkeypatch.setattr(Race, "run", excluding)
    values = blind.values("classifier", ["interpolation: nearest", "resizing: squashed to the input's shape"])
    published = {metric: (round(values[metric], 4), ROUNDING) for metric in METRICS}
    told = explain(blind.store, blind.catalog, *CELLS["classifier"][:2], published, samples=1000)
    assert {row.verdict for row in told.rows if row.estimates[0].samples} == {"excluded"}


def test_a_pair_is_told_from_its_variants_before_it_counts(blind: Blind, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Race.run

    def forgetting(race: Race, arms: Iterable[Arm], budget: int, until_sure: bool = False) -> None:
        run(race, arms, budget, until_sure)
        if until_sure:
            rough = tuple(SampledValue(target.value + 0.05, 0.02, 32) for target in race.targets)
            race.known.update({arm: rough for arm in race.known if len(arm) == 1})
            race.sizes.update({arm: 32 for arm in race.known if len(arm) == 1})

    monkeypatch.setattr(Race, "run", forgetting)
    truth = ["interpolation: nearest", "resizing: squashed to the input's shape"]
    values = blind.values("classifier", truth)
    asked = blind.ask("classifier", truth, {metric: values[metric] for metric in METRICS})
    assert asked.recovered, asked
    assert asked.explained, asked


def test_numbers_that_no_variant_gives_are_unexplained(blind: Blind) -> None:
    for cell in ("classifier", "fewer"):
        names = [name for name, _ in scores(cell, blind.size(cell))]
        known = {blind.values(cell, [name])["top1"] for name in names} | set(blind.values(cell).values())
        free = [place / 1000 for place in range(300, 700) if min(abs(place / 1000 - each) for each in known) > 0.005]
        assert not blind.ask(cell, [], {"top1": free[len(free) // 2]}, stages=[Stage.SCORES]).explained


@pytest.mark.parametrize("most", [500, 3000])
def test_no_more_images_go_through_the_network_than_allowed(blind: Blind, most: int) -> None:
    truth = "interpolation: nearest"
    published = {"top1": blind.values("classifier", [truth])["top1"]}
    asked = blind.ask("classifier", [truth], published, samples=most, stages=[Stage.IMAGES])
    assert 0.5 * most < asked.forwards * blind.size("classifier") <= most
    assert asked.verdict != "excluded"


def test_small_sets_are_run_until_one_variant_is_left(blind: Blind) -> None:
    truth = "mean and standard deviation: 0.5 and 0.5"
    asked = blind.ask("classifier", [truth], {"top1": blind.values("classifier", [truth])["top1"]})
    assert asked.recovered
    assert asked.others == []
    assert asked.forwards * blind.size("classifier") < 10_000

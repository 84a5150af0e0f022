"""Models that are made of others: computed from stored outputs alone, identified by what they are made of."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special
from toy import CLASSES, WORK, ToyDataset, ToyNetwork, toy_catalog, toy_model, toy_setting
from toy_towers import toy_encoder

from testbed.errors import DefinitionError
from testbed.execution.report import Report
from testbed.extensions.analyses.why import why_today
from testbed.graph.cells import Action, Plan
from testbed.graph.options import RunOptions
from testbed.metrics.combining import fit_temperature, mean_probabilities, shares_by_em, with_prior
from testbed.models.derived import DerivedFamily
from testbed.runner.dry_run import make_plan
from testbed.runner.greedy import MemberResults, choose_soups
from testbed.runner.recompute import amount
from testbed.runner.scrub import verify_store

COUNT = 60
EXACT = 1e-12
BOTH = "ensemble:a+b"
COUNTED = ("images read", "images through networks", "networks made")


class Scaled(ToyNetwork):
    """Its logits are scaled by a number in a file, which no definition shows."""

    def __init__(self, seed: int, file: Path) -> None:
        super().__init__(seed)
        self.file = str(file)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images) * float(Path(self.file).read_text())


class Known(ToyDataset):
    """Images of which the networks of the seeds 1 and 2 know something."""

    def open(self) -> Any:
        source = super().open()
        before = dict(WORK)
        with torch.no_grad():
            logits = sum(ToyNetwork(seed)(tensor_of(source)) for seed in (1, 2))
        WORK.clear()
        WORK.update(before)
        generator = np.random.default_rng(self.seed)
        guesses = generator.integers(0, CLASSES, self.count)
        known = generator.random(self.count) < 0.7
        source.targets = [int(each) for each in np.where(known, logits.argmax(dim=1), guesses)]
        return source


def tensor_of(source: Any) -> torch.Tensor:
    return torch.from_numpy(source.pixels).permute(0, 3, 1, 2).float() / 255


def with_family(*definitions: Any) -> Any:
    catalog = toy_catalog(*definitions)
    catalog.add_model_family(DerivedFamily(catalog))
    return catalog


def member(name: str, seed: int, **options: Any) -> Any:
    return toy_model(name, seed, **{"weights": f"of seed {seed}", **options})


def setting(name: str = "val", seed: int = 0, **options: Any) -> Any:
    return toy_setting(name, COUNT, **{"dataset": Known(COUNT, seed), **options})


@pytest.fixture
def catalog() -> Any:
    return with_family(member("a", 1), member("b", 2), setting(), setting("test", 7))


def ended(report: Any) -> dict[tuple[str, str], str]:
    return {(each.model, each.setting): each.status for each in report.outcomes}


def one(report: Any) -> Any:
    (outcome,) = report.outcomes
    return outcome


def reported(lab: Any, model: str, name: str = "val") -> np.ndarray:
    """The logits of the evaluation that counts."""
    with lab.open() as store:
        (evaluation,) = {each.evaluation_id for each in store.results.find([model], [name])}
        return np.array(store.outputs.read(evaluation, "logits"), dtype=np.float64)


def targets(name_seed: int = 0) -> np.ndarray:
    return np.array(Known(COUNT, name_seed).open().targets)


# From stored outputs --------------------------------------------------------------------------------------------------


def test_members_are_run_once_where_they_are_not_stored(lab: Any, work: Any) -> None:
    catalog = with_family(toy_model("a", 1), toy_model("b", 2), setting())
    assert one(lab.run(catalog, [BOTH], ["val"])).status == "complete"
    assert [work[each] for each in COUNTED[:2]] == [COUNT, 2 * COUNT]
    assert set(ended(lab.run(catalog, ["a", "b", BOTH], ["val"])).values()) == {"stored"}
    assert [work[each] for each in COUNTED[:2]] == [COUNT, 2 * COUNT]
    assert lab.metrics("a", "val")["top1"].n == COUNT  # which counts as any other result


def test_where_members_are_stored_no_image_is_read_and_no_model_loaded(lab: Any, catalog: Any, work: Any) -> None:
    lab.run(catalog, ["a", "b"], ["val", "test"])
    work.clear()
    names = [BOTH, "ensemble.logits:a+b", "ensemble.ranks:a+b", "a@temperature=val", "a@prior=em", "a@prior=oracle"]
    report = lab.run(catalog, names, ["val", "test"])
    assert set(ended(report).values()) == {"complete"}
    assert [work[each] for each in COUNTED] == [0, 0, 0]


def test_outputs_and_metrics_are_those_computed_by_hand(lab: Any, catalog: Any) -> None:
    lab.run(catalog, [BOTH], ["val"])
    a, b = (lab.logits(name, "val").astype(np.float64) for name in "ab")
    expected = (special.softmax(a, axis=1) + special.softmax(b, axis=1)) / 2
    found = lab.logits(BOTH, "val")
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.log(expected), rtol=0, atol=EXACT)
    metrics, truth = lab.metrics(BOTH, "val"), targets()
    assert metrics["top1"].value == pytest.approx((expected.argmax(axis=1) == truth).mean(), abs=EXACT)
    assert metrics["nll"].value == pytest.approx(-np.log(expected[np.arange(COUNT), truth]).mean(), abs=EXACT)


def test_a_temperature_is_fitted_on_one_setting_and_held_on_others(lab: Any, catalog: Any) -> None:
    lab.run(catalog, ["a@temperature=val"], ["val", "test"])
    assert {each.setting for each in lab.run(catalog, ["a"]).outcomes if each.status == "stored"} == {"val", "test"}
    temperature = fit_temperature(lab.logits("a", "val"), targets())
    for name in ("val", "test"):
        expected = lab.logits("a", name).astype(np.float64) / temperature
        np.testing.assert_allclose(lab.logits("a@temperature=val", name), expected, rtol=0, atol=EXACT)
        plain, scaled = lab.metrics("a", name), lab.metrics("a@temperature=val", name)
        assert plain["top1"].value == scaled["top1"].value
    assert lab.metrics("a@temperature=val", "val")["nll"].value < lab.metrics("a", "val")["nll"].value


def test_a_run_says_what_was_fitted_and_where(lab: Any, catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(lab.progress, "note", said.append)
    catalog.add_eval_setting(setting("half", idx_subsample_list=list(range(0, COUNT, 2)), size=COUNT // 2))
    lab.run(catalog, ["a@temperature=half", "a@prior=em", "a@prior=oracle"], ["half", "val", "test"])
    notes = {each.partition(": ")[0]: each.partition(": ")[2] for each in said}
    assert notes["a@temperature=half on half"].endswith(
        ", fitted to 30 samples of half: fitted here, on the very samples that it is evaluated on"
    )
    assert notes["a@temperature=half on val"].endswith("of half, which has 30 of the 60 images of this setting")
    assert notes["a@temperature=half on test"].endswith("fitted to 30 samples of half")
    assert notes["a@prior=em on val"].endswith("estimated here without labels")
    assert notes["a@prior=oracle on val"].endswith("of the labels here: an oracle")


def test_a_prior_is_estimated_from_all_samples_of_the_setting(lab: Any, catalog: Any) -> None:
    lab.run(catalog, ["a@prior=em"], ["val"])
    logits = lab.logits("a", "val")
    expected = with_prior(logits, shares_by_em(logits.astype(np.float64)))
    np.testing.assert_allclose(lab.logits("a@prior=em", "val"), expected, rtol=0, atol=EXACT)


def test_a_prior_is_counted_from_the_labels_of_another_setting(lab: Any, catalog: Any) -> None:
    lab.run(catalog, ["a@prior=test", "a@prior=val", "a@prior=oracle"], ["val"])
    counts = np.bincount(targets(7), minlength=CLASSES) + 1
    joint = special.softmax(lab.logits("a", "val").astype(np.float64), axis=1) * counts / counts.sum() * CLASSES
    found = special.softmax(lab.logits("a@prior=test", "val"), axis=1)
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=0, atol=EXACT)
    np.testing.assert_array_equal(lab.logits("a@prior=val", "val"), lab.logits("a@prior=oracle", "val"))


def test_a_prior_is_counted_where_the_classes_are_the_same(lab: Any) -> None:
    few = setting("few", class_sublist=[7, 2, 5], num_classes=CLASSES)
    groups = setting("groups", class_groups=[[0, 1], list(range(2, CLASSES))])
    names = [f"class {index}" for index in range(CLASSES)]
    ordered = setting("ordered", dataset=Named(COUNT, names=names))
    turned = setting("turned", dataset=Named(COUNT, names=[*names[:8], names[9], names[8]]))
    catalog = with_family(member("a", 1), setting(), few, groups, ordered, turned)
    differ = "evaluate different classes"
    reasons = {
        ("few", "val"): ("unsupported", f"val and few {differ} (10 and 3); a@prior=few takes the share of each class"),
        ("val", "few"): ("unsupported", f"few and val {differ} (3 and 10); a@prior=val takes the share of each class"),
        ("groups", "val"): ("unsupported", "groups groups classes; a@prior=groups would need the share of each class"),
        ("turned", "ordered"): (
            "failed",
            "a@prior=turned takes the share of each class from turned, whose classes are not those of ordered: class 8"
            " is 'class 9' there, 'class 8' here",
        ),
    }
    for (counted, name), (status, reason) in reasons.items():
        outcome = one(lab.run(catalog, [f"a@prior={counted}"], [name]))
        assert outcome.status == status
        assert reason in outcome.reason


class Named(Known):
    """With names of classes."""

    def __init__(self, count: int, *, names: list[str]) -> None:
        super().__init__(count)
        self.names = names

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "names": self.names}

    def open(self) -> Any:
        source = super().open()
        source.class_names = self.names
        return source


def test_what_is_fitted_is_fitted_once_for_all_settings(
    lab: Any, catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[int] = []
    monkeypatch.setattr(
        "testbed.metrics.combining.fit_temperature",
        lambda logits, labels: fits.append(len(labels)) or fit_temperature(logits, labels),
    )
    catalog.add_eval_setting(setting("part", idx_subsample_list=list(range(10)), size=10))
    lab.run(catalog, ["a@temperature=val", "ensemble:a@temperature=val+b@temperature=val"], ["val", "test", "part"])
    assert fits == [COUNT] * 2  # a and b
    expected = lab.logits("a", "val").astype(np.float64) / fit_temperature(lab.logits("a", "val"), targets())
    np.testing.assert_allclose(lab.logits("a@temperature=val", "part"), expected[:10], rtol=0, atol=EXACT)


def test_derived_models_are_members_of_others(lab: Any, catalog: Any) -> None:
    name = catalog.models.canonical("ensemble:b@temperature=val+a@temperature=val")
    assert name == "ensemble:a@temperature=val+b@temperature=val"
    whole = f"{BOTH}@@temperature=val"
    assert set(ended(lab.run(catalog, [name, whole], ["test"])).values()) == {"complete"}
    scaled = [
        reported(lab, each, "test") / fit_temperature(reported(lab, each), targets()) for each in ("a", "b", BOTH)
    ]
    np.testing.assert_allclose(lab.logits(name, "test"), mean_probabilities(scaled[:2]), rtol=0, atol=EXACT)
    np.testing.assert_allclose(lab.logits(whole, "test"), scaled[2], rtol=0, atol=EXACT)


def test_probabilities_are_those_of_the_evaluated_classes(lab: Any) -> None:
    few = [7, 2, 5]
    part = setting("part", class_sublist=few, num_classes=CLASSES)
    part.metrics_fn = lambda logits, targets: {"classes": float(logits.shape[1])}
    catalog = with_family(member("a", 1), member("b", 2), part)
    lab.run(catalog, [BOTH], ["part"])
    assert lab.metrics(BOTH, "part")["classes"].value == len(few)
    expected = mean_probabilities([lab.logits(each, "part")[:, few] for each in "ab"])
    np.testing.assert_allclose(lab.logits(BOTH, "part"), expected, rtol=0, atol=EXACT)


def test_a_sample_that_could_not_be_read_counts_as_wrong(lab: Any) -> None:
    broken = setting("broken", dataset=Known(COUNT, broken=[3]))
    catalog = with_family(member("a", 1), member("b", 2), broken)
    lab.run(catalog, [BOTH, "a@prior=em", "a@temperature=broken"], ["broken"])
    for name in (BOTH, "a@prior=em", "a@temperature=broken"):
        assert np.isnan(lab.logits(name, "broken")[3]).all()
        assert lab.metrics(name, "broken")["top1"].n == COUNT


def test_samples_may_be_repeated(lab: Any) -> None:
    catalog = with_family(member("a", 1), member("b", 2), setting("often", idx_subsample_list=[4, 4, 2], size=3))
    assert one(lab.run(catalog, [BOTH], ["often"])).status == "complete"
    found = lab.logits(BOTH, "often")
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_classifiers_and_dual_encoders_go_together(lab: Any, work: Any) -> None:
    names = [f"class {index}" for index in range(CLASSES)]
    prompted = setting("prompted", class_names=names, templates=["a {c}"])
    catalog = with_family(member("a", 1), toy_encoder("clip", weights="w"), prompted)
    assert one(lab.run(catalog, ["ensemble:a+clip"], ["prompted"])).status == "complete"
    expected = mean_probabilities([lab.logits(each, "prompted") for each in ("a", "clip")])
    np.testing.assert_allclose(lab.logits("ensemble:a+clip", "prompted"), expected, rtol=0, atol=EXACT)


# What cannot be -------------------------------------------------------------------------------------------------------


def test_what_members_cannot_do_is_said_in_one_line(lab: Any, catalog: Any) -> None:
    catalog.add_model(member("five", 3, classes=5))
    catalog.add_eval_setting(setting("attacked", adversarial_attack={"perturbation": "pgd"}))
    catalog.add_eval_setting(setting("groups", class_groups=[[0, 1], list(range(2, CLASSES))]))
    catalog.add_eval_setting(setting("free", num_classes=None))
    ways = (
        "give the names of the outputs (--class-order FILE, for checkpoints), fine-tune the model on these classes, or"
        " use a dual encoder"
    )
    said = f"five returns 5 logits, and nothing determines which of them these classes are: {ways}"
    reasons = {
        ("ensemble:a+five", "val"): f"val has 10 classes; {said}",
        ("ensemble:a+five", "free"): (
            "the members of ensemble:a+five have different numbers of classes: a returns 10 and five returns 5 logits;"
            " if they know the classes by name: free.among-present"
        ),
        ("a@prior=em", "groups"): "groups groups classes; a@prior=em would need the share of each class",
    }
    for (model, name), reason in reasons.items():
        outcome = one(lab.run(catalog, [model], [name]))
        assert (outcome.status, outcome.reason) == ("unsupported", reason)


def test_the_failure_of_a_member_is_the_failure_of_the_ensemble(lab: Any) -> None:
    def broken() -> Any:
        raise OSError("the file is torn")

    catalog = with_family(member("a", 1), toy_model("b", classifier_loader=broken, weights="b"), setting())
    outcome = one(lab.run(catalog, [BOTH], ["val"]))
    assert outcome.status == "failed"
    assert outcome.reason.startswith("b on val, which it needs, failed: ")
    assert "the file is torn" in outcome.reason


# Never stale ----------------------------------------------------------------------------------------------------------


def test_a_member_with_other_weights_makes_another_ensemble(lab: Any, catalog: Any) -> None:
    first = one(lab.run(catalog, [BOTH], ["val"]))
    other = with_family(member("a", 1), member("b", 3), setting())
    second = one(lab.run(other, [BOTH], ["val"]))
    assert (second.status, second.evaluation_id != first.evaluation_id) == ("complete", True)
    expected = mean_probabilities([reported(lab, "a"), reported(lab, "b")])
    np.testing.assert_allclose(reported(lab, BOTH), expected, rtol=0, atol=EXACT)
    assert one(lab.run(catalog, [BOTH], ["val"])).status != "failed"


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((BOTH, how) for how in ("together", "override")),
        ("a@temperature=val", "together"),
        ("ensemble:a@temperature=val+b", "the member before"),
    ],
)
def test_a_member_that_is_evaluated_again_is_taken_again(lab: Any, tmp_path: Path, name: str, how: str) -> None:
    file = tmp_path / "number.txt"
    file.write_text("1")
    scaled = member("a", 1, classifier_loader=lambda: Scaled(1, file))
    catalog = with_family(scaled, member("b", 2), setting(), setting("test", 7))
    first = one(lab.run(catalog, [name], ["test"]))
    assert one(lab.run(catalog, [name], ["test"])).status == "stored"
    file.write_text("3")
    if how == "the member before":
        lab.run(catalog, ["a"], ["val", "test"])
    if how == "override":
        lab.run(catalog, ["a"], ["val", "test"], override=True)
    again = one(lab.run(catalog, [name], ["test"]))
    assert (again.status, again.evaluation_id != first.evaluation_id) == ("complete", True)
    fresh = [reported(lab, each, "test") for each in "a"]
    if name != BOTH:
        fresh = [fresh[0] / fit_temperature(reported(lab, "a"), targets())]
    if name != "a@temperature=val":
        fresh = [mean_probabilities([*fresh, reported(lab, "b", "test")])]
    np.testing.assert_allclose(reported(lab, name, "test"), fresh[0], rtol=0, atol=EXACT)
    assert one(lab.run(catalog, [name], ["test"])).status == "stored"


def test_a_change_without_an_effect_costs_the_check_of_the_member(lab: Any, tmp_path: Path, work: Any) -> None:
    file = tmp_path / "number.txt"
    file.write_text("1")
    catalog = with_family(member("a", 1, classifier_loader=lambda: Scaled(1, file)), member("b", 2), setting())
    first = one(lab.run(catalog, [BOTH], ["val"]))
    file.write_text("1.0")
    again = one(lab.run(catalog, [BOTH], ["val"]))
    assert (again.status, again.evaluation_id) == ("stored", first.evaluation_id)
    work.clear()
    assert lab.run(catalog, [BOTH], ["val"]).checks == []
    assert work["images through networks"] == 0


def test_other_labels_where_a_temperature_is_fitted_make_another_model(lab: Any, catalog: Any) -> None:
    lab.run(catalog, ["a@temperature=val"], ["test"])
    before = reported(lab, "a@temperature=val", "test")
    other = setting(dataset=Relabelled(COUNT, 0))
    changed = with_family(member("a", 1), other, setting("test", 7))
    assert one(lab.run(changed, ["a@temperature=val"], ["test"])).status == "complete"
    ratio = before / reported(lab, "a@temperature=val", "test")
    assert np.ptp(ratio) == pytest.approx(0, abs=1e-6)
    assert abs(ratio.mean() - 1) > 0.01


class Relabelled(Known):
    """With other labels of some images."""

    def open(self) -> Any:
        source = super().open()
        source.targets[:10] = [(each + 1) % CLASSES for each in source.targets[:10]]
        return source


# From weights ---------------------------------------------------------------------------------------------------------


def weights(seed: int) -> torch.Tensor:
    return ToyNetwork(seed).weight.detach()


def by_hand(weight: torch.Tensor, seed: int = 0) -> np.ndarray:
    network = ToyNetwork(0)
    network.load_state_dict({"weight": weight})
    with torch.no_grad():
        return np.asarray(network(tensor_of(ToyDataset(COUNT, seed).open())))


def test_weights_are_averaged(lab: Any, catalog: Any, work: Any) -> None:
    catalog.add_model(member("c", 3))
    for name, expected in {
        "wiseft:a,b,0.25": 0.75 * weights(1) + 0.25 * weights(2),
        "wiseft:a,b,0": weights(1),
        "wiseft:a,b,1": weights(2),
        "soup:a+b+c": (weights(1) + weights(2) + weights(3)) / 3,
    }.items():
        assert one(lab.run(catalog, [name], ["val"])).status == "complete"
        np.testing.assert_allclose(lab.logits(name, "val"), by_hand(expected), atol=1e-5)


def test_a_mean_of_weights_is_identified_by_its_members(lab: Any, catalog: Any) -> None:
    lab.run(catalog, ["soup:a+b", "wiseft:a,b,0.5"], ["val"])
    assert one(lab.run(catalog, ["soup:a+b"], ["val"])).status == "stored"
    other = with_family(member("a", 1), member("b", 3), setting())
    assert one(lab.run(other, ["soup:a+b"], ["val"])).status == "complete"
    np.testing.assert_allclose(reported(lab, "soup:a+b"), by_hand((weights(1) + weights(3)) / 2), atol=1e-5)


class Normed(ToyNetwork):
    """With statistics and a count of batches, as BatchNorm has them."""

    def __init__(self, seed: int, batches: int = 5, places: int = 3) -> None:
        super().__init__(seed)
        self.norm = torch.nn.BatchNorm2d(3)
        self.norm.num_batches_tracked.fill_(batches)
        self.norm.running_mean.fill_(seed)
        self.register_buffer("places", torch.arange(places))


def test_statistics_are_averaged_and_counts_are_the_first_ones(catalog: Any) -> None:
    catalog.add_model(member("n", 1, classifier_loader=lambda: Normed(1)))
    catalog.add_model(member("m", 2, classifier_loader=lambda: Normed(2, batches=9)))
    network = catalog.get_model("wiseft:n,m,0.5").make_network()
    assert network.norm.running_mean.tolist() == [1.5] * 3
    assert int(network.norm.num_batches_tracked) == 5


def test_networks_that_do_not_go_together_are_told_apart(lab: Any, catalog: Any) -> None:
    catalog.add_model(member("n", 1, classifier_loader=lambda: Normed(1)))
    catalog.add_model(member("p", 1, classifier_loader=lambda: Normed(1, places=4)))
    catalog.add_model(member("five", 1, classes=5))
    for name, reason in {
        "soup:a+n": "soup:a+n: its members are of different architectures: a has no places",
        "soup:n+p": "soup:n+p: places has the shape (3,) in n and (4,) in p",
        "wiseft:a,five,0.5": "wiseft:a,five,0.5: weight has the shape (768, 10) in a and (768, 5) in five",
    }.items():
        outcome = one(lab.run(catalog, [name], ["val"]))
        assert outcome.status == "failed"
        assert reason in outcome.reason


# Greedy soups ---------------------------------------------------------------------------------------------------------


def greedy_by_hand(seeds: dict[str, int]) -> tuple[list[str], torch.Tensor]:
    """Recipe 1 of Wortsman et al. (2022) in torch alone: the names that are kept, and the mean of their weights."""
    images, truth = tensor_of(ToyDataset(COUNT).open()), torch.tensor(targets())

    def accuracy(weight: torch.Tensor) -> float:
        network = ToyNetwork(0)
        network.load_state_dict({"weight": weight})
        with torch.no_grad():
            return float((network(images).argmax(dim=1) == truth).double().mean())

    def mean(names: list[str]) -> torch.Tensor:
        return torch.stack([weights(seeds[name]).double() for name in sorted(names)]).mean(dim=0).float()

    order = sorted(seeds, key=lambda name: -accuracy(weights(seeds[name])))
    kept = order[:1]
    for name in order[1:]:
        if accuracy(mean([*kept, name])) >= accuracy(mean(kept)):
            kept.append(name)
    return sorted(kept), mean(kept)


SEEDS = {"a": 1, "b": 2, "c": 3}
GREEDY = "soup:a+b+c@@greedy=val"


@pytest.fixture
def candidates() -> Any:
    return with_family(*(member(name, seed) for name, seed in SEEDS.items()), setting(), setting("test", 7))


def test_a_greedy_soup_keeps_what_the_recipe_keeps(
    lab: Any, candidates: Any, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(lab.progress, "note", said.append)
    kept, weight = greedy_by_hand(SEEDS)
    assert 1 < len(kept) < len(SEEDS)
    expected = by_hand(weight, 7)
    work.clear()
    assert one(lab.run(candidates, [GREEDY], ["test"])).status == "complete"
    np.testing.assert_allclose(lab.logits(GREEDY, "test"), expected, atol=1e-5)
    members, soups_tried, itself = len(SEEDS), len(SEEDS) - 1, 1
    assert work["images through networks"] == (members + soups_tried + itself) * COUNT
    (line,) = said
    assert line.startswith(f"{GREEDY}: soup:{'+'.join(kept)}, chosen by top1 on val: ")
    steps = [each.removeprefix("with ") for each in line.partition("on val: ")[2].split(", ")]
    assert sorted(each[0] for each in steps) == [*SEEDS]
    assert sorted(each[0] for each in steps if not each.endswith("(left out)")) == kept
    work.clear()
    assert one(lab.run(candidates, [GREEDY], ["test"])).status == "stored"
    assert one(lab.run(candidates, [f"soup:{'+'.join(kept)}"], ["test"])).status == "derived"
    assert set(ended(lab.run(candidates, [*SEEDS], ["val"])).values()) == {"stored"}
    assert [work[each] for each in COUNTED[1:]] == [0, 0]


def test_greedy_soups_are_corrected_and_a_plan_knows_what_is_stored(lab: Any, candidates: Any) -> None:
    options, name = RunOptions(db_url=lab.url, executor="inline"), f"{GREEDY}@@temperature=val"
    (before,) = make_plan(candidates, options, [name], ["test"]).cells
    assert before.action is Action.FAILED
    assert "a on val, by which members are chosen: not evaluated yet; a run does this first" in before.reason
    evaluation = one(lab.run(candidates, [name], ["test"])).evaluation_id
    kept = f"soup:{'+'.join(greedy_by_hand(SEEDS)[0])}"
    expected = lab.logits(GREEDY, "test").astype(np.float64) / fit_temperature(lab.logits(kept, "val"), targets())
    np.testing.assert_allclose(lab.logits(name, "test"), expected, rtol=0, atol=EXACT)
    (after,) = make_plan(candidates, options, [name], ["test"]).cells
    assert after.action is Action.DONE
    with lab.open() as store:
        assert why_today(store, candidates, store.evaluations.get(evaluation)).identity == []
    verified = verify_store(candidates, options, timedelta(minutes=1), amount("8"), [name])
    assert [each.certificate.equal for each in verified.verified] == [True]


def test_another_member_makes_another_greedy_soup(lab: Any, candidates: Any) -> None:
    first = one(lab.run(candidates, [GREEDY], ["test"]))
    changed = {**SEEDS, "b": 6}
    other = with_family(*(member(*each) for each in changed.items()), setting(), setting("test", 7))
    second = one(lab.run(other, [GREEDY], ["test"]))
    assert second.evaluation_id != first.evaluation_id
    np.testing.assert_allclose(reported(lab, GREEDY, "test"), by_hand(greedy_by_hand(changed)[1], 7), atol=1e-5)


def test_a_choice_that_the_user_ends_ends_the_run(candidates: Any) -> None:
    ended_by_user = Report(Plan(), interrupted=True)
    _, stopped = choose_soups(candidates, RunOptions(), [GREEDY], lambda *_: MemberResults([], {}, ended_by_user))
    assert stopped is ended_by_user


def test_what_keeps_a_greedy_soup_from_being_chosen_is_said(lab: Any, candidates: Any) -> None:
    candidates.add_model(member("n", 1, classifier_loader=lambda: Normed(1)))
    outcome = one(lab.run(candidates, ["soup:a+n@@greedy=val"], ["test"]))
    assert outcome.status == "failed"
    assert "soup:a+n on val, by which members are chosen: " in outcome.reason
    assert "its members are of different architectures: a has no places" in outcome.reason
    with pytest.raises(DefinitionError, match="a run chooses its members by results on val: testbed run"):
        candidates.get_model(GREEDY)

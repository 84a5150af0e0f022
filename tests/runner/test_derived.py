"""Models that are made of others: computed from stored outputs alone, identified by what they are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special
from toy import CLASSES, WORK, ToyDataset, ToyNetwork, toy_catalog, toy_model, toy_setting
from toy_towers import toy_encoder

from testbed.metrics.combining import fit_temperature, mean_probabilities, shares_by_em, with_prior
from testbed.models.derived import DerivedFamily

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
    reasons = {
        ("ensemble:a+five", "val"): "val has 10 classes; five returns 5 logits",
        ("ensemble:a+five", "free"): (
            "the members of ensemble:a+five have different numbers of classes: a returns 10 and five returns 5 logits"
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
        *((BOTH, how) for how in ("together", "the member before", "override")),
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


def by_hand(weight: torch.Tensor) -> np.ndarray:
    network = ToyNetwork(0)
    network.load_state_dict({"weight": weight})
    with torch.no_grad():
        return np.asarray(network(tensor_of(ToyDataset(COUNT).open())))


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

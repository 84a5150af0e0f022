"""Verifying a store within a time: which cells and samples are recomputed, what is stored, what is left out and why.

``WORK.mood`` stands for what no description can see: a server, a driver, a file that C code opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from stored_cells import put_numbers
from toy import WORK, ToyImages, ToyNetwork, noisy, toy_catalog, toy_model, toy_setting
from toy_captions import captioner, hash_encoder, vary
from toy_towers import Targets

from testbed.db.store import Store
from testbed.entities import Metric
from testbed.errors import DataError, UnknownNameError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.options import RunOptions
from testbed.runner import scrub
from testbed.runner.recompute import Amount
from testbed.runner.scrub import Clock, ScrubReport, verify_store
from testbed.runner.standing import standings, tally

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
THROUGH = "images through networks"
LONG = timedelta(hours=1)


class FakeClock(Clock):
    """A second passes with each image that goes through a network; days pass as told.

    Args:
        days: Since `BEGIN`.
        load: How many seconds it takes to load a model.
    """

    def __init__(self, days: float = 0, load: float = 0) -> None:
        self.begin = BEGIN + timedelta(days=days)
        self.load = load

    def now(self) -> datetime:
        return self.begin + timedelta(seconds=self.seconds())

    def seconds(self) -> float:
        return WORK[THROUGH] + self.load * WORK["networks made"]


class Moody(ToyNetwork):
    """Its logits depend on something that nobody describes."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images) * WORK.mood  # type: ignore[attr-defined]


class Picky(ToyNetwork):
    """Dark images get other logits than before, by something that nobody describes."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        dark = images.mean((1, 2, 3)) < images.mean((1, 2, 3)).median()
        return super().forward(images) * torch.where(dark, WORK.mood, 1.0)[:, None]  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _mood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORK, "mood", 1.0, raising=False)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """A function that says which images were read since `WORK` was cleared: their positions, in order."""
    original = ToyImages.image

    def image(self: ToyImages, position: int) -> Any:
        WORK[f"read {position}"] += 1
        return original(self, position)

    monkeypatch.setattr(ToyImages, "image", image)
    return lambda: sorted(int(key.removeprefix("read ")) for key in WORK if key.startswith("read "))


def known(name: str, seed: int = 0, kind: Callable[[int], Any] = ToyNetwork, **options: Any) -> Any:
    """A model whose weights are known without loading it."""
    return toy_model(name, classifier_loader=lambda: kind(seed), weights=f"{name}/{seed}", **options)


def verify(
    lab: Any, catalog: Any, budget: timedelta = LONG, samples: int = 8, days: float = 0, **given: Any
) -> ScrubReport:
    chosen = {name: given.pop(name) for name in ("models", "eval_settings", "progress") if name in given}
    clock = FakeClock(days, given.pop("load", 0))
    options = RunOptions(db_url=lab.url, executor="inline", **given)
    WORK.clear()
    return verify_store(catalog, options, budget, Amount(samples), clock=clock, **chosen)


def cells(done: ScrubReport) -> list[tuple[str, str]]:
    return [(each.evaluation.model, each.evaluation.eval_setting) for each in done.verified]


def reasons(done: ScrubReport) -> dict[str, int]:
    return {reason: len(several) for reason, several in done.not_verified.items()}


def certificates(lab: Any) -> dict[tuple[str, str], list[Any]]:
    with lab.open() as store:
        found = store.evaluations.find()
        known = store.records.certificates([each.id for each in found])
        return {(each.model, each.eval_setting): known[each.id] for each in found}


# Work -------------------------------------------------------------------------------------------------------------


def test_every_cell_gets_a_certificate_and_each_model_is_loaded_once(lab: Any, work: Any) -> None:
    settings = [toy_setting(f"s{number}", count=40 + number) for number in range(3)]
    catalog = toy_catalog(known("a"), known("b", 1), *settings)
    lab.run(catalog)
    done = verify(lab, catalog)
    assert work["networks made"] == 2
    assert work[THROUGH] == 2 * 3 * 8
    assert sorted(cells(done)) == [(model, f"s{number}") for model in "ab" for number in range(3)]
    assert done.ok
    assert (done.tally.cells, done.tally.verified, done.tally.differ) == (6, 6, 0)
    assert not done.not_verified
    assert not done.left
    for (one,) in certificates(lab).values():
        assert (one.samples, one.differing, one.flips) == (8, 0, 0)
        assert one.environment["devices"] == ["cpu"]


def test_nothing_of_the_results_changes(lab: Any) -> None:
    catalog = toy_catalog(known("a", kind=Moody), toy_setting(count=40))
    lab.run(catalog)
    with lab.open() as store:
        before = store.evaluations.find(), store.results.find()
    WORK.mood = 2.0  # type: ignore[attr-defined]
    assert not verify(lab, catalog).ok
    with lab.open() as store:
        assert (store.evaluations.find(), store.results.find()) == before
    report = lab.run(catalog)
    assert [each.status for each in report.outcomes] == ["stored"]


def test_a_subset_and_a_perturbed_setting_are_verified_as_cells_of_their_own(lab: Any) -> None:
    part = toy_setting("part", idx_subsample_list=list(range(10, 30)))
    noise = toy_setting("noise", perturbation_fn_gpu=noisy)
    catalog = toy_catalog(known("a"), toy_setting(), part, noise)
    lab.run(catalog)
    done = verify(lab, catalog)
    assert sorted(cells(done)) == [("a", "noise"), ("a", "part"), ("a", "toy-all")]
    assert done.ok


# Order and time ---------------------------------------------------------------------------------------------------


def test_no_cell_begins_when_the_time_is_over_and_the_next_run_goes_on(lab: Any, work: Any) -> None:
    settings = [toy_setting(f"s{number}", count=40 + number) for number in range(2)]
    catalog = toy_catalog(known("a"), known("b", 1), *settings)
    lab.run(catalog)
    seen: list[tuple[str, str]] = []
    for night in range(2):  # 4 cells of 8 seconds: three begin within 20 seconds
        done = verify(lab, catalog, timedelta(seconds=20), days=night)
        assert (len(done.verified), len(done.left), work[THROUGH]) == (3, 1, 24)
        seen += cells(done)
    assert set(seen[:4]) == set(certificates(lab))
    assert set(seen[4:]) < set(seen[:3])  # those longest unverified
    assert done.tally.verified == 4


def test_one_cell_is_verified_however_short_the_time(lab: Any) -> None:
    catalog = toy_catalog(known("a"), toy_setting("s", count=40), toy_setting("t", count=41))
    lab.run(catalog)
    assert len(verify(lab, catalog, timedelta(seconds=1e-6)).verified) == 1
    assert len(verify(lab, catalog, timedelta(seconds=20), days=1, load=1000).verified) == 1
    assert all(len(each) == 1 for each in certificates(lab).values())


def test_a_cell_that_has_begun_is_finished(lab: Any, work: Any) -> None:
    catalog = toy_catalog(known("a", eval_batch_size=4), toy_setting("s", count=300))
    lab.run(catalog)
    done = verify(lab, catalog, timedelta(seconds=10), samples=300)
    assert work[THROUGH] == 300
    assert [each.certificate.samples for each in done.verified] == [300]


def test_a_new_cell_comes_before_those_that_were_verified(lab: Any) -> None:
    first = toy_catalog(known("a"), known("b", 1), toy_setting("s", count=40))
    lab.run(first)
    verify(lab, first)
    catalog = toy_catalog(known("a"), known("b", 1), toy_setting("s", count=40), toy_setting("t", count=41))
    lab.run(catalog)
    done = verify(lab, catalog, timedelta(seconds=9), days=1)
    assert cells(done) == [("a", "t"), ("b", "t")]


def test_verifications_older_than_thirty_days_no_longer_count(lab: Any) -> None:
    catalog = toy_catalog(known("a"), toy_setting("s", count=40))
    lab.run(catalog)
    verify(lab, catalog)
    with lab.open() as store:
        for days, verified in ((29, 1), (31, 0)):
            assert tally(standings(store), BEGIN + timedelta(days=days)).verified == verified


def test_a_check_of_a_run_counts_as_a_verification(lab: Any) -> None:
    catalog = toy_catalog(known("a"), known("b", 1), toy_setting("s", count=40))
    lab.run(catalog)
    lab.run(catalog, models=["a"], verify="4")
    with lab.open() as store:
        assert [each.evaluation.model for each in standings(store)] == ["b", "a"]
        assert tally(standings(store), datetime.now(UTC)).verified == 1


def test_names_and_patterns_choose_cells(lab: Any) -> None:
    catalog = toy_catalog(known("a"), known("b", 1), toy_setting("s", count=40), toy_setting("t", count=41))
    lab.run(catalog)
    done = verify(lab, catalog, models=["[b]"], eval_settings=["t"])
    assert cells(done) == [("b", "t")]
    assert done.tally.cells == 1
    with pytest.raises(UnknownNameError, match="no outputs of model 'c'"):
        verify(lab, catalog, models=["c"])


# Samples ----------------------------------------------------------------------------------------------------------


def test_other_samples_each_time_until_all_had_their_turn(lab: Any, read: Callable[[], list[int]]) -> None:
    catalog = toy_catalog(known("a"), toy_setting("s", count=8, broken=[3, 5]))
    lab.run(catalog)
    chosen = []
    for night in range(3):  # 6 readable samples, 4 at a time
        verify(lab, catalog, samples=4, days=night)
        chosen.append(read())
    assert all(len(each) == 4 for each in chosen)
    assert {sample for each in chosen[:2] for sample in each} == set(range(8)) - {3, 5}
    assert Counter(sample for each in chosen for sample in each) == dict.fromkeys(set(range(8)) - {3, 5}, 2)


def test_a_check_in_between_does_not_disturb_the_order(lab: Any, read: Callable[[], list[int]]) -> None:
    catalog = toy_catalog(known("a"), toy_setting("s", count=16))
    lab.run(catalog)
    seen: set[int] = set()
    for night in range(2):
        verify(lab, catalog, days=night)
        seen |= set(read())
        lab.run(catalog, verify="8")
    assert seen == set(range(16))


def test_whole_batches_take_turns_where_outputs_depend_on_them(lab: Any) -> None:
    def shaken(images: torch.Tensor) -> torch.Tensor:
        shaking = torch.rand(images.shape)  # drawn for the batch
        return (images + shaking) * (WORK.mood if len(images) == 22 else 1)  # type: ignore[attr-defined]

    setting = toy_setting("s", count=150, perturbation_fn_gpu=shaken)  # batches of 64, 64 and 22
    catalog = toy_catalog(known("a"), setting)
    lab.run(catalog)
    assert verify(lab, catalog, samples=50).ok
    WORK.mood = 2.0  # type: ignore[attr-defined]
    assert [verify(lab, catalog, samples=50, days=1 + night).ok for night in range(2)] == [True, False]


# Differences ------------------------------------------------------------------------------------------------------


def test_a_difference_is_stored_and_reported_until_it_is_gone(lab: Any, read: Callable[[], list[int]]) -> None:
    catalog = toy_catalog(known("a", kind=Moody), known("b", 1), toy_setting("s", count=40))
    lab.run(catalog)
    WORK.mood = -1.0  # type: ignore[attr-defined]
    done = verify(lab, catalog)
    assert not done.ok
    (differing,) = done.differing
    assert (differing.evaluation.model, differing.last.differing, differing.last.flips) == ("a", 8, 8)
    (one,) = [each for each in done.verified if not each.certificate.equal]
    assert len(one.differing) == 8
    assert set(one.differing) == set(certificates(lab)["a", "s"][0].environment["differing_samples"])
    assert one.certificate.largest_difference == pytest.approx(2)
    asked = read()

    again = verify(lab, catalog, days=1, models=["b"])  # of other cells
    assert again.ok
    WORK.mood = 1.0  # type: ignore[attr-defined]
    better = verify(lab, catalog, days=2, models=["a"])
    assert better.ok
    assert read() == asked  # the same samples
    verify(lab, catalog, days=3, models=["a"])
    assert not set(read()) & set(asked)


def test_an_earlier_difference_is_told_though_there_was_no_time_to_look_again(lab: Any) -> None:
    catalog = toy_catalog(known("a", kind=Moody), toy_setting("s", count=40), toy_setting("t", count=41))
    lab.run(catalog)
    WORK.mood = 2.0  # type: ignore[attr-defined]
    first = verify(lab, catalog, timedelta(seconds=1))
    WORK.mood = 1.0  # type: ignore[attr-defined]
    second = verify(lab, catalog, timedelta(seconds=1), days=1)
    assert cells(first) != cells(second)
    assert not second.ok
    assert [each.evaluation.eval_setting for each in second.differing] == [cells(first)[0][1]]
    lab.run(catalog, override=True)  # what one does about it
    assert verify(lab, catalog, timedelta(seconds=1), days=2).ok


def test_only_the_samples_that_differ_are_named(lab: Any) -> None:
    catalog = toy_catalog(known("a", kind=Picky), toy_setting("s", count=40))
    lab.run(catalog)
    WORK.mood = 3.0  # type: ignore[attr-defined]
    (one,) = verify(lab, catalog, samples=40).verified
    assert 0 < one.certificate.differing < 40
    assert len(one.differing) == one.certificate.differing
    assert len(certificates(lab)["a", "s"][0].environment["differing_samples"]) <= scrub.SHOWN_SAMPLES


def test_other_words_are_a_difference(lab: Any) -> None:
    catalog = toy_catalog(
        captioner("cap", lambda number: f"{vary(number)}{WORK.mood}"),  # type: ignore[attr-defined]
        toy_setting("cap-set", count=20, task="captioning", num_classes=None),
    )
    lab.run(catalog)
    assert verify(lab, catalog).ok
    WORK.mood = 2.0  # type: ignore[attr-defined]
    done = verify(lab, catalog, days=1)
    assert [each.last.flips for each in done.differing] == [8]


# What cannot be verified ------------------------------------------------------------------------------------------


def test_what_cannot_be_computed_today_is_counted_by_reason_and_is_no_failure(lab: Any, work: Any) -> None:
    def changed(images: torch.Tensor) -> torch.Tensor:
        return images * 0.5

    paid, plain = known("paid", 3), known("plain", 4)
    settings = [toy_setting("s", count=40), toy_setting("gone", count=41), toy_setting("other", count=42)]
    lab.run(toy_catalog(paid, plain, known("missing", 5), *settings))
    paid.costs_money = True

    class NoData:
        def spec(self) -> dict[str, Any]:
            return {}

        def open(self) -> Any:
            raise DataError("the folder /data/gone does not exist")

    today = [
        toy_setting("s", count=40),
        EvalSetting("gone", NoData(), 41, num_classes=10),
        toy_setting("other", count=42, perturbation_fn_gpu=changed),
    ]
    done = verify(lab, toy_catalog(paid, plain, *today))
    assert done.ok
    assert cells(done) == [("plain", "s")]
    assert reasons(done) == {
        f"the model is {scrub.NOT_LOADED}": 3,
        scrub.COSTS_MONEY: 3,
        "the folder /data/gone does not exist": 1,
        scrub.DIFFERENT: 1,
    }
    assert work[THROUGH] == 8
    assert (done.tally.cells, done.tally.verified) == (9, 1)


def test_a_model_that_cannot_be_loaded_does_not_stop_the_others(lab: Any) -> None:
    def load() -> Any:
        if WORK.mood != 1:  # type: ignore[attr-defined]
            raise OSError("the disk is broken")
        return ToyNetwork(0)

    broken = toy_model("a", classifier_loader=load, weights="a")
    catalog = toy_catalog(broken, known("b", 1), toy_setting("s", count=40))
    lab.run(catalog)
    WORK.mood = 2.0  # type: ignore[attr-defined]
    done = verify(lab, catalog)
    assert cells(done) == [("b", "s")]
    assert done.ok
    assert ["the disk is broken" in reason for reason in done.not_verified] == [True]


def test_published_numbers_are_no_cells_to_verify(lab: Any) -> None:
    catalog = toy_catalog(known("a"), toy_setting("s", count=40))
    with Store.create(lab.url) as store:
        assert not verify(lab, catalog).tally.cells
        put_numbers(store, "a", "s", Metric("top1", 0.5))
    done = verify(lab, catalog)
    assert (done.ok, done.tally.cells, done.verified) == (True, 0, [])
    lab.run(catalog)
    done = verify(lab, catalog)
    assert (cells(done), done.tally.cells) == ([("a", "s")], 1)
    assert reasons(done) == {scrub.IMPORTED: 1}


def test_a_judge_that_costs_money_is_not_asked(lab: Any, work: Any) -> None:
    setting = EvalSetting("cap-set", Targets("captions", count=20), 20, task="captioning")
    judge = hash_encoder()
    catalog = toy_catalog(captioner("cap", vary), judge, setting)
    lab.run(catalog, models=["cap"], settings=["cap-set", "cap-set@hash"])
    assert sorted(cells(verify(lab, catalog))) == [("cap", "cap-set"), ("cap", "cap-set@hash")]
    judge.costs_money = True
    done = verify(lab, catalog)
    assert cells(done) == [("cap", "cap-set")]
    assert reasons(done) == {scrub.COSTS_MONEY: 1}
    assert not work["texts hashed"]


def test_weights_that_are_missing_are_not_fetched(lab: Any, work: Any) -> None:
    class Fetched:
        def files(self, fetch: bool) -> Sequence[Path] | None:
            work["fetched"] += fetch
            return [Path(__file__)] if work["there"] or fetch else None

    model = toy_model("a", weights=Fetched())
    catalog = toy_catalog(model, toy_setting("s", count=40))
    lab.run(catalog)
    done = verify(lab, catalog)
    assert work["fetched"] == 0
    assert reasons(done) == {"weights not downloaded yet": 1}


@pytest.mark.parametrize(
    "given",
    [
        {"dtype": "bfloat16", "limit": 20},
        {"store_dtype": "float16", "batch_size": 7},
        {"random_weights": True, "seed": 3},
    ],
    ids=str,
)
def test_each_evaluation_is_computed_as_it_was_made(lab: Any, given: dict[str, Any]) -> None:
    noise = toy_setting("noise", count=40, perturbation_fn_gpu=noisy)
    catalog = toy_catalog(known("a"), toy_setting("s", count=40), noise)
    lab.run(catalog, **given)
    done = verify(lab, catalog)
    assert not done.not_verified
    assert sorted(cells(done)) == [("a", "noise"), ("a", "s")]
    assert done.ok


# Stopping, and others at work -------------------------------------------------------------------------------------


class Stopping(ToyNetwork):
    """Ctrl-C comes when so many images have gone through."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if WORK[THROUGH] >= WORK.limits.get("stop", 1 << 60):
            raise KeyboardInterrupt
        return super().forward(images)


def test_ctrl_c_keeps_what_was_found(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = [toy_setting(f"s{number}", count=40 + number) for number in range(4)]
    catalog = toy_catalog(known("a", kind=Stopping), known("b", 1, kind=Stopping), *settings)
    lab.run(catalog)
    monkeypatch.setitem(WORK.limits, "stop", 56)  # in the last cell
    done = verify(lab, catalog)
    assert done.interrupted
    assert not done.ok
    assert 5 <= len(done.verified) < 8  # some of the second model, too
    assert sum(map(len, certificates(lab).values())) == len(done.verified)
    monkeypatch.delitem(WORK.limits, "stop")
    rest = verify(lab, catalog, timedelta(seconds=8 * (8 - len(done.verified)) - 1), days=1)
    assert not set(cells(rest)) & set(cells(done))
    with lab.open() as store:
        assert [each.outcome for each in store.leases.runs()][1:] == ["interrupted", "complete"]


def test_two_runs_at_once_share_the_cells(store_url: str, lab: Any, work: Any) -> None:
    """The second run begins while the first one computes."""
    lab.url = store_url
    others: list[ScrubReport] = []

    class Nested(ToyNetwork):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if WORK.mood == 2 and not others:  # type: ignore[attr-defined]
                others.append(ScrubReport())
                options = RunOptions(db_url=store_url, executor="inline")
                others[0] = verify_store(catalog, options, LONG, Amount(8), clock=FakeClock())
            return super().forward(images)

    settings = [toy_setting(f"s{number}", count=40 + number) for number in range(3)]
    catalog = toy_catalog(known("a", kind=Nested), known("b", 1), *settings)
    lab.run(catalog)
    WORK.mood = 2.0  # type: ignore[attr-defined]
    first = verify(lab, catalog)
    (second,) = others
    assert {model for model, _ in cells(second)} == {"b"}
    assert reasons(second) == {scrub.ELSEWHERE: 3}
    assert {model for model, _ in cells(first)} == {"a"}  # it has seen that the other run verified those of b
    assert work[THROUGH] == 6 * 8
    assert all(len(each) == 1 for each in certificates(lab).values())
    assert first.ok
    assert second.ok
    assert first.tally.verified == 6


def test_the_claims_of_a_run_that_died_do_not_count(lab: Any) -> None:
    catalog = toy_catalog(known("a"), toy_setting("s", count=40))
    lab.run(catalog)
    with Store.open(lab.url, "write") as store:
        (evaluation,) = store.evaluations.find()
        run_id = store.leases.begin_run("dead")
        assert store.leases.lease_items(scrub.CLAIMS, [str(evaluation.id)], anew=True)[0]
        assert reasons(verify(lab, catalog)) == {scrub.ELSEWHERE: 1}
        store.database.run_id = run_id
        store.leases.end_run("failed")
    assert cells(verify(lab, catalog)) == [("a", "s")]


def test_a_store_is_copied_with_what_was_found(lab: Any, new_lab: Any) -> None:
    """Where the verification of a cell goes on is kept, too."""
    from testbed.db.upkeep.merge import merge

    catalog = toy_catalog(known("a"), toy_setting("s", count=40))
    lab.run(catalog)
    verify(lab, catalog)
    other = new_lab("other")
    with Store.create(other.url) as target, lab.open() as source:
        merge(source, target)
    verify(other, catalog, days=1)
    (first, second) = certificates(other)["a", "s"]
    assert first.environment["rotation"] == {"first": 0, "samples": 8, "of": 40, "next": 8}
    assert second.environment["rotation"]["first"] == 8
    assert replace(first, samples=0) == replace(certificates(lab)["a", "s"][0], samples=0)

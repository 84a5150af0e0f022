"""Stored results whose identity is today's, though something that they were computed from has changed since.

A number that a model, a setting or a metric reads from a file stands for all that a definition does not show.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy import WORK, ToyNetwork, toy_catalog, toy_model
from toy import toy_setting as sized_setting
from toy_towers import ASKED, Targets, ToyTower, everything, tokenize, toy_encoder

from testbed.db.store import Store
from testbed.entities import OVERALL
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.execution.worker_events import WorkerEvents
from testbed.graph.options import RunOptions
from testbed.models.base.capability import Generation
from testbed.models.base.generator import Generator
from testbed.models.base.text_encoder import TextEncoder
from testbed.provenance import libraries, manifest
from testbed.runner import staleness
from testbed.runner.comparison import relative_difference
from testbed.runner.dry_run import make_plan
from testbed.scoring.rescore import rescore

SAMPLES = 8  # that a check computes again
COUNT = 100  # samples of most settings
MANY = 600  # of those that are computed in several shards


def toy_setting(name: str = "toy-all", count: int = COUNT, **options: Any) -> EvalSetting:
    return sized_setting(name, count, **options)


class Number:
    """A number in a file."""

    def __init__(self, folder: Path, name: str = "number.txt", value: float = 1) -> None:
        self.path = str(folder / name)
        self.write(value)

    def write(self, value: float) -> None:
        Path(self.path).write_text(str(value))

    def read(self) -> float:
        return float(Path(self.path).read_text())


@pytest.fixture
def number(tmp_path: Path) -> Number:
    return Number(tmp_path)


class Scaled(ToyNetwork):
    """Its logits are scaled by a number that it reads when it is run."""

    def __init__(self, number: Number) -> None:
        super().__init__(0)
        self.number = number

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images) * self.number.read()


def scaled_model(number: Number, name: str = "toy") -> Any:
    return toy_model(name, classifier_loader=lambda: Scaled(number))


def status(report: Any) -> dict[str, str]:
    return {outcome.setting: outcome.status for outcome in report.outcomes}


def results(report: Any) -> dict[str, str]:
    return {check.eval_setting: check.result for check in report.checks}


def evaluations(lab: Any) -> dict[int, Any]:
    with lab.open() as store:
        return {each.id: each for each in store.evaluations.find()}


# Equal, different -------------------------------------------------------------------------------------------------


def test_a_changed_file_with_an_equal_effect_is_looked_at_once(lab: Any, number: Number, work: Any) -> None:
    catalog = toy_catalog(scaled_model(number), toy_setting())
    first = lab.run(catalog)
    number.write(1.0)  # written otherwise, and the same number
    work.clear()
    again = lab.run(catalog)
    assert status(again) == {"toy-all": "stored"}
    assert again.outcomes[0].evaluation_id == first.outcomes[0].evaluation_id
    assert work["images through networks"] == COUNT
    (check,) = again.checks
    assert check.result == "equal"
    assert check.because == (f"{number.path} changed",)
    assert (check.certificate.samples, check.certificate.differing, check.certificate.flips) == (COUNT, 0, 0)
    work.clear()
    assert lab.run(catalog).checks == []
    assert work["images through networks"] == 0


def test_a_changed_file_with_an_effect_makes_a_new_evaluation(lab: Any, number: Number, work: Any) -> None:
    catalog = toy_catalog(scaled_model(number), toy_setting())
    (before,) = lab.run(catalog).outcomes
    number.write(2)
    work.clear()
    report = lab.run(catalog)
    assert status(report) == {"toy-all": "complete"}
    assert work["images through networks"] == 2 * COUNT
    (check,) = report.checks
    assert check.result == "differs"
    assert check.certificate.largest_difference == pytest.approx(0.5, rel=1e-5)
    assert check.certificate.flips == 0
    assert report.ok
    with lab.open() as store:
        old, new = store.evaluations.find()
        assert old.id == before.evaluation_id
        np.testing.assert_allclose(
            store.outputs.read(new.id, "logits"), 2 * store.outputs.read(old.id, "logits"), rtol=1e-6
        )
        assert {each.evaluation_id for each in store.results.find()} == {new.id}  # which counts from now on
        assert store.evaluations.identity(old)["set_aside"]["because"] == [f"{number.path} changed"]
    work.clear()
    assert status(lab.run(catalog)) == {"toy-all": "stored"}
    assert work["images through networks"] == 0


@pytest.mark.parametrize(("value", "computed"), [(1.0, COUNT // 2), (2, COUNT)])
def test_a_larger_set_takes_samples_of_a_smaller_one_only_if_they_are_todays(
    lab: Any, number: Number, work: Any, value: float, computed: int
) -> None:
    part = toy_setting("part", idx_subsample_list=list(range(COUNT // 2)), size=COUNT // 2)
    lab.run(toy_catalog(scaled_model(number), part))
    number.write(value)
    work.clear()
    report = lab.run(toy_catalog(scaled_model(number), toy_setting()))
    assert status(report) == {"toy-all": "complete"}
    assert work["images through networks"] == computed + COUNT // 2
    found = lab.logits("toy", "toy-all")
    with torch.no_grad():
        pixels = torch.from_numpy(toy_setting().dataset.open().pixels).permute(0, 3, 1, 2).float() / 255
        np.testing.assert_allclose(found, value * ToyNetwork(0)(pixels).numpy(), atol=1e-5)


def test_going_back_to_an_earlier_version_takes_its_evaluation_again(lab: Any, number: Number, work: Any) -> None:
    part = toy_setting("part", idx_subsample_list=list(range(0, COUNT, 5)), size=COUNT // 5)
    catalog = toy_catalog(scaled_model(number), toy_setting(), part)
    first = lab.run(catalog)
    number.write(2)
    second = lab.run(catalog)
    work.clear()
    for value, version in ((1, first), (2, second)):
        number.write(value)
        again = lab.run(catalog)
        assert set(status(again).values()) == {"stored"}
        assert [each.evaluation_id for each in again.outcomes] == [each.evaluation_id for each in version.outcomes]
    assert work["images through networks"] == 0
    assert len(evaluations(lab)) == 4


def test_what_is_derived_from_outdated_outputs_is_computed_anew(lab: Any, number: Number) -> None:
    part = toy_setting("part", idx_subsample_list=list(range(0, COUNT, 5)), size=COUNT // 5)
    catalog = toy_catalog(scaled_model(number), toy_setting(), part)
    assert status(lab.run(catalog)) == {"toy-all": "complete", "part": "derived"}
    number.write(3)
    assert status(lab.run(catalog, settings=["part"])) == {"part": "complete"}
    report = lab.run(catalog)
    assert status(report)["part"] == "stored"
    assert lab.metrics("toy", "toy-all")["nll"].value == pytest.approx(
        lab.run(toy_catalog(scaled_model(number), toy_setting("other"))) and lab.metrics("toy", "other")["nll"].value
    )


def test_all_that_may_use_the_module_that_read_a_file_is_looked_at(lab: Any, number: Number, work: Any) -> None:
    def dimmed(images: torch.Tensor) -> torch.Tensor:
        return images * number.read()

    catalog = toy_catalog(toy_model(), toy_setting(), toy_setting("dimmed", perturbation_fn_gpu=dimmed))
    lab.run(catalog)
    number.write(0.5)
    work.clear()
    report = lab.run(catalog)
    assert status(report) == {"toy-all": "stored", "dimmed": "complete"}
    assert results(report) == {"toy-all": "equal", "dimmed": "differs"}


def test_what_only_other_samples_read_stays_in_the_record(lab: Any, number: Number, tmp_path: Path) -> None:
    rare = Number(tmp_path, "rare.txt")

    def dimmed(images: torch.Tensor) -> torch.Tensor:
        return images * number.read() * (rare.read() if len(images) > SAMPLES else 1)

    catalog = toy_catalog(toy_model(), toy_setting("dimmed", perturbation_fn_gpu=dimmed))
    lab.run(catalog)
    for value, because in ((1.0, number.path), (1.00, rare.path)):
        (number if because == number.path else rare).write(value)
        Path(because).write_text(f"{value}\n")
        (check,) = lab.run(catalog).checks
        assert (check.result, check.because) == ("equal", (f"{because} changed",))


def test_embeddings_that_cannot_be_checked_are_not_taken(lab: Any, towers: Any) -> None:
    catalog, images, _ = towers
    lab.run(catalog, settings=["shown"])
    Path(images.path).write_text("no number")
    report = lab.run(catalog, settings=["captions"])
    assert status(report) == {"captions": "failed"}
    assert "could not convert string to float" in report.outcomes[0].reason
    images.write(1)
    assert status(lab.run(catalog, settings=["captions"])) == {"captions": "complete"}


def test_what_a_data_worker_reads_is_recorded(lab: Any, number: Number) -> None:
    def dimmed(image: torch.Tensor) -> torch.Tensor:
        return image * number.read()

    catalog = toy_catalog(toy_model(), toy_setting("dimmed", perturbation_fn_cpu=dimmed))
    lab.run(catalog)
    with lab.open() as store:
        (evaluation,) = store.evaluations.find()
        (stored,) = store.records.of([evaluation.id])[evaluation.id]
        assert number.path in stored.content["files"]


def test_a_variable_that_is_read_on_the_way_is_recorded_without_its_value(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    names = ["TOY", "SCALE"]

    def dimmed(images: torch.Tensor) -> torch.Tensor:
        return images * float(os.environ.get("_".join(names), "1"))

    catalog = toy_catalog(toy_model(), toy_setting("dimmed", perturbation_fn_gpu=dimmed))
    monkeypatch.setenv("TOY_SCALE", "0.73125")
    lab.run(catalog)
    with lab.open() as store:
        (evaluation,) = store.evaluations.find()
        assert "0.73125" not in str(store.records.of([evaluation.id])[evaluation.id][0].content)
    monkeypatch.setenv("TOY_SCALE", "0.5")
    report = lab.run(catalog)
    assert status(report) == {"dimmed": "complete"}
    assert report.checks[0].because == ("the environment variable TOY_SCALE changed",)


# Metrics ----------------------------------------------------------------------------------------------------------


def own_metric(number: Number) -> Any:
    def weighted(logits: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        return {"mine": number.read() * float(logits.mean())}

    return toy_setting("own", metrics_fn=weighted)


def mine(lab: Any) -> float:
    return lab.metrics("toy", "own")["mine"].value


def test_a_changed_metric_is_computed_anew_from_the_stored_outputs(lab: Any, number: Number, work: Any) -> None:
    catalog = toy_catalog(toy_model(), own_metric(number))
    lab.run(catalog)
    before = mine(lab)
    number.write(7)
    work.clear()
    report = lab.run(catalog)
    assert status(report) == {"own": "derived"}
    assert work["images through networks"] == COUNT
    assert mine(lab) == pytest.approx(7 * before)
    assert report.checks[0].certificate.same_metrics is False
    assert status(lab.run(catalog)) == {"own": "stored"}


def test_scoring_again_notices_what_a_metric_reads(lab: Any, number: Number) -> None:
    catalog = toy_catalog(toy_model(), own_metric(number))
    lab.run(catalog)
    before = mine(lab)
    with Store.open(lab.url, "write") as store:
        assert {each.status for each in rescore(store, catalog)} == {"current"}
        number.write(3)
        assert {each.status for each in rescore(store, catalog)} == {"rescored"}
    assert mine(lab) == pytest.approx(3 * before)
    assert status(lab.run(catalog)) == {"own": "stored"}


def test_metrics_that_cannot_be_computed_are_no_others(lab: Any, number: Number) -> None:
    catalog = toy_catalog(toy_model(), own_metric(number))
    (first,) = lab.run(catalog).outcomes
    before = mine(lab)
    Path(number.path).write_text("no number")
    with Store.open(lab.url, "write") as store:
        assert [each.status for each in rescore(store, catalog)] == ["failed"]
    report = lab.run(catalog)
    assert status(report) == {"own": "failed"}
    assert "could not convert string to float" in report.outcomes[0].reason
    assert "--trust" in report.outcomes[0].reason
    assert [each.status for each in evaluations(lab).values()] == ["complete"]
    assert list(evaluations(lab)) == [first.evaluation_id]
    assert mine(lab) == before
    number.write(1)
    assert status(lab.run(catalog)) == {"own": "stored"}


def test_outputs_whose_own_metrics_cannot_be_computed_serve_other_settings(lab: Any, number: Number, work: Any) -> None:
    lab.run(toy_catalog(toy_model(), own_metric(number)))
    Path(number.path).write_text("no number")
    work.clear()
    catalog = toy_catalog(toy_model(), own_metric(number), toy_setting(), toy_setting("toy-part", SAMPLES))
    assert status(lab.run(catalog)) == {"own": "failed", "toy-all": "derived", "toy-part": "derived"}
    assert work["images through networks"] <= COUNT  # those that the check computed
    number.write(1)
    assert status(lab.run(catalog)) == {"own": "stored", "toy-all": "stored", "toy-part": "stored"}


# Embeddings, heads, texts, probes ---------------------------------------------------------------------------------


class ScaledTower(ToyTower):
    """Bends what it makes of images, or of texts, by a number that it reads."""

    def __init__(self, images: Number, texts: Number) -> None:
        super().__init__()
        self.numbers = images, texts

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        return super().encode_image(images) ** self.numbers[0].read()

    def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
        return super().encode_text(tokens) * (torch.arange(12) * self.numbers[1].read() + 1)


@pytest.fixture
def towers(tmp_path: Path) -> tuple[Any, Number, Number]:
    images, texts = Number(tmp_path, "images.txt"), Number(tmp_path, "texts.txt")
    encoder = toy_encoder(encoder_loader=lambda: (ScaledTower(images, texts), tokenize))
    return toy_catalog(encoder, *everything()), images, texts


def main_values(lab: Any) -> dict[str, float]:
    with lab.open() as store:
        wanted = ("nll", "image_retrieval_recall@1", "text_retrieval_recall@1", "acc", "top1")
        return {
            f"{each.eval_setting}/{each.metric}": each.value
            for each in store.results.find()
            if each.slice == OVERALL and each.metric in wanted
        }


@pytest.mark.parametrize("which", [1, 2], ids=["images", "texts"])
def test_every_task_follows_an_encoder_that_changed(lab: Any, new_lab: Any, towers: Any, which: int) -> None:
    catalog = towers[0]
    assert lab.run(catalog, settings=ASKED).ok
    before = main_values(lab)
    towers[which].write(3)
    report = lab.run(catalog, settings=ASKED)
    assert report.ok, report.outcomes
    fresh = new_lab("fresh")
    fresh.run(catalog, settings=ASKED)
    assert main_values(lab) == pytest.approx(main_values(fresh), rel=1e-5)
    assert main_values(lab) != pytest.approx(before, rel=1e-5)
    again = lab.run(catalog, settings=ASKED)
    assert (set(status(again).values()), again.checks) == ({"stored"}, [])


def test_every_task_stays_where_an_encoder_does_the_same(lab: Any, towers: Any, work: Any) -> None:
    catalog, images, texts = towers
    lab.run(catalog, settings=ASKED)
    images.write(1.0)
    texts.write(1.0)
    work.clear()
    report = lab.run(catalog, settings=ASKED)
    assert set(status(report).values()) == {"stored"}
    assert set(results(report).values()) == {"equal"}
    assert work["images embedded"] <= 5 * SAMPLED
    assert lab.run(catalog, settings=ASKED).checks == []


def test_what_is_made_again_is_not_made_of_old_heads(lab: Any, new_lab: Any, towers: Any) -> None:
    """--override runs a cell again as if nothing were stored."""
    catalog, _, texts = towers
    lab.run(catalog, settings=ASKED)
    texts.write(3)
    lab.run(catalog, settings=ASKED, override=True)
    fresh = new_lab("fresh")
    fresh.run(catalog, settings=ASKED)
    assert main_values(lab) == pytest.approx(main_values(fresh), rel=1e-5)


# Shared changes ---------------------------------------------------------------------------------------------------


def upgraded(monkeypatch: pytest.MonkeyPatch, version: str = "99.1") -> None:
    installed = {**libraries.installed_versions(), "numpy": version}
    monkeypatch.setattr(libraries, "installed_versions", lambda: installed)


def test_after_a_library_s_upgrade_every_cell_is_looked_at_once(
    lab: Any, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [toy_setting(f"s{index}", perturbation_fn_gpu=shade(index)) for index in range(2)]
    catalog = toy_catalog(toy_model("a", 1), toy_model("b", 2), *settings)
    lab.run(catalog)
    upgraded(monkeypatch)
    work.clear()
    report = lab.run(catalog)
    assert set(status(report).values()) == {"stored"}
    found = {(each.model, each.eval_setting): each.result for each in report.checks}
    assert found == {(model, f"s{index}"): "equal" for model in "ab" for index in range(2)}
    assert work["images through networks"] == 2 * 2 * COUNT
    assert all("numpy" in line and "→ 99.1" in line for each in report.checks for line in each.because)
    assert lab.run(catalog).checks == []


def shade(index: int) -> Any:
    return lambda images: images * (1 - index / 10)


def test_beyond_a_number_of_checks_the_doubt_stays_and_is_said(
    lab: Any, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ones are those with which every model and every setting is met; each run checks more of them."""
    settings = [toy_setting(f"s{index}", perturbation_fn_gpu=shade(index)) for index in range(2)]
    catalog = toy_catalog(*(toy_model(name, number) for number, name in enumerate("ab")), *settings)
    lab.run(catalog)
    upgraded(monkeypatch)
    monkeypatch.setattr(staleness, "MOST_CHECKED", 2)
    first = lab.run(catalog).checks
    looked = [each for each in first if each.result == "equal"]
    assert {each.model for each in looked} == set("ab")
    assert {each.eval_setting for each in looked} == {"s0", "s1"}
    left = [each for each in first if each.result == "not checked"]
    assert (len(looked), len(left)) == (2, 2)
    assert all("the next run checks more" in each.reason for each in left)
    assert [each.result for each in lab.run(catalog).checks] == ["equal", "equal"]
    assert lab.run(catalog).checks == []


def test_what_is_derived_from_an_unchecked_evaluation_keeps_its_doubt(
    lab: Any, number: Number, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = toy_setting("part", idx_subsample_list=[5, 2])
    lab.run(toy_catalog(scaled_model(number), toy_setting()))
    number.write(2)
    catalog = toy_catalog(scaled_model(number), part)
    assert status(lab.run(catalog, trust=True)) == {"part": "derived"}  # what was trusted stays in doubt
    assert results(lab.run(catalog)) == {"part": "differs"}


def test_what_alone_differs_after_an_upgrade_is_found(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model on all settings, and a setting of another model."""
    monkeypatch.setattr(WORK, "factor", 1.0, raising=False)  # a part of a library, as far as identities go

    class Library(ToyNetwork):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return super().forward(images) * WORK.factor  # type: ignore[attr-defined]

    def affected(images: torch.Tensor) -> torch.Tensor:
        return images * WORK.factor  # type: ignore[attr-defined]

    settings = [toy_setting("s0"), toy_setting("s1", perturbation_fn_gpu=shade(1))]
    model = toy_model("a", classifier_loader=lambda: Library(0))
    catalog = toy_catalog(model, toy_model("b", 2), *settings, toy_setting("s2", perturbation_fn_gpu=affected))
    lab.run(catalog)
    upgraded(monkeypatch)
    monkeypatch.setattr(WORK, "factor", 2.0)
    found = {(each.model, each.setting): each.status for each in lab.run(catalog).outcomes}
    assert {found["a", f"s{index}"] for index in range(3)} == {"complete"}
    assert [found["b", f"s{index}"] for index in range(3)] == ["stored", "stored", "complete"]


def test_testbed_s_own_code_counts(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = toy_catalog(toy_model(), toy_setting())
    lab.run(catalog)
    monkeypatch.setattr(manifest.Today, "testbed", "another")
    (check,) = lab.run(catalog).checks
    assert check.because == ("testbed's own code has other files",)
    assert check.certificate.same_metrics is True


# Samples that depend on their batch -------------------------------------------------------------------------------


def grainy(number: Number) -> Any:
    def grain(images: torch.Tensor) -> torch.Tensor:
        return images + 0.3 * torch.randn_like(images) * number.read()

    return grain


def test_what_draws_for_whole_batches_is_compared_in_the_same_batches(lab: Any, number: Number, work: Any) -> None:
    catalog = toy_catalog(toy_model(), toy_setting(perturbation_fn_gpu=grainy(number)))
    lab.run(catalog)
    number.write(1.0)
    work.clear()
    report = lab.run(catalog)
    assert (status(report), results(report)) == ({"toy-all": "stored"}, {"toy-all": "equal"})
    assert work["images through networks"] == COUNT
    number.write(2)
    assert results(lab.run(catalog)) == {"toy-all": "differs"}


# Interrupted runs -------------------------------------------------------------------------------------------------


def interrupt(lab: Any, catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, and is stopped by Ctrl-C when a shard is stored."""
    with monkeypatch.context() as patch:
        begin = WorkerEvents.shard_done

        def shard_done(self: Any, shard_id: int, stored_bytes: int) -> None:
            begin(self, shard_id, stored_bytes)
            raise KeyboardInterrupt

        patch.setattr(WorkerEvents, "shard_done", shard_done)
        assert lab.run(catalog).interrupted


def test_outputs_of_two_definitions_are_not_mixed(lab: Any, number: Number, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = toy_catalog(scaled_model(number), toy_setting(count=MANY))
    interrupt(lab, catalog, monkeypatch)
    number.write(2)
    report = lab.run(catalog)
    assert (status(report), results(report)) == ({"toy-all": "complete"}, {"toy-all": "differs"})
    reference = lab.run(toy_catalog(scaled_model(number, "reference"), toy_setting(count=MANY)))
    assert reference.ok
    with lab.open() as store:
        (new,) = [each for each in store.evaluations.find(["toy"]) if each.status == "complete"]
        (right,) = [each for each in store.evaluations.find(["reference"]) if each.status == "complete"]
        np.testing.assert_array_equal(store.outputs.read(new.id, "logits"), store.outputs.read(right.id, "logits"))


def test_a_file_that_changes_while_it_is_read_is_looked_at_the_next_time(lab: Any, number: Number) -> None:
    class Restless(Scaled):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            outputs = super().forward(images)
            if WORK["images through networks"] == MANY:
                self.number.write(2)
            return outputs

    catalog = toy_catalog(toy_model(classifier_loader=lambda: Restless(number)), toy_setting(count=MANY))
    lab.run(catalog)
    assert any("changed while it was read" in note for note in lab.progress.notes)
    assert results(lab.run(catalog)) == {"toy-all": "differs"}


def test_a_temporary_file_of_the_code_itself_is_no_input(lab: Any, tmp_path: Path, work: Any) -> None:
    """As a benchmark's class has it that hands its answers over in a workbook, while another cell is stored."""
    own = Number.__new__(Number)
    own.path = str(tmp_path / "handed over.txt")

    def first(logits: Any, targets: Any) -> dict[str, float]:
        own.write(0.5)
        return {"number": own.read()}

    def second(logits: Any, targets: Any) -> dict[str, float]:
        Path(own.path).unlink()
        return {"number": 0.5}

    settings = [toy_setting("a", metrics_fn=first), toy_setting("b", metrics_fn=second)]
    catalog = toy_catalog(toy_model(), *settings)
    assert lab.run(catalog, ["toy"], ["a", "b"]).ok
    assert not any("changed while it was read" in note for note in lab.progress.notes)
    work.clear()
    again = lab.run(catalog, ["toy"], ["a", "b"])
    assert (status(again), again.checks) == ({"a": "stored", "b": "stored"}, [])
    assert work["images through networks"] == 0


# Options ----------------------------------------------------------------------------------------------------------


def test_options_say_what_becomes_of_a_doubt(lab: Any, number: Number, work: Any) -> None:
    catalog = toy_catalog(scaled_model(number), toy_setting())
    lab.run(catalog)
    number.write(2)
    work.clear()
    plan = make_plan(catalog, RunOptions(db_url=lab.url, executor="inline"), ["toy"], ["toy-all"])
    (candidate,) = plan.stale_candidates
    assert candidate.differences == [f"{number.path} changed"]
    report = lab.run(catalog, trust=True)
    assert (status(report), results(report)) == ({"toy-all": "stored"}, {"toy-all": "not checked"})
    assert work["images through networks"] == 0
    report = lab.run(catalog, override=True)  # checks nothing
    assert (status(report), report.checks) == ({"toy-all": "complete"}, [])
    assert work["images through networks"] == COUNT


@pytest.mark.parametrize(("asked", "samples"), [("5", 5), ("2.5%", 3)])
def test_verify_certifies_what_is_stored(lab: Any, work: Any, asked: str, samples: int) -> None:
    catalog = toy_catalog(toy_model(), toy_setting())
    lab.run(catalog)
    work.clear()
    report = lab.run(catalog, verify=asked, batch_size=7)
    assert (status(report), results(report), report.ok) == ({"toy-all": "stored"}, {"toy-all": "equal"}, True)
    assert work["images through networks"] == samples
    with lab.open() as store:
        (evaluation,) = store.evaluations.find()
        (certificate,) = store.records.certificates([evaluation.id])[evaluation.id]
        assert (certificate.samples, certificate.differing, certificate.flip_rate) == (samples, 0, 0)
        assert certificate.largest_difference < 1e-5
        assert certificate.environment["batch_size"] == 7


def test_verify_says_where_outputs_are_not_those_of_today(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is known of has changed; so the stored evaluation stays, and the run has not gone well."""

    class Moody(ToyNetwork):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return super().forward(images) * WORK.mood  # type: ignore[attr-defined]

    monkeypatch.setattr(WORK, "mood", 1.0, raising=False)
    catalog = toy_catalog(toy_model(classifier_loader=lambda: Moody(0)), toy_setting())
    lab.run(catalog)
    monkeypatch.setattr(WORK, "mood", -1.0)
    report = lab.run(catalog, verify="10")
    assert (status(report), results(report), report.ok) == ({"toy-all": "stored"}, {"toy-all": "differs"}, False)
    (check,) = report.checks
    assert check.certificate.flips == 10


def test_what_costs_money_is_asked_again_only_to_verify(lab: Any, number: Number, work: Any) -> None:
    model = scaled_model(number)
    model.costs_money = True
    catalog = toy_catalog(model, toy_setting())
    lab.run(catalog)
    number.write(1.0)
    work.clear()
    report = lab.run(catalog)
    assert (status(report), results(report)) == ({"toy-all": "stored"}, {"toy-all": "not checked"})
    assert "costs money" in report.checks[0].reason
    assert work["images through networks"] == 0
    lab.run(catalog, verify="3")
    assert work["images through networks"] == 3


def test_what_cannot_be_computed_again_fails_and_is_kept(lab: Any, number: Number) -> None:
    catalog = toy_catalog(scaled_model(number), toy_setting())
    (first,) = lab.run(catalog).outcomes
    Path(number.path).write_text("no number")
    report = lab.run(catalog)
    assert status(report) == {"toy-all": "failed"}
    assert "could not convert string to float" in report.outcomes[0].reason
    assert "--trust" in report.outcomes[0].reason
    assert evaluations(lab)[first.evaluation_id].status == "complete"
    number.write(1)
    assert status(lab.run(catalog)) == {"toy-all": "stored"}


# Captions and judges ----------------------------------------------------------------------------------------------

SHOWN, SCORED = "shown", "shown@hash"
SAMPLED = 30


class Talker:
    """Says so many words about each image as a file says."""

    def __init__(self, number: Number) -> None:
        self.number = number

    def generate(self, messages: Any, config: Any) -> list[Generation]:
        WORK["answers"] += len(messages)
        return [Generation("word " * int(self.number.read()) + message.sample) for message in messages]


class Letters:
    """Embeds a text by its letters, some of which weigh as much as a file says."""

    def __init__(self, number: Number) -> None:
        self.number = number

    def encode(self, texts: list[str]) -> torch.Tensor:
        WORK["texts embedded"] += len(texts)
        rows = torch.zeros(len(texts), 128)
        for row, text in zip(rows, texts, strict=True):
            for letter in text:
                row[ord(letter) % 128] += self.number.read() if letter in "aeiou" else 1
        return rows


@pytest.fixture
def talk(tmp_path: Path) -> tuple[Any, Number, Number]:
    words, weight = Number(tmp_path, "words.txt", 2), Number(tmp_path, "weight.txt")
    catalog = toy_catalog(
        Generator("talker", lambda: Talker(words), eval_batch_size=8, weights="1"),
        TextEncoder("hash", lambda: Letters(weight), weights="1", architecture={"letters": 1}),
        EvalSetting(name=SHOWN, dataset=Targets("captions", count=SAMPLED), size=SAMPLED, task="captioning"),
    )
    return catalog, words, weight


def similarity(lab: Any) -> float:
    return lab.metrics("talker", SCORED)["hm_cf"].value


def test_captions_that_are_others_today_are_made_and_scored_anew(lab: Any, new_lab: Any, talk: Any, work: Any) -> None:
    catalog, words, _ = talk
    assert lab.run(catalog, ["talker"], [SHOWN, SCORED]).ok
    words.write(5)
    work.clear()
    report = lab.run(catalog, ["talker"], [SHOWN, SCORED])
    assert report.ok, report.outcomes
    assert set(results(report).values()) == {"differs"}
    assert report.checks[0].certificate.flips == SAMPLED
    assert work["answers"] == 2 * SAMPLED
    fresh = new_lab("fresh")
    fresh.run(catalog, ["talker"], [SCORED])
    assert similarity(lab) == pytest.approx(similarity(fresh), rel=1e-6)
    assert lab.run(catalog, ["talker"], [SHOWN, SCORED]).checks == []


def test_a_judge_that_changed_scores_the_stored_captions_anew(lab: Any, new_lab: Any, talk: Any, work: Any) -> None:
    catalog, _, weight = talk
    lab.run(catalog, ["talker"], [SCORED])
    before = similarity(lab)
    weight.write(4)
    work.clear()
    report = lab.run(catalog, ["talker"], [SCORED])
    assert status(report) == {SCORED: "scored"}
    # To see that the captions are the same: for both evaluations if their module had read the weight by the
    # time that the record of the captions was stored.
    assert work["answers"] in (SAMPLED, 2 * SAMPLED)
    fresh = new_lab("fresh")
    fresh.run(catalog, ["talker"], [SCORED])
    assert similarity(lab) == pytest.approx(similarity(fresh), rel=1e-6)
    assert similarity(lab) != pytest.approx(before, rel=1e-4)
    assert lab.run(catalog, ["talker"], [SCORED]).checks == []


# Comparing --------------------------------------------------------------------------------------------------------


def test_differences_are_relative_to_the_largest_number() -> None:
    ones = np.array([1.0, -4.0, 2.0], np.float32)
    assert relative_difference(ones, ones) == 0
    assert relative_difference(ones, ones + np.array([0, 0, 0.4], np.float32)) == pytest.approx(0.1, rel=1e-5)
    assert relative_difference(np.zeros(3), np.zeros(3)) == 0
    assert relative_difference(np.zeros(0), np.zeros(0)) == 0


def test_nan_and_infinities_are_equal_to_themselves_alone() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert relative_difference(odd, odd) == 0
    for place, value in enumerate([0.0, -np.inf, np.nan, np.nan]):
        other = odd.copy()
        other[place] = value
        assert relative_difference(odd, other) == np.inf
    assert relative_difference(np.ones(3), np.ones(4)) == np.inf

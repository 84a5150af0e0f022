"""Captions: generated once, stored, and scored by models of their own, of which each embeds each text once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
import torch
import toy
from toy import ToyImages, toy_model
from toy_captions import Captioner, Hash, captioner, catalog, hash_encoder, hashed, repeat, vary
from toy_towers import Targets, ToyTower, tokenize, toy_encoder

from testbed.data.formats.predictions import read_predictions
from testbed.data.language.sentences import get_splitter
from testbed.data.source import Source
from testbed.db.store import Store
from testbed.db.tables import ItemValueRow
from testbed.errors import RunError, UnknownNameError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.execution.inline import InlineChannel
from testbed.graph.cells import Action
from testbed.graph.options import RunOptions
from testbed.identity.describe import digest_bytes
from testbed.metrics.caption_similarity import SimilarityOptions, score_captions, texts_of
from testbed.metrics.clip.pairs import pair_cosines, ref_clip_score
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator
from testbed.registry import Catalog
from testbed.runner.dry_run import make_plan
from testbed.scoring.rescore import rescore
from testbed.stored_results.export import write_run
from testbed.stored_results.export_texts import save_texts

COUNT = 30
SETTING, SIMILAR, CLIP = "shown", "shown@hash", "shown.clip_score@tower"


def setting(name: str = SETTING, **options: Any) -> EvalSetting:
    dataset = Targets("captions", count=COUNT, broken=options.pop("broken", ()))
    return EvalSetting(name=name, dataset=dataset, size=COUNT, **{"task": "captioning", **options})


def world(*others: Any) -> Catalog:
    return catalog(
        setting(), captioner("vary", vary), captioner("repeat", repeat), hash_encoder(), toy_encoder(), *others
    )


def evaluation(lab: Any, model: str, name: str) -> Any:
    with lab.open() as store:
        (found,) = [each for each in store.evaluations.find([model], [name]) if each.status == "complete"]
        return found


def scores(lab: Any, model: str, name: str) -> dict[str, np.ndarray]:
    found = evaluation(lab, model, name)
    with lab.open() as store:
        return {score: values for (_, score), values in store.scores.read(found.id).items()}


def texts(lab: Any, model: str, name: str = SETTING) -> list[Any]:
    found = evaluation(lab, model, name)
    with lab.open() as store:
        return list(store.outputs.read(found.id, "text"))


REFERENCES = [list(target) for target in Targets("captions", count=COUNT).open().targets]


def expected(captions: Sequence[str | None], options: SimilarityOptions, **given: Any) -> dict[str, np.ndarray]:
    """The scores, from the kernel and embeddings of one's own."""
    splitter = get_splitter() if options.fine else None
    wanted = texts_of(captions, REFERENCES, splitter, options)
    rows = {text: row for row, text in enumerate(wanted)}
    embedded = hashed(wanted).numpy()
    return score_captions(captions, REFERENCES, rows, embedded, splitter, options, **given).scores


# Captioning -------------------------------------------------------------------------------------------------------


def test_captions_are_stored_as_they_were_said(lab: Any, work: Any) -> None:
    lab.run(world(), ["vary"], [SETTING], batch_size=7)
    assert texts(lab, "vary") == [{"text": vary(number), "finish_reason": "stop"} for number in range(COUNT)]
    assert work["answers"] == work["images shown"] == work["images read"] == COUNT
    metrics = lab.metrics("vary", SETTING)
    assert (metrics["coverage"].value, metrics["coverage"].n, metrics["empty"].value) == (1.0, COUNT, 0.0)
    assert metrics["words"].value == 12
    lab.run(world(), ["vary"], [SETTING])
    assert work["answers"] == COUNT


def test_the_prompt_and_how_text_is_generated_reach_the_model_and_are_part_of_the_cell(lab: Any) -> None:
    seen: list[Any] = []

    class Curious(Captioner):
        def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation]:
            seen.append((messages[0].parts[1:], config))
            return super().generate(messages, config)

    model = Generator("curious", lambda: Curious(repeat), weights="1")
    prompted = setting("prompted", task_options={"prompt": "What is this?", "generation": {"max_new_tokens": 5}})
    made = catalog(model, setting(), prompted)
    lab.run(made)
    assert seen[0] == (["What is this?"], GenerationConfig(max_new_tokens=5))
    assert seen[-1] == ([], GenerationConfig())
    assert evaluation(lab, "curious", "prompted").fingerprint != evaluation(lab, "curious", SETTING).fingerprint


def test_what_cannot_be_answered_is_a_row_with_its_reason_and_the_rest_goes_on(lab: Any) -> None:
    def moody(number: int) -> str | Generation:
        if number == 3:
            raise ValueError("not this one")
        if number == 4:
            return Generation("", "missing")
        if number == 8:
            return Generation(repeat(number), object())  # type: ignore[arg-type]
        return " \n" if number == 5 else repeat(number)

    report = lab.run(catalog(captioner("moody", moody), setting(broken=[6])), batch_size=4)
    assert report.of("complete")
    said = texts(lab, "moody")
    assert said[3] == {"text": None, "finish_reason": "error: ValueError: not this one"}
    assert said[4] == {"text": "", "finish_reason": "missing"}
    assert said[6] is None
    assert said[7] == {"text": repeat(7), "finish_reason": "stop"}
    assert said[8]["text"] is None
    assert said[8]["finish_reason"].startswith(
        "error: RunError: moody: the finish_reason of a Generation is a text, got"
    )
    assert scores(lab, "moody", SETTING)["status"][:10].tolist() == [0, 0, 0, 2, 1, 2, 3, 0, 2, 0]
    metrics = lab.metrics("moody", SETTING)
    assert metrics["coverage"].value == pytest.approx(28 / 30)
    assert metrics["empty"].value == pytest.approx(3 / 30)
    assert metrics["refused"].value == pytest.approx(2 / 30)
    with lab.open() as store:
        assert store.outputs.errors(evaluation(lab, "moody", SETTING).id) == {6: "toy/0006 is broken"}


def test_a_captioner_that_fails_on_all_of_a_batch_is_given_up_at_once(lab: Any, work: Any) -> None:
    def broken(number: int) -> str:
        raise RuntimeError("no tokenizer")

    made = catalog(captioner("broken", broken), captioner("repeat", repeat), setting())
    report = lab.run(made)
    (failed,) = report.of("failed")
    assert failed.reason == "RunError: it fails on every sample: RuntimeError: no tokenizer"
    assert report.of("complete")[0].model == "repeat"
    assert work["answers"] <= 8 + 8 + COUNT


def test_a_batch_that_does_not_fit_is_halved(lab: Any) -> None:
    sizes = []

    class Large(Captioner):
        def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation]:
            sizes.append(len(messages))
            if len(messages) > 3:
                raise torch.OutOfMemoryError("out of memory")
            return super().generate(messages, config)

    lab.run(catalog(Generator("large", lambda: Large(vary), 8, weights="1"), setting()))
    assert [each["text"] for each in texts(lab, "large")] == [vary(number) for number in range(COUNT)]
    assert sizes[:3] == [8, 4, 2]


def test_strict_stops_at_an_image_that_cannot_be_read(lab: Any) -> None:
    with pytest.raises(RunError, match="toy/0006 is broken"):
        lab.run(catalog(captioner("repeat", repeat), setting(broken=[6])), strict=True)


def test_no_caption_at_all_is_a_failure_that_names_the_samples(lab: Any) -> None:
    silent = captioner("silent", lambda number: Generation("", "missing"))
    (failed,) = lab.run(catalog(silent, setting())).of("failed")
    assert "none of the 30 samples (toy/0000, toy/0001, toy/0002, …) has a caption" in failed.reason
    assert "check that the ids of the predictions match the data set" in failed.reason


def test_what_does_not_fit_is_not_supported(lab: Any) -> None:
    attacked = setting("attacked", perturbation_fn_gpu=lambda images, model: images)
    report = lab.run(world(toy_model(), attacked), ["toy", "vary"], [SETTING, "attacked", "attacked@hash"])
    reasons = {(each.model, each.setting): each.reason for each in report.of("unsupported")}
    assert reasons["toy", SETTING] == "shown needs generate; toy has gradients and logits"
    said = "attacked attacks a classifier; models that generate text are not supported"
    assert reasons["vary", "attacked"] == said
    assert said in reasons["vary", "attacked@hash"]


# Caption similarity -----------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_kernel(lab: Any) -> None:
    settings = {
        SIMILAR: SimilarityOptions(),
        "shown.idf.mean@hash": SimilarityOptions(weights="idf", combine="mean"),
        "shown.baseline@hash": SimilarityOptions(rescale="baseline"),
        "shown.coarse@hash": SimilarityOptions(fine=False),
    }
    lab.run(world(), ["vary", "repeat"], list(settings))
    said = {"vary": vary, "repeat": repeat}
    for (model, say), (name, options) in itertools.product(said.items(), settings.items()):
        found = scores(lab, model, name)
        wanted = expected([say(number) for number in range(COUNT)], options)
        assert set(found) == set(wanted)
        for score, values in wanted.items():
            np.testing.assert_array_equal(found[score], values, err_msg=score)
        metric = "coarse_similarity" if name == "shown.coarse@hash" else "hm_cf"
        value = lab.metrics(model, name)[metric]
        assert value.value == pytest.approx(wanted[metric].mean(), abs=1e-15)
        assert (value.n, value.unit, value.scorer) == (COUNT, "fraction", "caption_similarity@2")
        assert ("hm_cf_baseline" in lab.metrics(model, name)) == (options.rescale == "baseline")


def test_each_text_is_embedded_once_for_all_captioners_runs_and_settings(lab: Any, work: Any) -> None:
    lab.run(world(), ["vary", "repeat"], [SIMILAR])
    splitter, options = get_splitter(), SimilarityOptions()
    wanted = {
        text
        for say in (vary, repeat)
        for text in texts_of([say(number) for number in range(COUNT)], REFERENCES, splitter, options)
    }
    assert work["texts hashed"] == len(wanted)
    assert work["answers"] == 2 * COUNT
    before = work["texts hashed"]
    lab.run(world(), ["vary", "repeat"], [SIMILAR, "shown.coarse@hash", "shown.idf.baseline@hash", SETTING])
    assert (work["texts hashed"], work["answers"]) == (before, 2 * COUNT)
    third = captioner("third", lambda number: repeat(number) + " So it is.")
    lab.run(world(third), ["third"], [SIMILAR])
    assert work["texts hashed"] == before + 2  # the caption, and its one new sentence


def test_scoring_stored_captions_needs_no_images_where_the_scorer_sees_none(lab: Any, work: Any) -> None:
    lab.run(world(), ["vary"], [SETTING])
    work.clear()
    for limit in (10, None):
        report = lab.run(world(), ["vary"], [SIMILAR], limit=limit)
        assert [each.status for each in report.outcomes] == ["scored"]
        assert lab.metrics("vary", SIMILAR)["hm_cf"].n == (limit or COUNT)
    assert work["answers"] == work["images read"] == work["images embedded"] == 0


def test_the_evaluation_says_whose_captions_and_which_scorer(lab: Any) -> None:
    lab.run(world(), ["vary"], [SIMILAR])
    found = evaluation(lab, "vary", SIMILAR)
    assert (found.origin, found.derived_from) == ("derived", evaluation(lab, "vary", SETTING).id)
    with lab.open() as store:
        view = store.evaluations.identity(found)["view"]
    assert view["splitter"] == get_splitter().id
    assert view["scored_by"]["model"]["weights"] == "named:1"
    assert view["scored_by"]["dtype"] == "float32"
    assert list(lab.open().maintenance.check()) == []


def test_another_scorer_of_that_name_is_another_evaluation(lab: Any, work: Any) -> None:
    lab.run(world(), ["vary"], [SIMILAR])
    before, hashed_texts = evaluation(lab, "vary", SIMILAR), work["texts hashed"]
    changed = catalog(setting(), captioner("vary", vary), hash_encoder(instruction="Say: "))
    lab.run(changed, ["vary"], [SIMILAR])
    with lab.open() as store:
        both = store.evaluations.find(["vary"], [SIMILAR])
    assert {each.fingerprint for each in both} > {before.fingerprint}
    assert work["texts hashed"] == 2 * hashed_texts
    assert work["answers"] == COUNT


def test_missing_captions_are_not_scored_and_refused_ones_score_as_blank_ones_do(lab: Any) -> None:
    def patchy(number: int) -> str | Generation:
        if number == 0:
            return Generation("", "missing")
        if number == 1:
            return Generation("", "error: it broke")
        return "   " if number == 2 else vary(number)

    made = catalog(setting(), captioner("patchy", patchy), hash_encoder())
    lab.run(made, ["patchy"], [SIMILAR, "shown.zero@hash"])
    found = scores(lab, "patchy", SIMILAR)
    assert found["status"][:4].tolist() == [1, 2, 2, 0]
    assert np.isnan(found["hm_cf"]).tolist() == [True, *[False] * 29]
    for name in ("hm_cf", "coarse_similarity", "coarse_similarity_raw"):
        assert found[name][1] == found[name][2] == 0
    metrics = lab.metrics("patchy", SIMILAR)
    assert (metrics["hm_cf"].n, metrics["coverage"].value, metrics["coverage"].n) == (29, 29 / 30, 30)
    assert (metrics["refused"].value, metrics["refused"].n) == (1 / 30, 30)
    counted = lab.metrics("patchy", "shown.zero@hash")["hm_cf"]
    assert counted.n == 30
    assert counted.value == pytest.approx(metrics["hm_cf"].value * 29 / 30)


def test_a_scorer_that_fails_fails_its_cells_and_is_tried_again(lab: Any, work: Any) -> None:
    class Broken:
        def encode(self, given: list[str]) -> torch.Tensor:
            raise RuntimeError("no such kernel")

    def made(loader: Callable[[], Any]) -> Catalog:
        return catalog(
            setting(), captioner("vary", vary), hash_encoder(loader=loader), hash_encoder("other", weights="2")
        )

    report = lab.run(made(Broken), ["vary"], [SIMILAR, "shown@other"])
    (failed,) = report.of("failed")
    assert failed.reason == "hash failed to embed texts: RuntimeError: no such kernel"
    assert [each.setting for each in report.of("scored")] == ["shown@other"]
    report = lab.run(made(Hash), ["vary"], [SIMILAR, "shown@other"])
    assert [each.status for each in report.outcomes] == ["scored", "stored"]
    assert work["answers"] == COUNT


def test_a_captioner_that_fails_fails_what_would_be_scored(lab: Any) -> None:
    def broken(number: int) -> str:
        raise RuntimeError("no tokenizer")

    report = lab.run(catalog(setting(), captioner("broken", broken), hash_encoder()), ["broken"], [SIMILAR])
    (failed,) = report.of("failed")
    assert "broken on shown, whose outputs it takes, failed" in failed.reason
    assert "no tokenizer" in failed.reason


def test_a_reference_that_is_missing_is_named(lab: Any) -> None:
    class Unreferenced(Source):
        name, ids, targets = "bare", ["a/0000", "a/0001"], [["a reference"], []]

        def digests(self, positions: Sequence[int]) -> list[str]:
            return [str(position) for position in positions]

    class Bare:
        def spec(self) -> dict[str, Any]:
            return {"bare": 1}

        def open(self) -> Source:
            return Unreferenced()

    bare = EvalSetting(name="bare", dataset=Bare(), size=2, task="captioning")
    (failed,) = lab.run(catalog(bare, captioner("repeat", repeat), hash_encoder()), ["repeat"], ["bare@hash"]).of(
        "failed"
    )
    assert failed.reason == "sample 'a/0001' has no reference caption; at least one is expected, none of them blank"


def test_captions_that_are_derived_themselves_are_scored(lab: Any, work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.tasks import captioning

    part = EvalSetting(
        name="part", dataset=Targets("captions", count=COUNT), size=3, idx_subsample_list=[3, 1, 7], task="captioning"
    )
    made = world(part, captioner("vary", vary).under_name("again"))
    lab.run(made, ["vary"], [SETTING])
    assert lab.run(made, ["vary", "again"], [SETTING, "part"]).of("derived")
    lab.run(made, ["vary"], [SETTING], limit=5)
    report = lab.run(made, ["vary", "again"], ["part@hash", SIMILAR, "part.clip_score@tower"])
    assert {each.status for each in report.outcomes} == {"scored"}
    report = lab.run(made, ["vary"], [SIMILAR], limit=5)
    assert {each.status for each in report.outcomes} == {"scored"}
    assert work["answers"] == COUNT
    whole = scores(lab, "again", SIMILAR)["hm_cf"]
    np.testing.assert_array_equal(scores(lab, "vary", "part@hash")["hm_cf"], whole[[3, 1, 7]])
    monkeypatch.setattr(captioning.Captioning, "scorer", "captioning@later")
    with Store.open(lab.url, "write") as store:
        assert {each.status for each in rescore(store, made, eval_settings=[SETTING])} == {"rescored"}
    assert lab.run(made, ["vary"], ["shown.coarse@hash"]).of("scored")
    with lab.open() as store:
        sources = {each.derived_from for each in store.evaluations.find() if each.origin == "derived"}
        assert {store.evaluations.get(each).origin for each in sources} == {"run"}
        assert list(store.maintenance.check()) == []


def test_scoring_again_runs_no_model(lab: Any, work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.tasks import caption_similarity

    lab.run(world(), ["vary"], [SIMILAR])
    before = scores(lab, "vary", SIMILAR)
    work.clear()
    monkeypatch.setattr(caption_similarity, "SCORER", "caption_similarity@later")

    unloadable = catalog(setting(), captioner("vary", vary), hash_encoder(loader=lambda: 1 / 0))
    with Store.open(lab.url, "write") as store:
        done = rescore(store, unloadable, eval_settings=[SIMILAR])
        assert [each.status for each in done] == ["rescored"]
        found = store.evaluations.get(done[0].evaluation)
        after = {name: values for (_, name), values in store.scores.read(found.id).items()}
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values)
    assert not work


def test_override_scores_again(lab: Any, work: Any) -> None:
    lab.run(world(), ["vary"], [SIMILAR])
    captions, texts = evaluation(lab, "vary", SETTING).id, work["texts hashed"]
    work.clear()
    report = lab.run(world(), ["vary"], [SIMILAR], override=True)
    assert [each.status for each in report.outcomes] == ["scored"]
    assert dict(work) == {"texts hashed": texts}  # the captioner, whom nobody asked for, says nothing
    assert evaluation(lab, "vary", SETTING).id == captions
    work.clear()
    report = lab.run(world(), ["vary"], [SETTING, SIMILAR], override=True)
    assert sorted(each.status for each in report.outcomes) == ["complete", "scored"]
    assert work["answers"] == COUNT
    assert evaluation(lab, "vary", SETTING).id != captions


def test_override_takes_captions_that_are_stored_under_another_name(lab: Any, work: Any) -> None:
    twin = setting("twin", parent_eval_setting=SETTING)
    lab.run(world(twin), ["vary"], [SETTING])
    work.clear()
    report = lab.run(world(twin), ["vary"], ["twin@hash"], override=True)
    assert report.of("scored")
    assert not work["answers"]


def test_override_takes_no_captions_that_the_same_run_sets_aside(lab: Any, work: Any) -> None:
    twin = setting("twin", parent_eval_setting=SETTING)
    lab.run(world(twin), ["vary"], [SETTING])
    old = evaluation(lab, "vary", SETTING).id
    lab.run(world(twin), ["vary"], [SETTING, "twin@hash"], override=True)
    found = evaluation(lab, "vary", "twin@hash")
    assert found.root == evaluation(lab, "vary", SETTING).id != old


def test_strict_says_whose_captions_lack_a_sample(lab: Any) -> None:
    lab.run(catalog(captioner("vary", vary), setting(broken=[6])), ["vary"], [SETTING])
    (failed,) = lab.run(world(), ["vary"], [SIMILAR], strict=True, override=True).of("failed")
    assert "1 sample of the stored evaluation could not be read, and --strict is given" in failed.reason
    assert f"--override with the setting {SETTING} runs it again" in failed.reason
    lab.run(world(), ["vary"], [SIMILAR])
    (stored,) = lab.run(world(), ["vary"], [SIMILAR], strict=True).of("failed")
    assert f"--override with the setting {SETTING} runs it again" in stored.reason
    assert lab.run(world(), ["vary"], [SETTING, SIMILAR], strict=True, override=True).ok


def test_override_of_scores_goes_on_with_captions_that_are_not_complete(lab: Any, work: Any) -> None:
    lab.run(world(), ["vary"], [SETTING], limit=10)
    with lab.open() as store:
        (found,) = store.evaluations.find(["vary"], [SETTING])
    work.clear()
    assert lab.run(world(), ["vary"], [SIMILAR], override=True, limit=10).of("scored")
    assert not work["answers"]
    assert evaluation(lab, "vary", SETTING).id == found.id
    work.clear()
    assert lab.run(world(), ["vary"], [SIMILAR], override=True).of("scored")
    assert work["answers"] == COUNT - 10


# What goes wrong --------------------------------------------------------------------------------------------------


def test_the_first_sample_may_fail_whatever_the_batch_size(lab: Any) -> None:
    def moody(number: int) -> str:
        if number in (0, 29):
            raise ValueError("not this one")
        return vary(number)

    made = catalog(captioner("moody", moody), setting())
    assert lab.run(made, batch_size=1).of("complete")
    assert scores(lab, "moody", SETTING)["status"].tolist() == [2, *[0] * 28, 2]


def test_a_captioner_that_fails_on_a_few_samples_that_are_all_is_tried_again(lab: Any, work: Any) -> None:
    def broken(number: int) -> str:
        raise RuntimeError("no tokenizer")

    made = catalog(captioner("b", broken, architecture={"b": 1}), setting())
    assert "it fails on every sample" in lab.run(made, limit=5, batch_size=1).of("failed")[0].reason
    made = catalog(captioner("b", vary, architecture={"b": 1}), setting())
    assert lab.run(made, limit=5).of("complete")


def test_a_run_that_is_stopped_stores_the_batches_that_were_answered(
    lab: Any, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(InlineChannel, "stopping", lambda channel: work["answers"] >= 16)
        with pytest.raises(RunError, match="ended before all was done"):
            lab.run(world(), ["vary"], [SETTING])
    assert work["answers"] == 16
    lab.run(world(), ["vary"], [SETTING], batch_size=4)
    assert work["answers"] == COUNT
    assert [each["text"] for each in texts(lab, "vary")] == [vary(number) for number in range(COUNT)]


def test_a_run_that_is_stopped_stores_the_texts_that_were_embedded(
    lab: Any, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.run(world(), ["vary"], [SETTING])
    with monkeypatch.context() as patched:
        patched.setattr(InlineChannel, "stopping", lambda channel: work["texts hashed"] > 0)
        with pytest.raises(RunError, match="ended before all was done"):
            lab.run(world(), ["vary"], [SIMILAR])
    assert work["texts hashed"] == 64
    lab.run(world(), ["vary"], [SIMILAR])
    wanted = texts_of([vary(number) for number in range(COUNT)], REFERENCES, get_splitter(), SimilarityOptions())
    assert work["texts hashed"] == len(wanted) > 64
    found = expected([vary(number) for number in range(COUNT)], SimilarityOptions())
    np.testing.assert_array_equal(scores(lab, "vary", SIMILAR)["hm_cf"], found["hm_cf"])


def test_a_caption_whose_embedding_is_not_finite_is_an_error(lab: Any) -> None:
    class Unsteady(ToyTower):
        def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
            embedded = super().encode_text(tokens)
            return torch.where((tokens == tokenize([vary(3)])).all(dim=1, keepdim=True), float("nan"), embedded)

    unsteady = toy_encoder("tower", encoder_loader=lambda: (Unsteady(), tokenize))
    lab.run(catalog(setting(), captioner("vary", vary), unsteady), ["vary"], [CLIP])
    found = scores(lab, "vary", CLIP)
    assert found["status"][[2, 3, 4]].tolist() == [0, 3, 0]
    assert np.isnan(found["cosine"][3])
    assert lab.metrics("vary", CLIP)["coverage"].value == pytest.approx(29 / 30)


def test_a_scorer_without_a_finite_embedding_fails_and_override_embeds_again(lab: Any, work: Any) -> None:
    class Overflowing:
        def encode(self, given: list[str]) -> torch.Tensor:
            return hashed(given) * float("nan")

    def made(loader: Callable[[], Any]) -> Catalog:
        return catalog(setting(), captioner("vary", vary), hash_encoder(loader=loader))

    (failed,) = lab.run(made(Overflowing), ["vary"], [SIMILAR]).of("failed")
    assert "none of the 30 captions can be scored: embeddings of hash are not finite" in failed.reason
    assert lab.run(made(Hash), ["vary"], [SIMILAR]).of("failed")  # of the same scorer, as far as one can tell
    assert lab.run(made(Hash), ["vary"], [SIMILAR], override=True).of("scored")
    wanted = expected([vary(number) for number in range(COUNT)], SimilarityOptions())
    np.testing.assert_array_equal(scores(lab, "vary", SIMILAR)["hm_cf"], wanted["hm_cf"])


def test_embeddings_of_several_widths_are_told(lab: Any) -> None:
    calls: list[int] = []

    class Shrinking:
        def encode(self, given: list[str]) -> torch.Tensor:
            calls.append(1)
            return hashed(given)[:, len(calls) :]

    made = catalog(setting(), captioner("vary", vary), hash_encoder(loader=Shrinking, text_batch_size=16))
    (failed,) = lab.run(made, ["vary"], [SIMILAR], clear_cache_interval=16).of("failed")
    assert "although one model computed them" in failed.reason


def test_damaged_embeddings_fail_their_cells_alone_and_override_repairs_them(lab: Any) -> None:
    lab.run(world(), ["vary", "repeat"], [SIMILAR])
    with Store.open(lab.url, "write") as store, store.database.writing() as session:
        damaged = sa.update(ItemValueRow).where(ItemValueRow.digest == digest_bytes(vary(0).encode()))
        assert session.execute(damaged.values(payload=b"0" * 256)).rowcount == 1  # type: ignore[attr-defined]
    report = lab.run(world(), ["vary", "repeat"], ["shown.coarse@hash"])
    assert [each.status for each in report.outcomes] == ["failed", "scored"]
    assert "--override recomputes it" in report.outcomes[0].reason
    (fault,) = lab.open().maintenance.check()
    assert "--override recomputes it" in fault
    assert lab.run(world(), ["vary"], ["shown.coarse@hash"], override=True).of("scored")
    assert list(lab.open().maintenance.check()) == []


def test_texts_that_cannot_be_cut_fail_their_cells_alone(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.tasks import caption_similarity

    class Torn:
        id = "torn"

        def split(self, text: str) -> list[str]:
            raise LookupError("no punkt\nat all")

    whole = caption_similarity.splitter_of
    monkeypatch.setattr(caption_similarity, "splitter_of", lambda of, options: whole(of, options) and Torn())
    report = lab.run(world(), ["vary"], [SIMILAR, "shown.coarse@hash"])
    assert [each.status for each in report.outcomes] == ["failed", "scored"]
    assert report.outcomes[0].reason == "its texts cannot be listed: LookupError: no punkt"


def test_scoring_again_where_other_texts_are_needed_goes_on_and_a_run_embeds_them(
    lab: Any, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from testbed.tasks import caption_similarity

    class Halves:
        id = "halves"

        def split(self, text: str) -> list[str]:
            return [text[:9], text[9:].strip()]

    lab.run(world(), ["vary", "repeat"], [SIMILAR])
    whole = caption_similarity.splitter_of
    monkeypatch.setattr(caption_similarity, "splitter_of", lambda of, options: whole(of, options) and Halves())
    with Store.open(lab.url, "write") as store:
        done = rescore(store, world(), eval_settings=[SIMILAR])
    assert [each.status for each in done] == ["failed", "failed"]
    assert "have no stored embedding; testbed run" in done[0].reason
    assert lab.metrics("vary", SIMILAR)["hm_cf"].n == COUNT  # the old evaluation counts
    work.clear()
    assert [each.status for each in lab.run(world(), ["vary"], [SIMILAR]).outcomes] == ["scored"]
    assert work["answers"] == 0
    assert evaluation_of_split(lab) == "halves"


def evaluation_of_split(lab: Any) -> str:
    with lab.open() as store:
        (result, *_) = store.results.find(["vary"], [SIMILAR])
        return str(store.evaluations.identity(store.evaluations.get(result.evaluation_id))["view"]["splitter"])


def test_scoring_again_without_the_scorers_images_says_so(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.tasks import caption_clip_score

    lab.run(world(), ["vary"], [SIMILAR, CLIP])
    monkeypatch.setattr(caption_clip_score, "SCORER", "clip_score@later")
    with Store.open(lab.url, "write") as store:
        store.removal.hide("tower", "shown.image_embeddings")
        done = {each.eval_setting: each for each in rescore(store, world())}
    assert done[CLIP].status == "failed"
    assert "the judge's image embeddings" in done[CLIP].reason
    assert "are missing from the store; testbed run" in done[CLIP].reason
    assert done[SIMILAR].status == "current"
    assert lab.run(world(), ["vary"], [CLIP]).of("scored")


def test_captions_of_perturbed_images_are_scored(lab: Any, work: Any) -> None:
    made = world(setting("darker", perturbation_fn_gpu=toy.darker))
    assert len(lab.run(made, ["vary"], [SIMILAR, "darker@hash"]).of("scored")) == 2
    assert (work["answers"], work["images perturbed"]) == (2 * COUNT, COUNT)
    for name, values in scores(lab, "vary", SIMILAR).items():
        np.testing.assert_array_equal(scores(lab, "vary", "darker@hash")[name], values)


# CLIPScore --------------------------------------------------------------------------------------------------------


def tower_texts(given: Sequence[str]) -> np.ndarray:
    with torch.no_grad():
        return ToyTower().encode_text(tokenize(given)).numpy()


def tower_images(count: int = COUNT) -> np.ndarray:
    pixels = torch.from_numpy(ToyImages(count, 0, ()).pixels).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        return ToyTower().encode_image(pixels).numpy()


def test_clip_score_is_the_cosine_of_caption_and_image(lab: Any) -> None:
    blank = captioner("blank", lambda number: "" if number < 5 else vary(number))
    lab.run(world(blank), ["vary", "blank"], [CLIP])
    images, captions = tower_images(), [vary(number) for number in range(COUNT)]
    cosines = pair_cosines(images, tower_texts(captions))
    found = scores(lab, "vary", CLIP)
    np.testing.assert_allclose(found["cosine"], cosines, atol=1e-6)
    nearest = [
        max(pair_cosines(tower_texts([caption] * len(several)), tower_texts(several)))
        for caption, several in zip(captions, REFERENCES, strict=True)
    ]
    np.testing.assert_allclose(found["reference_cosine"], nearest, atol=1e-6)
    np.testing.assert_allclose(
        found["ref_clip_score"], ref_clip_score(cosines, np.asarray(nearest)[:, None]), atol=1e-6
    )
    metrics = lab.metrics("vary", CLIP)
    assert metrics["clip_score"].value == pytest.approx(max(cosines.mean(), 0), abs=1e-6)
    assert metrics["clip_score_pairwise"].value == pytest.approx(np.maximum(cosines, 0).mean(), abs=1e-6)
    assert metrics["ref_clip_score"].n == COUNT
    for name in ("cosine", "ref_clip_score"):  # of a blank caption it is zero
        expected = np.where(np.arange(COUNT) < 5, 0, found[name])
        np.testing.assert_allclose(scores(lab, "blank", CLIP)[name], expected, atol=1e-6)


def test_the_scorers_embeddings_serve_other_tasks_too(lab: Any, work: Any) -> None:
    pairs = EvalSetting(name="pairs", dataset=Targets("captions", count=COUNT), size=COUNT, task="retrieval")
    lab.run(world(pairs), ["tower"], ["pairs"])
    references = work["texts embedded"]
    assert references == len({text for several in REFERENCES for text in several})
    lab.run(world(pairs), ["vary", "repeat"], [CLIP])
    assert work["images embedded"] == COUNT
    assert work["texts embedded"] == references + len(
        {say(number) for say in (vary, repeat) for number in range(COUNT)}
    )
    with lab.open() as store:
        assert {(each.model, each.eval_setting) for each in store.evaluations.find()} == {
            ("tower", "pairs"),
            ("tower", "pairs.image_embeddings"),
            ("vary", SETTING),
            ("vary", CLIP),
            ("repeat", SETTING),
            ("repeat", CLIP),
        }


def test_images_are_embedded_once_in_one_run(lab: Any, work: Any) -> None:
    lab.run(world(), ["vary", "repeat"], [CLIP, "shown.clip_score.prefix@tower"])
    assert work["images embedded"] == COUNT
    assert not np.allclose(
        scores(lab, "vary", CLIP)["cosine"], scores(lab, "vary", "shown.clip_score.prefix@tower")["cosine"]
    )


def test_image_embeddings_that_were_asked_for_are_made_once(lab: Any, work: Any) -> None:
    report = lab.run(world(), ["vary", "tower"], [CLIP, "shown.image_embeddings"])
    assert [(each.model, each.setting) for each in report.of("scored", "complete")] == [
        ("vary", CLIP),
        ("tower", "shown.image_embeddings"),
    ]
    assert work["images embedded"] == COUNT
    assert not report.plan.needed()[1:]  # the captions alone


def test_clip_score_without_references_needs_none(lab: Any) -> None:
    class Bare(Targets):
        def open(self) -> ToyImages:
            source = super().open()
            source.targets = [[] for _ in source.ids]
            return source

    bare = EvalSetting(name="bare", dataset=Bare("captions", count=COUNT), size=COUNT, task="captioning")
    made = catalog(bare, captioner("vary", vary), captioner("blank", lambda number: " "), toy_encoder())
    lab.run(made, ["vary", "blank"], ["bare.clip_score@tower"])
    assert set(lab.metrics("vary", "bare.clip_score@tower")) == {
        "clip_score", "clip_score_pairwise", "coverage", "empty",
    }  # fmt: skip
    metrics = lab.metrics("blank", "bare.clip_score@tower")
    assert (metrics["clip_score"].value, metrics["clip_score"].n, metrics["empty"].value) == (0, COUNT, 1)


def test_an_image_that_only_the_scorer_reads_and_cannot_is_not_scored(lab: Any) -> None:
    blind = captioner("blind", vary)
    blind.sees_images = False  # as recorded predictions
    lab.run(catalog(setting(broken=[4]), blind, toy_encoder()), ["blind"], [CLIP])
    found = scores(lab, "blind", CLIP)
    assert np.isnan(found["cosine"][4])
    assert found["status"][[3, 4]].tolist() == [0, 3]
    assert lab.metrics("blind", CLIP)["clip_score"].n == COUNT - 1


def test_a_scorer_that_cannot_is_not_supported(lab: Any) -> None:
    report = lab.run(world(), ["vary"], ["shown.clip_score@hash", "shown@vary"])
    assert [each.reason for each in report.of("unsupported")] == [
        "shown.clip_score@hash needs embed_image and embed_text; hash has embed_text",
        "shown@vary needs embed_text; vary has generate",
    ]


# Planning ---------------------------------------------------------------------------------------------------------


def test_the_plan_says_what_is_scored_from_what(lab: Any, work: Any) -> None:
    options = RunOptions(db_url=lab.url, executor="inline")
    plan = make_plan(world(), options, ["vary"], [SIMILAR, CLIP])
    assert [cell.action for cell in plan.cells] == [Action.SCORE, Action.SCORE]
    assert [(cell.model, cell.setting) for cell in plan.needed()] == [
        ("vary", SETTING),
        ("tower", "shown.image_embeddings"),
    ]
    assert not work["answers"]
    lab.run(world(), ["vary"], [SIMILAR, CLIP])
    plan = make_plan(world(), options, ["vary"], [SIMILAR, CLIP, "shown.coarse@hash"])
    assert [cell.action for cell in plan.cells] == [Action.DONE, Action.DONE, Action.SCORE]
    assert plan.needed() == []


def test_two_names_of_a_captioner_answer_once_and_two_of_a_scorer_embed_once(lab: Any, work: Any) -> None:
    again = captioner("vary", vary).under_name("again")
    report = lab.run(world(again, hash_encoder("twin")), ["vary", "again"], [SIMILAR, "shown@twin"])
    assert [each.status for each in report.outcomes] == ["scored"] * 4
    assert work["answers"] == COUNT
    wanted = texts_of([vary(number) for number in range(COUNT)], REFERENCES, get_splitter(), SimilarityOptions())
    assert work["texts hashed"] == len(wanted)
    for model, name in (("again", SIMILAR), ("again", "shown@twin")):
        np.testing.assert_array_equal(scores(lab, "vary", SIMILAR)["hm_cf"], scores(lab, model, name)["hm_cf"])


# Files ------------------------------------------------------------------------------------------------------------


def test_captions_are_written_as_recorded_predictions_read_them(lab: Any, tmp_path: Path) -> None:
    def patchy(number: int) -> str | Generation:
        return Generation("", "missing") if number == 3 else "" if number == 4 else f"Käse {number} \ud83d"

    lab.run(catalog(setting(), captioner("patchy", patchy)))
    with lab.open() as store:
        (path,) = save_texts(store, SETTING, tmp_path / "said")
        assert write_run(store, [evaluation(lab, "patchy", SETTING).id], tmp_path / "log") == 1
        with pytest.raises(UnknownNameError, match="no texts of other on shown"):
            save_texts(store, SETTING, tmp_path, ["other"])
    assert path.name == "patchy.json"
    assert (tmp_path / "log" / SETTING / "patchy.json").read_bytes() == path.read_bytes()
    read = read_predictions(path)
    assert read.texts["toy/0000"] == "Käse 0 \ufffd"
    assert read.absent == {"toy/0003"}
    assert read.texts["toy/0004"] == ""


def test_a_growing_limit_asks_about_each_sample_once(lab: Any, work: Any) -> None:
    for limit in (4, None):
        assert lab.run(world(), ["vary"], [SETTING], limit=limit).ok
    assert work["answers"] == work["images read"] == COUNT
    with lab.open() as store:
        whole = max(store.evaluations.find(["vary"], [SETTING]), key=lambda each: each.size or 0)
        assert [each["text"] for each in store.outputs.read(whole.id, "text")] == [vary(n) for n in range(COUNT)]

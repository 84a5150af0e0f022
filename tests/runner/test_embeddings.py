"""Tasks on stored image embeddings: each model embeds each image once, whatever is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import toy
from toy import CLASSES, SIZE, ToyImages, toy_catalog, toy_model
from toy_towers import ASKED, Targets, ToyTower, everything, tokenize, toy_encoder, zero_shot

from testbed.db.connection.lookup import names
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.options import RunOptions
from testbed.inputs import Inputs
from testbed.models.model_base import ImageEncoder, StandardTransform
from testbed.process.oom import DeviceError
from testbed.runner.dry_run import make_plan


def plain_embeddings(count: int = 90, seed: int = 0) -> torch.Tensor:
    pixels = torch.from_numpy(ToyImages(count, seed, ()).pixels).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        return ToyTower().encode_image(pixels)


# Once -------------------------------------------------------------------------------------------------------------


def test_each_image_is_embedded_once_for_all_tasks_and_languages(lab: Any, work: Any) -> None:
    catalog = toy_catalog(toy_encoder(), *everything(), *everything("de"))
    report = lab.run(catalog, settings=[*ASKED, "shown.de", "captions.de", "choices.de"])
    assert report.ok, report.outcomes
    assert work["images embedded"] == 90 + 60
    assert work["images read"] == 90 + 60
    assert {outcome.status for outcome in report.outcomes} == {"complete"}


def test_another_language_later_embeds_texts_only(lab: Any, work: Any) -> None:
    lab.run(toy_catalog(toy_encoder(), *everything()), settings=ASKED)
    work.clear()
    report = lab.run(toy_catalog(toy_encoder(), *everything("de")))
    assert report.ok
    assert work["images embedded"] == work["images read"] == 0
    assert work["texts embedded"] > 0
    work.clear()
    assert lab.run(toy_catalog(toy_encoder(), *everything("de"))).of("stored")
    assert work["texts embedded"] == work["images embedded"] == 0


def test_images_that_are_there_twice_are_embedded_once(lab: Any, work: Any) -> None:
    setting = EvalSetting(name="captions", dataset=Targets("captions", twice=20), size=110, task="retrieval")
    assert lab.run(toy_catalog(toy_encoder(), setting)).ok
    assert work["images embedded"] == 90
    embedded = lab.outputs("tower", "captions", "image_embeddings")
    np.testing.assert_array_equal(embedded[90:], embedded[:20])


def test_a_smaller_data_set_takes_the_embeddings_of_a_larger_one(lab: Any, work: Any) -> None:
    small = EvalSetting(name="few", dataset=Targets("choices", 90), size=30, task="selection",
                        idx_subsample_list=range(30))  # fmt: skip
    large = EvalSetting(name="many", dataset=Targets("captions", 90), size=90, task="retrieval")
    assert lab.run(toy_catalog(toy_encoder(), small, large)).ok
    assert work["images embedded"] == 90
    np.testing.assert_array_equal(
        lab.outputs("tower", "few", "image_embeddings"), lab.outputs("tower", "many", "image_embeddings")[:30]
    )


def captions_of(count: int = 90) -> set[str]:
    return {caption for several in Targets("captions", count).open().targets for caption in several}


def test_tasks_that_share_captions_embed_each_once_in_one_run_and_later(lab: Any, work: Any) -> None:
    captions = EvalSetting(name="captions", dataset=Targets("captions"), size=90, task="retrieval")
    pairs = EvalSetting(name="pairs", dataset=Targets("captions"), size=90, task="clip_score")
    others = EvalSetting(name="recalls", dataset=Targets("captions"), size=90, task="retrieval",
                         task_options={"recall_k": [3]})  # fmt: skip
    assert lab.run(toy_catalog(toy_encoder(), captions, pairs)).ok
    assert work["texts embedded"] == len(captions_of())
    assert work["images embedded"] == 90
    assert lab.run(toy_catalog(toy_encoder(), captions, pairs, others)).ok
    assert work["texts embedded"] == len(captions_of())


def test_a_growing_limit_embeds_only_what_is_lacking(lab: Any, work: Any) -> None:
    catalog = toy_catalog(toy_encoder(), *everything())
    for limit in (5, None):
        assert lab.run(catalog, settings=["captions"], limit=limit).ok
    assert work["texts embedded"] == len(captions_of())
    assert work["images embedded"] == 90


def test_the_dry_run_counts_texts_that_are_not_stored(lab: Any) -> None:
    catalog = toy_catalog(toy_encoder(), *everything())
    options = RunOptions(db_url=lab.url, executor="inline")

    def texts() -> list[tuple[int | None, int | None]]:
        plan = make_plan(catalog, options, ["tower"], ["captions"])
        return [(each.samples, each.to_do) for each in plan.passes if each.one_pass.reads == "texts"]

    everything_there = len(captions_of())
    assert texts() == [(everything_there, everything_there)]
    lab.run(catalog, settings=["captions"], limit=30)
    ((count, to_do),) = texts()
    assert count == everything_there
    assert to_do is not None
    assert 0 < to_do < everything_there


# The same numbers -------------------------------------------------------------------------------------------------


def test_zero_shot_logits_are_the_same_with_and_without_stored_embeddings(new_lab: Any) -> None:
    direct, stored = new_lab("direct"), new_lab("stored")
    direct.run(toy_catalog(toy_encoder(), zero_shot(keep_embeddings=False)))
    stored.run(toy_catalog(toy_encoder(), zero_shot()))
    np.testing.assert_array_equal(direct.logits("tower", "shown"), stored.logits("tower", "shown"))
    with direct.open() as one, stored.open() as other:
        (a,) = one.evaluations.find(["tower"], ["shown"])
        (b,) = other.evaluations.find(["tower"], ["shown"])
        assert a.fingerprint == b.fingerprint


def test_embeddings_retrieval_and_the_score_of_a_probe_are_those_of_a_plain_loop(lab: Any) -> None:
    lab.run(toy_catalog(toy_encoder(), *everything()), settings=["captions", "probe"])
    logits = lab.logits("tower", "probe")
    assert logits.shape == (90, CLASSES)
    correct = logits.argmax(1) == np.array(Targets("classes").open().targets)
    assert lab.metrics("tower", "probe")["top1"].value == pytest.approx(correct.mean())
    embedded = lab.outputs("tower", "captions", "image_embeddings")
    np.testing.assert_allclose(embedded, plain_embeddings().numpy(), atol=1e-6)
    images = torch.nn.functional.normalize(plain_embeddings(), dim=1)
    captions = Targets("captions").open().targets
    with torch.no_grad():
        texts = ToyTower().encode_text(tokenize([caption for of_image in captions for caption in of_image]))
    similar = torch.nn.functional.normalize(texts, dim=1) @ images.T
    own = torch.arange(90).repeat_interleave(2)
    right = similar[torch.arange(180), own]
    for k in (1, 5, 10):
        recall = ((similar > right[:, None]).sum(1) < k).double().mean()
        assert lab.metrics("tower", "captions")[f"image_retrieval_recall@{k}"].value == pytest.approx(float(recall))


def test_labels_of_several_classes_are_ranked(lab: Any) -> None:
    setting = zero_shot("labels", dataset=Targets("labels"), task="multilabel")
    assert lab.run(toy_catalog(toy_encoder(), toy_model(), setting)).ok  # zero-shot, and by a classifier
    for model in ("tower", "toy"):
        assert 0 < lab.metrics(model, "labels")["mean_average_precision"].value < 1


def test_nothing_depends_on_the_batch_size(new_lab: Any) -> None:
    usual, other = new_lab("usual"), new_lab("other")
    usual.run(toy_catalog(toy_encoder(), *everything()), settings=ASKED)
    other.run(toy_catalog(toy_encoder(), *everything()), settings=ASKED, batch_size=7)
    for setting in ASKED:
        there = other.metrics("tower", setting)
        for name, metric in usual.metrics("tower", setting).items():
            assert there[name].value == pytest.approx(metric.value, abs=1e-5), (setting, name)


def test_another_precision_has_embeddings_of_its_own(lab: Any, work: Any) -> None:
    catalog = toy_catalog(toy_encoder(), *everything())
    lab.run(catalog, settings=["captions"])
    lab.run(catalog, settings=["captions"], dtype="bfloat16")
    assert work["images embedded"] == 180
    with lab.open() as store:
        embedded = [each for each in store.evaluations.find() if each.eval_setting.endswith(".image_embeddings")]
        assert [store.outputs.kinds(each.id) for each in embedded] == [
            {"image_embeddings": "float32"}, {"image_embeddings": "bfloat16"},
        ]  # fmt: skip


def test_a_perturbed_setting_embeds_its_own_images(lab: Any, work: Any) -> None:
    dark = EvalSetting(name="dark", dataset=Targets("captions"), size=90, task="retrieval",
                       perturbation_fn_gpu=toy.darker, image_set="captions")  # fmt: skip
    plain = EvalSetting(name="captions", dataset=Targets("captions"), size=90, task="retrieval")
    assert lab.run(toy_catalog(toy_encoder(), dark, plain)).ok
    assert work["images embedded"] == 180
    assert work["images read"] == 90
    difference = lab.outputs("tower", "dark", "image_embeddings") - lab.outputs("tower", "captions", "image_embeddings")
    assert np.abs(difference).max() > 0.1


def test_heads_can_be_saved_and_their_mean_be_used(lab: Any, tmp_path: Any) -> None:
    from testbed.tasks.parts.head_files import save_heads

    settings = [zero_shot(), zero_shot("other", "some {c}")]
    lab.run(toy_catalog(toy_encoder(), *settings))
    with lab.open() as store:
        saved = save_heads(store, store.evaluations.find(), tmp_path)
    assert [path.name for path in saved] == ["tower_other.npy", "tower_shown.npy"]
    heads = [np.load(path) for path in saved]
    images = torch.nn.functional.normalize(plain_embeddings(), dim=1).numpy()
    np.testing.assert_allclose(lab.logits("tower", "other"), 100 * images @ heads[0], atol=1e-4)
    wordless = zero_shot("mean", templates=None, keep_embeddings=False)
    assert lab.run(toy_catalog(toy_encoder(), wordless), inputs=Inputs().but(heads=saved)).ok
    np.testing.assert_allclose(lab.logits("tower", "mean"), 100 * images @ np.mean(heads, axis=0), atol=1e-4)
    with lab.open() as store:
        assert save_heads(store, store.evaluations.find(eval_settings=["mean"]), tmp_path / "none") == []


# The store --------------------------------------------------------------------------------------------------------


def test_what_is_stored_is_sound_and_can_be_scored_again(lab: Any, work: Any) -> None:
    from testbed.scoring.rescore import rescore

    catalog = toy_catalog(toy_encoder(), *everything())
    lab.run(catalog, settings=ASKED)
    before = lab.metrics("tower", "captions")
    changed = toy_catalog(
        EvalSetting(name="captions", dataset=Targets("captions"), size=90, task="retrieval",
                    task_options={"recall_k": [3]}, image_set="shown")
    )  # fmt: skip
    work.clear()
    with lab.open() as store:
        assert list(store.maintenance.check()) == []
    from testbed.db.store import Store

    with Store.open(lab.url, "write") as store:
        done = rescore(store, changed, eval_settings=["captions"])
        assert list(store.maintenance.check()) == []
    assert [each.status for each in done] == ["rescored"], done
    after = lab.metrics("tower", "captions")
    assert before["image_retrieval_recall@1"].value <= after["image_retrieval_recall@3"].value
    assert "image_retrieval_recall@1" not in after
    assert not work


def test_an_image_that_cannot_be_read_is_a_miss_everywhere(lab: Any) -> None:
    broken = [3, 40]
    settings = [
        EvalSetting(name="captions", dataset=Targets("captions", broken=broken), size=90, task="retrieval"),
        zero_shot(dataset=Targets("classes", broken=broken)),
    ]
    report = lab.run(toy_catalog(toy_encoder(), *settings))
    assert report.ok
    with lab.open() as store:
        for outcome in report.outcomes:
            assert sorted(store.outputs.errors(outcome.evaluation_id)) == broken
        assert np.isnan(lab.outputs("tower", "captions", "image_embeddings")[broken]).all()
        captions = next(each for each in report.outcomes if each.setting == "captions")
        ranks = store.scores.read(captions.evaluation_id, "text_retrieval_rank")
    (of_images,) = ranks.values()
    assert np.isinf(of_images[broken]).all()


def test_what_needs_embeddings_that_fail_says_so(lab: Any) -> None:
    class Broken(ToyTower):
        def encode_image(self, images: torch.Tensor) -> torch.Tensor:
            raise ValueError("no images today")

    catalog = toy_catalog(toy_encoder(encoder_loader=lambda: (Broken(), tokenize)), *everything())
    report = lab.run(catalog, settings=[*ASKED, "train"])
    reasons = {outcome.setting: outcome.reason for outcome in report.outcomes}
    assert all("no images today" in reasons[name] for name in ("shown", "captions", "choices", "probe"))


def test_texts_that_fail_fail_alone(lab: Any) -> None:
    def moody(texts: Sequence[str]) -> torch.Tensor:
        if any("picture" in text for text in texts):
            raise ValueError("such words are not for me")
        return tokenize(texts)

    catalog = toy_catalog(toy_encoder(encoder_loader=lambda: (ToyTower(), moody)), *everything())
    report = lab.run(catalog, settings=ASKED)
    assert [outcome.setting for outcome in report.of("failed")] == ["captions"]
    assert "such words are not for me" in report.of("failed")[0].reason
    assert len(report.of("complete")) == 3


def test_a_device_that_fails_with_texts_ends_the_worker_and_not_only_the_cell(lab: Any) -> None:
    def broken(texts: Sequence[str]) -> torch.Tensor:
        raise RuntimeError("CUDA error: device-side assert triggered")

    catalog = toy_catalog(toy_encoder(encoder_loader=lambda: (ToyTower(), broken)), *everything())
    with pytest.raises(DeviceError, match="device-side assert"):
        lab.run(catalog, settings=["captions", "choices"])
    with lab.open() as store:
        (failed,) = [each for each in store.evaluations.find() if each.status == "failed"]
        assert "device-side assert" in failed.error


# Planning ---------------------------------------------------------------------------------------------------------


def test_a_plan_says_which_embeddings_must_be_made(lab: Any) -> None:
    catalog = toy_catalog(toy_encoder(), *everything())
    options = RunOptions(db_url=lab.url)
    plan = make_plan(catalog, options, ["tower"], ASKED)
    assert [cell.setting for cell in plan.needed()] == ["shown.image_embeddings", "train.image_embeddings"]
    lab.run(catalog, settings=["captions"])
    plan = make_plan(catalog, options, ["tower"], ["choices", "probe"])
    assert [cell.setting for cell in plan.needed()] == ["train.image_embeddings"]


def test_who_cannot_embed_is_told_so(lab: Any) -> None:
    backbone = ImageEncoder(
        name="backbone", transform=StandardTransform(SIZE, SIZE), encoder_loader=ToyTower, eval_batch_size=64
    )
    report = lab.run(toy_catalog(backbone, toy_model(), *everything()), settings=ASKED)
    reasons = {(each.model, each.setting): each.reason for each in report.of("unsupported")}
    assert "embed_text" in reasons["backbone", "captions"]
    assert "embed_image" in reasons["toy", "probe"]
    assert [(each.model, each.setting) for each in report.of("complete")] == [("backbone", "probe"), ("toy", "shown")]


def test_image_embeddings_can_be_asked_for_and_are_not_among_the_results(lab: Any, work: Any) -> None:
    catalog = toy_catalog(toy_encoder(), *everything())
    report = lab.run(catalog, settings=["captions.image_embeddings"])
    assert report.ok
    with lab.open() as store:
        (evaluation,) = store.evaluations.find(["tower"], ["captions.image_embeddings"])
        (norm,) = store.results.metrics(evaluation.id)
        assert (norm.name, norm.value) == (
            "embedding_norm", pytest.approx(float(plain_embeddings().norm(dim=1).mean()), rel=1e-5)
        )  # fmt: skip
        assert store.results.find() == []
        assert store.names.all("eval setting") == names(lab.url, "eval setting") == []
    work.clear()
    assert lab.run(catalog, settings=["captions", "choices"]).ok
    assert work["images embedded"] == 0
    assert "captions.image_embeddings.image_embeddings" not in catalog.eval_settings
    with lab.open() as store:
        assert [each.name for each in store.names.all("eval setting")] == ["captions", "choices"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the task linear_probe needs 'train': a text"),
        ({"train": "nowhere"}, "nowhere"),
    ],
)
def test_options_that_make_no_sense_are_told_before_anything_runs(
    lab: Any, work: Any, options: dict[str, Any], message: str
) -> None:
    setting = EvalSetting("wrong", Targets("classes"), 90, task="linear_probe", task_options=options)
    report = lab.run(toy_catalog(toy_encoder(), setting, everything()[-1]), settings=["wrong"])
    (outcome,) = report.outcomes
    assert outcome.status == "failed"
    assert message in outcome.reason
    assert work["images embedded"] == 0


def test_embeddings_that_are_derived_themselves_serve_other_tasks(lab: Any, work: Any) -> None:
    made = toy_catalog(toy_encoder(), *everything())
    images = ["shown.image_embeddings"]
    lab.run(made, ["tower"], images)
    assert lab.run(made, ["tower"], images, limit=9).of("derived")
    report = lab.run(made, ["tower"], ["captions", "choices"], limit=9)
    assert [each.status for each in report.outcomes] == ["complete", "complete"]
    assert work["images embedded"] == 90

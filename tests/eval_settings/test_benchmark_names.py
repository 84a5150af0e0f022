"""Names of settings on named data sets: what they say, and their one spelling."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from testbed.errors import DefinitionError, DuplicateNameError
from testbed.eval_settings.benchmark_families.benchmark import Benchmarks
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.benchmark_names import BenchmarkName
from testbed.eval_settings.eval_setting_base import StandardDataset


def declared(name: str, kind: str = "classification", **options: Any) -> BenchmarkDataset:
    return BenchmarkDataset(
        name, kind, lambda split, language: StandardDataset(f"{name}-{split}-{language}"), **options
    )


@pytest.fixture
def benchmarks() -> Benchmarks:
    known = Benchmarks()
    known.add(
        declared(
            "cifar10",
            splits=("test", "train", "val"),
            languages=("en", "cn", "it"),
            sizes={"test": 10},
            class_names=lambda language: [f"cat ({language})", "dog"],
            templates=lambda language: ["{c}" if language == "en" else "x{c}"],
        )
    )
    known.add(declared("captions", "retrieval", languages=("en", "zh", "de"), splits=("test", "val")))
    known.add(declared("pairs/a.b", "selection"))
    known.add(declared("objects", "multilabel", splits=("test", "train")))
    known.add_open("wds/", lambda name: declared(name, splits=("test", "train")))
    return known


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("cifar10", "cifar10"),
        ("cifar10.zeroshot", "cifar10"),
        ("cifar10.zeroshot_classification.test", "cifar10"),
        ("cifar10.train", "cifar10.train"),
        ("cifar10.it", "cifar10.zeroshot.it"),
        ("cifar10.zeroshot.zh", "cifar10.zeroshot.cn"),
        ("cifar10.en", "cifar10"),
        ("cifar10.it.train", "cifar10.train.zeroshot.it"),
        ("cifar10.linear_probe", "cifar10.linear_probe"),
        ("cifar10.linear_probe.k5", "cifar10.linear_probe.k5"),
        ("cifar10.k5.linear_probe", "cifar10.linear_probe.k5"),
        ("cifar10.linear_probe.lr0.1.seed0.epochs10.batch64.train-train", "cifar10.linear_probe"),
        ("cifar10.linear_probe.epochs20.lr0.05.val10.lbfgs", "cifar10.linear_probe.lbfgs.val10.lr0.05.epochs20"),
        ("cifar10.linear_probe.val12.5", "cifar10.linear_probe.val12.5"),
        ("cifar10.linear_probe.val-val.seed3", "cifar10.linear_probe.val-val.seed3"),
        ("cifar10.linear_probe.unnormalized", "cifar10.linear_probe.unnormalized"),
        ("captions.zeroshot_retrieval.zh", "captions.zeroshot.zh"),
        ("captions.recall10-5-1", "captions"),
        ("captions.recall10-1-10.de", "captions.recall1-10.zeroshot.de"),
        ("captions.clip_score", "captions.clip_score"),
        ("captions.zh.prefix.val.clip_score", "captions.val.clip_score.prefix.zh"),
        ("captions.zeroshot.zh.clip_score", "captions.clip_score.zh"),
        ("captions.captioning.de", "captions.captioning.de"),
        ("captions.test.captioning.en", "captions.captioning"),
        ("pairs/a.b.image_caption_selection", "pairs/a.b"),
        ("objects.train", "objects.train"),
        ("wds/vtab/x.y", "wds/vtab/x.y"),
        ("wds/vtab/x.y.linear_probe.k1", "wds/vtab/x.y.linear_probe.k1"),
        ("wds/x.test", "wds/x"),
        ("wds/x.zeroshot.it", "wds/x.zeroshot.it"),
        ("wds/x.zeroshot.en", "wds/x"),
        ("wds/x.y.zeroshot.zho_Hans", "wds/x.y.zeroshot.zho_Hans"),
        ("wds/x.train", "wds/x.train"),
        ("wds/x.y.captioning", "wds/x.y.captioning"),
        ("wds/x.clip_score.train.prefix", "wds/x.train.clip_score.prefix"),
    ],
)
def test_a_name_has_one_spelling(benchmarks: Benchmarks, given: str, canonical: str) -> None:
    assert benchmarks.canonical(given) == canonical
    assert benchmarks.canonical(canonical) == canonical


@pytest.mark.parametrize(
    "name",
    [
        *("cifar100", "cifar10.", "cifar10.xx", "cifar10.k5", "cifar10.linear_probe.k0", "cifar10.linear_probe.k1.k2"),
        *("cifar10.train.test", "cifar10.en.it", "cifar10.recall5", "captions.recall0", "captions.linear_probe"),
        *("objects.linear_probe", "cifar10.zeroshot_retrieval", "wds/", "cifar10.linear_probe.lr", "cifar10..train"),
        *("cifar10.image_embeddings", "captions.captioning.image_embeddings"),
        *("cifar10.clip_score", "pairs/a.b.captioning", "captions.prefix", "captions.captioning.prefix"),
        *("captions.clip_score.captioning", "captions.clip_score.recall5", "captions.captioning.k5"),
        *("captions.clip_score.prefix.prefix", "captions.clip_score.zeroshot", "cifar10.linear_probe.prefix"),
        *("captions.captioning@ViT-B-32,openai", "wds/x.captioning@m", "wds/x.captioning.clip_score@a/b.c"),
    ],
)
def test_what_says_nothing_is_no_name(benchmarks: Benchmarks, name: str) -> None:
    assert benchmarks.canonical(name) is None


def test_what_is_said_is_in_the_setting(benchmarks: Benchmarks) -> None:
    plain = benchmarks.build("cifar10")
    assert (plain.task, plain.size, plain.language, plain.dataset.name) == (
        "classification", 10, "en", "cifar10-test-en",
    )  # fmt: skip
    assert plain.prompts.texts(None) == [["cat (en)"], ["dog"]]
    assert plain.keep_embeddings
    italian = benchmarks.build("cifar10.zeroshot.it")
    assert italian.prompts.texts(None) == [["xcat (it)"], ["xdog"]]
    assert (italian.language, italian.image_set, italian.dataset.name) == ("it", "cifar10", "cifar10-test-it")
    retrieval = benchmarks.build("captions.val.recall1-3.zeroshot.de")
    assert (retrieval.task, retrieval.task_options, retrieval.image_set) == (
        "retrieval", {"recall_k": [1, 3]}, "captions.val",
    )  # fmt: skip


def test_other_tasks_on_the_same_samples_share_image_embeddings(benchmarks: Benchmarks) -> None:
    scored = benchmarks.build("captions.val.clip_score.prefix.zh")
    assert (scored.task, scored.language, scored.image_set, scored.task_options) == (
        "clip_score", "zh", "captions.val", {"prefix": "A photo depicts "},
    )  # fmt: skip
    assert benchmarks.build("captions.clip_score").task_options == {}
    described = benchmarks.build("captions.captioning")
    assert (described.task, described.image_set, described.dataset.name) == (
        "captioning", "captions", "captions-test-en",
    )  # fmt: skip


def test_a_probe_knows_its_other_splits_and_options(benchmarks: Benchmarks) -> None:
    probe = benchmarks.build("cifar10.linear_probe.k5.val-val.lr0.05.epochs20.batch512.seed1.unnormalized")
    assert probe.task_options == {
        "train": "cifar10.train",
        "validation": "cifar10.val",
        "probe": {
            "fewshot_k": 5, "seed": 1, "lr": 0.05, "epochs": 20, "batch_size": 512, "normalize": False,
        },
    }  # fmt: skip
    assert benchmarks.build("cifar10.linear_probe.val10").task_options["probe"] == {"val_proportion": 0.1}
    assert benchmarks.build("cifar10.train.linear_probe.train-val").task_options["train"] == "cifar10.val"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifar10.linear_probe.train-test", "cannot be trained on the evaluated split 'test'"),
        ("cifar10.linear_probe.train-old", "has no split 'old'; there are test, train, val"),
        ("cifar10.linear_probe.val-val.val10", "not both"),
        ("wds/x.zeroshot.it", "has the languages en, not 'it'"),
        ("wds/x.train.linear_probe", "cannot be trained on the evaluated split 'train'"),
        ("wds/x.captioning", "captioning is for data sets with captions; wds/x is classification"),
    ],
)
def test_a_probe_that_makes_no_sense_is_refused(benchmarks: Benchmarks, name: str, message: str) -> None:
    canonical = benchmarks.canonical(name)
    assert canonical is not None
    with pytest.raises(DefinitionError, match=message):
        benchmarks.build(canonical)


def test_all_is_listed_but_what_is_open_ended(benchmarks: Benchmarks) -> None:
    assert list(benchmarks.names()) == [
        *("cifar10", "cifar10.zeroshot.cn", "cifar10.zeroshot.it", "cifar10.linear_probe"),
        *("captions", "captions.zeroshot.zh", "captions.zeroshot.de", "captions.clip_score", "captions.captioning"),
        *("pairs/a.b", "objects"),
    ]
    assert all(benchmarks.canonical(name) == name for name in benchmarks.names())


def test_a_name_can_be_taken_once(benchmarks: Benchmarks) -> None:
    with pytest.raises(DuplicateNameError, match="two data sets are named 'cifar10'"):
        benchmarks.add(declared("cifar10"))
    with pytest.raises(DefinitionError, match="kind is one of"):
        declared("x", "regression")


def test_every_field_of_a_name_is_written() -> None:
    full = BenchmarkName(
        "d", "s", "linear_probe", "it", 5, "lbfgs", 1, 0.5, 3, 7, "v", 12.5, "t", False, recall=(1, 2), prefix=True
    )  # fmt: skip
    assert all(getattr(full, each.name) is not None for each in fields(full))
    assert (
        str(full)
        == "d.s.linear_probe.lbfgs.k5.train-t.val-v.val12.5.lr0.5.epochs3.batch7.seed1.unnormalized.prefix.recall1-2.it"
    )

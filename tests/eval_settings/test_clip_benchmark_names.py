"""Names of settings and what CLIP benchmark's records say about them, both ways."""

from __future__ import annotations

import pytest

from testbed.eval_settings.benchmark_families import benchmark as benchmark_base
from testbed.eval_settings.benchmark_families import clip_benchmark_names as clip_benchmark_names_base
from testbed.eval_settings.benchmark_families.benchmark import Benchmarks
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.clip_benchmark_names import ClipBenchmarkFields, place_of, setting_of
from testbed.eval_settings.eval_setting_base import StandardDataset
from testbed.registry import Catalog

FULL = {"fewshot_k": -1, "epochs": 10, "seed": 0, "normalized": True}
TOP = ["top1", "top5"]
RECALL = ["image_retrieval_recall@5", "text_retrieval_recall@5"]


def declared(name, kind="classification", **options):
    return BenchmarkDataset(name, kind, lambda split, language: StandardDataset(name), **options)


@pytest.fixture(params=["known", "unknown"])
def known(request, monkeypatch):
    """Whether the data sets are registered."""
    benchmarks = Benchmarks()
    if request.param == "known":
        for each in (
            declared("cifar10", splits=("test", "train"), languages=("en", "cn", "jp")),
            declared("coco", "retrieval", languages=("en", "de")),
            declared("many", "retrieval", languages=("eng_Latn", "ace_Arab")),
        ):
            benchmarks.add(each)
    catalog = Catalog(packages=(), entry_points=False)
    catalog.add_eval_setting_family(benchmarks)
    for module in (benchmark_base, clip_benchmark_names_base):
        monkeypatch.setattr(module, "BENCHMARKS", benchmarks)
        monkeypatch.setattr(module, "registry", catalog)
    return request.param == "known"


@pytest.mark.parametrize(
    ("name", "metrics", "place"),
    [
        ("cifar10", TOP, ClipBenchmarkFields("cifar10")),
        ("cifar10.zeroshot.jp", TOP, ClipBenchmarkFields("cifar10", language="jp")),
        ("cifar10.linear_probe", TOP, ClipBenchmarkFields("cifar10", "linear_probe", "en", FULL)),
        (
            "cifar10.linear_probe.k5",
            TOP,
            ClipBenchmarkFields("cifar10", "linear_probe", "en", {**FULL, "fewshot_k": 5}),
        ),
        ("coco", RECALL, ClipBenchmarkFields("coco", "zeroshot_retrieval")),
        ("coco.zeroshot.de", RECALL, ClipBenchmarkFields("coco", "zeroshot_retrieval", "de")),
        ("many.zeroshot.ace_Arab", RECALL, ClipBenchmarkFields("many", "zeroshot_retrieval", "ace_Arab")),
        ("wds/vtab/cifar10", TOP, ClipBenchmarkFields("wds/vtab/cifar10")),
        ("wds/vtab/cifar10.linear_probe.k5", TOP, ClipBenchmarkFields("wds/vtab/cifar10", "linear_probe", "en",
                                                        {**FULL, "fewshot_k": 5})),
        ("sugar_crepe/add_att", ["image_acc", "text_acc", "acc"], ClipBenchmarkFields("sugar_crepe/add_att",
                                                                        "image_caption_selection")),
        ("voc2007_multilabel", ["mean_average_precision"], ClipBenchmarkFields("voc2007_multilabel")),
        ("imagenet-c.brightness.1_in-memory", TOP, ClipBenchmarkFields("imagenet-c.brightness.1_in-memory")),
        ("pgd.linf.eps0.5", TOP, ClipBenchmarkFields("pgd.linf.eps0.5")),
        ("coco.captioning", ["CIDEr"], ClipBenchmarkFields("coco", "captioning")),
    ],
)  # fmt: skip
def test_names_and_records_say_the_same(known, name, metrics, place):
    assert place_of(name, metrics) == place
    assert setting_of(place) == name


def test_what_is_not_the_default_of_a_probe_is_in_its_name(known):
    place = ClipBenchmarkFields(
        "cifar10", "linear_probe", "en", {"fewshot_k": 5, "epochs": 20, "seed": 3, "normalized": False}
    )
    assert setting_of(place) == "cifar10.linear_probe.k5.epochs20.seed3.unnormalized"
    assert place_of(setting_of(place), TOP) == place
    assert (
        setting_of(ClipBenchmarkFields("cifar10", "linear_probe", "en", {"weight_decay": 0.1}))
        == "cifar10.linear_probe"
    )


def test_what_records_do_not_tell_of_a_probe_is_left_out(known):
    place = place_of("cifar10.linear_probe.lbfgs.k5.lr0.5", TOP)
    assert place == ClipBenchmarkFields("cifar10", "linear_probe", "en", {**FULL, "fewshot_k": 5})
    assert place_of("cifar10.linear_probe_of_mine", TOP) == ClipBenchmarkFields("cifar10.linear_probe_of_mine")


def test_the_first_language_of_a_data_set_is_left_out(known):
    name = "many" if known else "many.zeroshot.eng_Latn"
    assert setting_of(ClipBenchmarkFields("many", "zeroshot_retrieval", "eng_Latn")) == name
    assert place_of(name, RECALL).language == "eng_Latn"


def test_a_language_is_spelled_as_the_data_set_spells_it(known):
    assert setting_of(ClipBenchmarkFields("cifar10", language="zh")) == f"cifar10.zeroshot.{'cn' if known else 'zh'}"


def test_a_split_stays_with_the_data_set(known):
    assert place_of("cifar10.train", TOP).dataset == "cifar10.train"
    assert setting_of(ClipBenchmarkFields("cifar10.train")) == "cifar10.train"
    assert setting_of(ClipBenchmarkFields("cifar10.train", language="jp")) == "cifar10.train.zeroshot.jp"

"""A model on all of DataComp's data sets: its result file, the means, and both read again."""

from __future__ import annotations

import json

import datacomp_world as world
import pytest
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.entities import Metric
from testbed.eval_settings.benchmark_families.datacomp import COUNTED, SETS
from testbed.extensions.datacomp.results import cells_of, main_metrics, records_of

# A small dual encoder; and any number of samples is accepted.
PLUGIN = """
import torch
from testbed.eval_settings.base.parts import Samples
from testbed.models.model_base import DualEncoder, StandardTransform
from testbed.registry import registry

Samples._of = lambda self, source: range(len(source))

class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pixels = torch.nn.Parameter(torch.randn(3 * 64, 8, generator=torch.Generator().manual_seed(0)))

    def encode_image(self, images):
        return images.flatten(1) @ self.pixels

    forward = encode_image

    def encode_text(self, codes):
        return torch.sin(codes[:, :, None] * torch.arange(1, 9)).sum(dim=1)

def tokenize(texts):
    return torch.tensor([list(text[:60].ljust(60).encode("latin-1", "replace")) for text in texts])

registry.add_model(DualEncoder("towers", StandardTransform(8, 8), lambda: (Tower(), tokenize), eval_batch_size=4))
"""


@pytest.mark.timeout(240)
def test_a_run_and_its_file(program, tmp_path):
    (tmp_path / "towers.py").write_text(PLUGIN)
    world.plant(tmp_path / "data")
    given = ("--plugin", "towers.py", "--data-root", "data", "--executor", "inline", "--db-url", "a.db")
    program("testbed", "run", "towers", "--on", "datacomp38", *given)
    done = program("testbed", "export", "datacomp", "made", "--db-url", "a.db")
    (path,) = (tmp_path / "made").iterdir()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["key"] for record in records] == [each.key for each in SETS]
    assert {record["model"] for record in records} == {"towers"}
    main = {record["dataset"]: record["metrics"]["main_metric"] for record in records}
    assert [title for title, value in main.items() if value is None] == ["FairFace", "UTKFace"]
    mean = sum(value for value in main.values() if value is not None) / 38
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("towers")]
    assert row[1:] == [
        f"{100 * value:.2f}"
        for value in (
            main["ImageNet 1k"],
            _mean(main, "ImageNet Sketch", "ImageNet v2", "ImageNet-A", "ImageNet-O", "ImageNet-R", "ObjectNet"),
            _mean(main, *VTAB),
            _mean(main, "Flickr", "MSCOCO", "WinoGAViL"),
            mean,
        )
    ] + ["38", "of", "38"]
    by_key = {record["key"]: record["metrics"] for record in records}
    assert by_key["wilds/fmow"]["count_region:0"] == 2
    assert by_key["wilds/fmow"]["acc_worst_region"] == min(by_key["wilds/fmow"][f"acc_region:{n}"] for n in (0, 3, 5))
    assert by_key["wilds/camelyon17"]["acc5"] is None
    assert by_key["fairness/dollar_street"]["acc_top5_avg"] == by_key["fairness/dollar_street"]["acc5"]
    assert {"count_race_binary:0", "count_race:3_gender:1", "count_race:1"} <= set(by_key["fairness/fairface"])
    flickr = by_key["retrieval/flickr_1k_test_image_text_retrieval"]
    recalls = (flickr["text_retrieval_recall@1"], flickr["image_retrieval_recall@1"])
    assert flickr["main_metric"] == flickr["mean_recall@1"] == sum(recalls) / 2
    program("testbed", "published", "add", str(path), "--db-url", "a.db")
    shown = program("testbed", "show", "towers", "fairness/geode", "--db-url", "a.db").stdout.splitlines()
    assert shown[4].startswith("acc_wg")  # the main metric
    assert any(line.startswith("acc_wg published ") and line.endswith("agrees") for line in shown)


def _mean(values, *titles):
    return sum(values[title] for title in titles) / len(titles)


VTAB = """Caltech-101|CIFAR-100|CLEVR Counts|CLEVR Distance|Describable Textures|EuroSAT|KITTI Vehicle Distance
Oxford Flowers-102|Oxford-IIIT Pet|PatchCamelyon|RESISC45|SVHN|SUN397""".replace("\n", "|").split("|")


@pytest.fixture
def backend() -> str:
    """What is written does not depend on the database."""
    return "sqlite"


def test_a_model_without_some_data_sets(store, builder):
    build = builder(store)
    build.complete("ViT-B-32,openai", "vtab/pets", metrics=[_top(0.5), Metric("mean_per_class_recall", 0.25, 4)])
    build.complete("ViT-B-32,openai", "cifar10", metrics=[_top(0.75)])
    build.complete("ViT-B-32,openai", "digits", metrics=[_top(0.1)])
    records = records_of("m", cells_of(store.results.find())["ViT-B-32,openai"])
    assert [(record["dataset"], record["metrics"]["main_metric"]) for record in records] == [
        ("CIFAR-10", 0.75),
        ("Oxford-IIIT Pet", 0.25),
    ]
    assert main_metrics(records) == {"cifar10": 0.75, "vtab/pets": 0.25}


def _top(value: float) -> Metric:
    return Metric("top1", value, 4)


def test_which_are_missing_is_printed(ask, tmp_path):
    with Store.create(str(tmp_path / "testbed.db")) as store:
        done = ask("export", "datacomp", tmp_path / "made")
        assert (done.stdout, done.returncode) == (f"0 files written to {tmp_path / 'made'}\n", 0)
        for each in COUNTED[:36]:
            put(store, "m", each.setting, samples_of([0, 1]), saying([0, 0]), task="classification")
    done = ask("export", "datacomp", tmp_path / "made")
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("m ")]
    assert row[-5:] == ["–", "–", "27", "of", "38"]  # the others have another main metric than top-1
    assert "m has no Caltech-101, FGVC Aircraft, Oxford Flowers-102 and 8 more" in " ".join(done.stderr.split())

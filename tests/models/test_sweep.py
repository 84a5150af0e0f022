"""A dual encoder on local webdatasets: several data sets, languages and tasks, each image encoded once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import wds_world

from testbed.db.store import Store
from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
from testbed.extensions.exchange.webdataset_export import export
from testbed.graph.options import RunOptions
from testbed.models.base.runtime import LoadedDualEncoder
from testbed.registry import registry
from testbed.runner.run import run

MODEL = "digits-clip"
NAMES = ["cat", "dog", "owl"]
SETS = ("one", "two", "three")


class Pictures(wds_world.Pictures):
    """Pictures that begin at a number of their own, so that data sets share none."""

    def __init__(self, targets: Any, first: int) -> None:
        super().__init__(targets, NAMES if isinstance(targets[0], int) else None)
        self.first = first

    def image(self, position: int) -> Any:
        return super().image(self.first + position)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three data sets with a train split, and the same test images with captions in two languages."""
    root = tmp_path / "data"
    for number, name in enumerate(SETS):
        folder, first = root / f"wds_{name}", 100 * number
        export(Pictures([0, 1, 2, 1], first), folder, "test", "classification", NAMES, ["a {c}"])
        export(Pictures([2, 1, 0], first + 50), folder, "train", "classification", NAMES, ["a {c}"])
        (folder / "classnames.it.txt").write_text("gatto\ncane\ngufo\n")
        (folder / "zeroshot_classification_templates.it.txt").write_text("un {c}\n")
        for language, words in (("", ["a cat", "a dog"]), ("_it", ["un gatto", "un cane"])):
            captions = [[f"{word} {place}" for word in words] for place in range(4)]
            export(Pictures(captions, first), root / f"wds_{name}-captions{language}", "test", "retrieval")
    monkeypatch.setenv("TESTBED_DATA", str(root))
    monkeypatch.setattr(BENCHMARKS, "_opened", {})
    return root


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()
    encode = LoadedDualEncoder.embed_image

    def count(self: LoadedDualEncoder, images: Any) -> Any:
        counted["calls"] += 1
        counted["images"] += len(images)
        return encode(self, images)

    monkeypatch.setattr(LoadedDualEncoder, "embed_image", count)
    return counted


@pytest.mark.slow
def test_a_sweep_encodes_each_image_once(world: Path, encoded: Counter[str], tmp_path: Path) -> None:
    settings = [
        setting
        for name in SETS
        for setting in (
            f"wds/{name}", f"wds/{name}.zeroshot.it", f"wds/{name}.linear_probe", f"wds/{name}.linear_probe.k1",
            f"wds/{name}-captions", f"wds/{name}-captions_it",
        )
    ]  # fmt: skip
    url = str(tmp_path / "store.db")
    options = RunOptions(db_url=url, executor="inline", random_weights=True, batch_size=8, data_workers=0)
    report = run(registry, options, [MODEL], settings)
    assert report.ok, [(each.setting, each.reason) for each in report.outcomes]
    assert encoded["images"] == len(SETS) * (4 + 3)
    with Store.open(url) as store:
        assert list(store.maintenance.check()) == []
        shown = {
            each.eval_setting for each in store.results.find() if each.metric in ("top1", "text_retrieval_recall@1")
        }
        logits = {
            each.eval_setting: store.outputs.read(each.id, "logits")
            for each in store.evaluations.find(eval_settings=["wds/one", "wds/one.zeroshot.it"])
        }
    assert shown == set(settings)
    assert abs(logits["wds/one"] - logits["wds/one.zeroshot.it"]).max() > 0

"""CLIPScore of images with their own captions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.data.sets.digit_tasks import CAPTIONS
from testbed.data.sets.digits import CLASS_NAMES
from testbed.db.store import Store
from testbed.entities import SampleInfo
from testbed.errors import DataError, UnsupportedError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.graph.options import RunOptions
from testbed.graph.values import Values
from testbed.models.model_base import LoadOptions
from testbed.registry import registry
from testbed.runner.run import run
from testbed.tasks.clip_score import score_pairs, task
from testbed.tasks.task_base import get_task


def setting(**options: Any) -> EvalSetting:
    return EvalSetting("captions.clip_score", StandardDataset("x"), 3, task="clip_score", task_options=options)


def scored(*given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    scores, metrics = score_pairs(*given)
    return {each.name: each.values for each in scores}, {each.name: each for each in metrics}


def test_every_pair_is_scored_by_its_cosine() -> None:
    images = np.array([[2.0, 0], [0, 1], [1, 1]])
    texts = np.array([[1.0, 0], [-3, 0], [0, 0]])
    scores, metrics = scored(images, texts, np.array([0, 0, 2, 2]), np.array([0, 1, 0, 2]))
    np.testing.assert_allclose(scores["cosine.1"], [1, np.nan, np.sqrt(0.5)], atol=1e-7)
    np.testing.assert_allclose(scores["cosine.2"], [-1, np.nan, 0], atol=1e-7)
    np.testing.assert_allclose(scores["clip_score"], [0, np.nan, np.sqrt(0.5) / 2], atol=1e-7)
    assert set(scores) == {"clip_score", "cosine.1", "cosine.2"}
    assert metrics["clip_score"].value == pytest.approx(np.sqrt(0.5) / 4, abs=1e-7)
    assert metrics["clip_score_pairwise"].value == pytest.approx((1 + np.sqrt(0.5)) / 4, abs=1e-7)
    assert {(each.n, each.unit, each.scorer) for each in metrics.values()} == {(4, "fraction", "clip_score@2")}


def test_captions_of_an_image_are_one_cluster() -> None:
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(30, 8)), rng.normal(size=(60, 8))
    _, metrics = scored(images, texts, np.arange(60) // 2, np.arange(60))
    _, alike = scored(images, texts, np.repeat(np.arange(30), 2), np.repeat(np.arange(0, 60, 2), 2))
    _, once = scored(images, texts, np.arange(30), np.arange(0, 60, 2))
    assert alike["clip_score"].value == pytest.approx(once["clip_score"].value)
    assert alike["clip_score_pairwise"].stderr == pytest.approx(once["clip_score_pairwise"].stderr)
    assert metrics["clip_score"].n == 60


def test_an_image_that_could_not_be_read_is_not_scored() -> None:
    images = np.array([[np.nan, np.nan], [1.0, 0]])
    scores, metrics = scored(images, np.array([[1.0, 0]]), np.array([0, 0, 1]), np.array([0, 0, 0]))
    assert np.isnan(scores["cosine.1"][0])
    assert np.isnan(scores["clip_score"][0])
    assert (metrics["clip_score"].value, metrics["clip_score"].n) == (1, 1)
    _, metrics = scored(images[:1], np.zeros((0, 2)), np.zeros(0, dtype=int), np.zeros(0, dtype=int))
    assert (metrics["clip_score"].value, metrics["clip_score"].n) == (None, 0)


def test_blocks_of_pairs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    given = rng.normal(size=(20, 8)), rng.normal(size=(9, 8)), rng.integers(0, 20, 70), rng.integers(0, 9, 70)
    expected = scored(*given)[0]
    monkeypatch.setattr("testbed.tasks.clip_score._PAIRS", 7)
    for name, values in scored(*given)[0].items():
        np.testing.assert_array_equal(values, expected[name])


def test_the_prefix_goes_in_front_and_makes_another_evaluation() -> None:
    samples = [SampleInfo("a", "", ["one", "two"]), SampleInfo("b", "", []), SampleInfo("c", "", ["one"])]
    values = Values(np.zeros((3, 2)), samples)
    assert task.texts(setting(), values) == ["one", "two"]
    assert task.texts(setting(prefix="A photo depicts "), values) == ["A photo depicts one", "A photo depicts two"]
    assert task.view_spec(setting()) != task.view_spec(setting(prefix="A photo depicts "))
    with pytest.raises(DataError, match="expected a list of captions as the target of b"):
        task.texts(setting(), Values(np.zeros((1, 2)), [SampleInfo("b", "", 3)]))


def test_it_is_for_dual_encoders() -> None:
    registry.load()
    assert get_task("clip_score") is task
    with pytest.raises(UnsupportedError, match="needs embed_image and embed_text; resnet18 has"):
        task.route(registry.get_model("resnet18"), setting())
    assert task.route(registry.get_model("digits-clip"), setting()) == "embeddings"


@pytest.mark.slow
def test_digits_with_their_captions(tmp_path: Any) -> None:
    settings = ["digits-captions.clip_score", "digits-captions.clip_score.prefix", "digits-captions"]
    options = RunOptions(db_url=str(tmp_path / "store.db"), executor="inline", data_workers=0)
    report = run(registry, options, ["digits-clip"], settings)
    assert report.ok, [(each.setting, each.reason) for each in report.outcomes]
    model = registry.get_model("digits-clip").load(LoadOptions())
    with Store.open(options.db_url) as store:
        (evaluation,) = store.evaluations.find(["digits-clip"], ["digits-captions.image_embeddings"])
        images = np.array(store.outputs.read(evaluation.id, "image_embeddings"), dtype=np.float64)
        for place, before in enumerate(("", "A photo depicts ")):
            found = {each.metric: each.value for each in store.results.find(["digits-clip"], [settings[place]])}
            texts = [before + each.replace("{c}", name) for name in CLASS_NAMES for each in CAPTIONS]
            embedded = model.embed_text(texts).double().numpy().reshape(10, 4, -1)
            products = np.einsum("nd,ncd->nc", images, embedded)
            lengths = np.linalg.norm(images, axis=1)[:, None] * np.linalg.norm(embedded, axis=2)
            cosines = products / lengths
            assert found["clip_score"] == pytest.approx(max(cosines.mean(), 0), abs=1e-6)
            assert found["clip_score_pairwise"] == pytest.approx(np.maximum(cosines, 0).mean(), abs=1e-6)

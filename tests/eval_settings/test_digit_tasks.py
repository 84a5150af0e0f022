"""Every task on real digits with a small CLIP that was trained on them, from prompts to a webdataset and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.data.sets.digit_tasks import CAPTIONS, CaptionedDigits, DigitChoices, DigitPairs
from testbed.data.sets.digits import CLASS_NAMES, Digits
from testbed.db.store import Store
from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
from testbed.eval_settings.digits import TEMPLATES, DigitsDataset
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.extensions.exchange.webdataset_export import export
from testbed.graph.options import RunOptions
from testbed.registry import registry
from testbed.runner.run import run

MODEL = "digits-clip"
PROMPTS = {
    "one": TEMPLATES[:1],
    "seven": [*TEMPLATES, "this is a {c}", "{c}", "a {c} that somebody wrote"],
    "by-class": {name: [f"a photo of the digit {name}", f"the number {name}"] for name in CLASS_NAMES},
}


def digits_zero_shot(name: str, templates: Any) -> EvalSetting:
    return EvalSetting(
        f"digits-{name}", DigitsDataset("test"), 540, class_names=CLASS_NAMES, templates=templates, keep_embeddings=True
    )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The results of one run of everything."""
    folder = tmp_path_factory.mktemp("digits")
    for split in ("train", "test"):
        export(Digits(split), folder / "data" / "wds_digits", split, "classification", CLASS_NAMES, TEMPLATES)
    settings = ["digits", "digits-tasks", "wds/digits", "wds/digits.linear_probe.k5", "digits.linear_probe.val20"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTBED_DATA", str(folder / "data"))
        patch.setattr(BENCHMARKS, "_opened", {})
        registry.load()
        before = registry.eval_settings.snapshot()
        for name, templates in PROMPTS.items():
            registry.add_eval_setting(digits_zero_shot(name, templates))
        from testbed.registry.select import select

        chosen = select(registry.eval_settings, registry.eval_setting_collections, settings)
        chosen += [f"digits-{name}" for name in PROMPTS]
        options = RunOptions(db_url=str(folder / "store.db"), executor="inline", data_workers=0)
        report = run(registry, options, [MODEL], chosen)
        registry.eval_settings.restore(before)
    assert report.ok, [(each.setting, each.reason) for each in report.outcomes]
    with Store.open(options.db_url) as store:
        yield store


def metrics(store: Store, setting: str) -> dict[str, float]:
    return {each.metric: each.value for each in store.results.find([MODEL], [setting]) if each.slice == "overall"}


def logits(store: Store, setting: str) -> np.ndarray:
    (evaluation,) = store.evaluations.find([MODEL], [setting])
    return np.array(store.outputs.read(evaluation.id, "logits"))


@pytest.mark.slow
def test_a_webdataset_of_the_digits_gives_the_same_logits(lab: Store) -> None:
    np.testing.assert_array_equal(logits(lab, "wds/digits"), logits(lab, "digits"))
    np.testing.assert_array_equal(logits(lab, "wds/digits.linear_probe.k5"), logits(lab, "digits.linear_probe.k5"))


@pytest.mark.slow
def test_prompts_of_every_form_classify(lab: Store) -> None:
    tops = {name: metrics(lab, f"digits-{name}")["top1"] for name in PROMPTS}
    assert min(tops.values()) > 0.9, tops
    assert np.abs(logits(lab, "digits-one") - logits(lab, "digits-seven")).max() > 0.1


@pytest.mark.slow
def test_probes_classify(lab: Store) -> None:
    for setting in ("digits.linear_probe", "digits.linear_probe.k5", "digits.linear_probe.lbfgs"):
        assert metrics(lab, setting)["top1"] > 0.93
    assert metrics(lab, "digits.linear_probe.val20")["top1"] > 0.93


@pytest.mark.slow
def test_captions_choices_and_pairs_are_told(lab: Store) -> None:
    captions = metrics(lab, "digits-captions")
    assert captions["image_retrieval_recall@1"] >= 0.7
    assert captions["text_retrieval_recall@10"] >= captions["text_retrieval_recall@5"]
    assert metrics(lab, "digits-selection")["text_acc"] > 0.95
    assert metrics(lab, "digits-pairs")["mean_average_precision"] > 0.3  # 0.19 by chance


@pytest.mark.slow
def test_all_is_sound(lab: Store) -> None:
    assert list(lab.maintenance.check()) == []
    sizes = {
        each.eval_setting: each.size for each in lab.evaluations.find() if each.eval_setting.endswith("embeddings")
    }
    assert sizes["digits.train.image_embeddings"] == 1257
    assert sum(size or 0 for size in sizes.values()) == 540 + 1257 + 270 + 540 + 1257  # and no image twice


def test_targets_are_what_they_should_be() -> None:
    captions = CaptionedDigits()
    assert len(captions) == 10
    assert captions.targets[3] == [caption.replace("{c}", "three") for caption in CAPTIONS]
    choices, digits = DigitChoices(), Digits("test")
    label = digits.targets[0]
    assert choices.targets[0]["captions"][0].endswith(CLASS_NAMES[label])
    assert choices.targets[0]["captions"][1].endswith(CLASS_NAMES[(label + 1) % 10])
    pairs = DigitPairs()
    assert len(set(pairs.ids)) == len(pairs) == 270
    assert pairs.targets[5] == sorted({digits.targets[5], digits.targets[275]})
    assert pairs.image(5).size == (16, 8)
    assert pairs.digests([5]) != pairs.digests([6])

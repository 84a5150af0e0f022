"""Captioning on data sets with captions: what a captioner sees, what is stored, how it is scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from caption_world import write

from testbed.data.sets.digit_tasks import CaptionedDigits
from testbed.data.sets.digits import CLASS_NAMES, Digits
from testbed.db.store import Store
from testbed.graph.options import RunOptions
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator
from testbed.registry import registry
from testbed.runner.run import run

SEEN: list[tuple[str, str, tuple[int, int]]] = []  # sample, mode and size of the image


class Reader:
    """Reads off the digits what they are; says nothing of some, and cannot read others."""

    def __init__(self) -> None:
        digits = Digits("test")
        self.known = {digits.image(place).tobytes(): CLASS_NAMES[label] for place, label in enumerate(digits.targets)}

    def generate(self, messages: list[Message], config: GenerationConfig) -> list[Generation]:
        answers = []
        for message in messages:
            (image,) = message.parts
            SEEN.append((message.sample, image.mode, image.size))
            name = self.known[image.tobytes()]
            if name == "seven":
                raise ValueError("sevens are hard")
            answers.append(Generation("" if name == "four" else f"a photo of the digit {name}"))
        return answers


@pytest.fixture
def reader(own_registry: Any) -> str:
    registry.add_model(Generator("reader", Reader, eval_batch_size=4, weights="by-heart"))
    SEEN.clear()
    return "reader"


def run_all(folder: Path, models: list[str], settings: list[str]) -> str:
    options = RunOptions(db_url=str(folder / "store.db"), executor="inline", data_workers=0)
    report = run(registry, options, models, settings)
    assert report.ok, [(each.setting, each.reason) for each in report.outcomes]
    return str(options.db_url)


def metrics(store: Store, model: str, setting: str) -> dict[str, Any]:
    return {each.metric: each for each in store.results.find([model], [setting]) if each.slice == "overall"}


@pytest.mark.slow
def test_digits_are_described_and_scored(tmp_path: Path, reader: str) -> None:
    scored = ["digits-captions.captioning.clip_score@digits-clip", "digits-captions.captioning.coarse@digits-clip"]
    with Store.open(run_all(tmp_path, [reader], ["digits-captions.captioning", *scored])) as store:
        (evaluation,) = store.evaluations.find([reader], ["digits-captions.captioning"])
        said = [value["text"] for value in store.outputs.read(evaluation.id, "text")]
        expected = [f"a photo of the digit {name}" for name in CLASS_NAMES]
        assert [text for text in said if text] == [each for each in expected if not each.endswith(("four", "seven"))]
        assert {(mode, size) for _, mode, size in SEEN} == {("RGB", (8, 8))}
        assert {sample for sample, _, _ in SEEN} == set(CaptionedDigits().ids)
        described = metrics(store, reader, "digits-captions.captioning")
        assert [described[name].value for name in ("coverage", "empty", "refused")] == [1, 0.2, 0.1]
        clip_score = metrics(store, reader, scored[0])
        assert clip_score["clip_score"].n == 10
        assert clip_score["clip_score"].value > 0.2
        coarse = metrics(store, reader, scored[1])["coarse_similarity"]
        assert coarse.value == pytest.approx(8 / 10, abs=1e-6)  # each is one of its references; no caption is 0


@pytest.mark.slow
def test_images_of_a_file_of_pairs_are_described(tmp_path: Path, reader: str) -> None:
    digits = Digits("test")
    for place in range(4):
        digits.image(place).save(tmp_path / f"{place}.png")
    write(tmp_path / "x.csv", "image,caption\n" + "".join(f"{place}.png,a digit\n" for place in (2, 0, 3, 1)))
    setting = f"pairs:{tmp_path}/x.csv.captioning"
    with Store.open(run_all(tmp_path, [reader], [setting])) as store:
        (evaluation,) = store.evaluations.find([reader], [setting])
        said = [value["text"] or "" for value in store.outputs.read(evaluation.id, "text")]
        names = [CLASS_NAMES[digits.targets[place]] for place in (2, 0, 3, 1)]
        unsaid = ("four", "seven")
        assert said == ["" if name in unsaid else f"a photo of the digit {name}" for name in names]

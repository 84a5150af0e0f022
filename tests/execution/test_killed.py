"""kill -9 in every kind of pass: what was stored is not computed again, and the results are those of a quiet run.

The runs after it trust what is stored: where the kill came before a record was written, they would check some samples.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from toy import WORK, toy_catalog, toy_model, toy_setting
from toy_captions import captioner, captions, catalog, hash_encoder, vary
from toy_towers import everything, toy_encoder

from testbed.db.tables import ItemValueRow
from testbed.eval_settings.eval_setting_base import Scoring
from testbed.registry import Catalog
from testbed.tasks import linear_probe

COUNT = 90


def judged() -> Catalog:
    setting = captions("judged", task="judged_captions", scoring=Scoring(by="judge"))
    return catalog(captioner("vary", vary), captioner("judge", vary), setting)


def dies(lab: Any, made: Catalog, model: str, setting: str, after: dict[str, int], **options: Any) -> None:
    """Runs in a process that is killed as soon as so much of some work is done, and the rest of it is stored."""

    def child() -> None:
        WORK.limits = after
        lab.run(made, [model], [setting], **options)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    WORK.clear()


def stored_outputs(lab: Any, setting: str) -> int:
    with lab.open() as store:
        (evaluation,) = store.evaluations.find(eval_settings=[setting])
        assert evaluation.status == "running"
        return sum(stop - start for start, stop in store.outputs.stored_ranges([evaluation.id])[evaluation.id])


def stored_items(lab: Any) -> int:
    with lab.open() as store, store.database.reading() as session:
        return int(session.scalar(sa.select(sa.func.count()).select_from(ItemValueRow)) or 0)


def test_in_a_pass_over_images(lab: Any, new_lab: Callable[[str], Any], work: Any) -> None:
    made = toy_catalog(toy_model(), toy_setting())
    dies(lab, made, "toy", "toy-all", {"images through networks": 500})
    stored = stored_outputs(lab, "toy-all")
    assert stored == 256
    assert lab.run(made, trust=True).ok
    assert work["images through networks"] == 600 - stored
    quiet = new_lab("quiet")
    quiet.run(made)
    np.testing.assert_array_equal(lab.logits("toy", "toy-all"), quiet.logits("toy", "toy-all"))


def test_in_a_pass_over_stored_embeddings(lab: Any, work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = linear_probe.FittedProbe.make

    def counted(*arguments: Any) -> Any:
        WORK["probes fitted"] += 1
        return fit(*arguments)

    monkeypatch.setattr(linear_probe.FittedProbe, "make", counted)
    made = toy_catalog(toy_encoder(), *everything())
    dies(lab, made, "tower", "probe", {"probes fitted": 0})
    assert lab.run(made, settings=["probe"], trust=True).ok
    assert work["images embedded"] == 0  # they were stored
    assert work["probes fitted"] == 1


def test_in_a_pass_over_samples_of_a_generative_model(lab: Any, new_lab: Callable[[str], Any], work: Any) -> None:
    made = catalog(captioner("vary", vary), captions())
    dies(lab, made, "vary", "captions", {"answers": 70})
    stored = stored_outputs(lab, "captions")
    assert stored == 64
    assert lab.run(made, trust=True).ok
    assert work["answers"] == COUNT - stored
    quiet = new_lab("quiet")
    quiet.run(made)
    assert lab.outputs("vary", "captions", "text").tolist() == quiet.outputs("vary", "captions", "text").tolist()


def test_in_a_pass_over_texts(lab: Any, work: Any) -> None:
    made = catalog(captioner("vary", vary), captions(), hash_encoder())
    options = {"clear_cache_interval": 10}  # texts in small pieces
    dies(lab, made, "vary", "captions@hash", {"texts hashed": 45}, **options)
    stored = stored_items(lab)
    assert stored == 40
    assert lab.run(made, ["vary"], ["captions@hash"], trust=True, **options).ok
    assert work["answers"] == 0
    assert work["texts hashed"] == stored_items(lab) - stored


def test_in_a_pass_over_questions(lab: Any, work: Any) -> None:
    dies(lab, judged(), "vary", "judged", {"answers": COUNT + 70})
    stored = stored_items(lab)
    assert stored == 64
    assert lab.run(judged(), ["vary"], ["judged"], trust=True).ok
    assert work["images read"] == 0
    assert work["answers"] == COUNT - stored
    assert stored_items(lab) == COUNT

"""Answers that another tool recorded, as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import StoreError
from testbed.extensions.exchange.recorded import AnsweredSample, SampledRecord, write_samples
from testbed.models.replay import Recorded


def test_one_models_answers_do_not_replace_anothers(tmp_path):
    records = [
        SampledRecord(Path(name), name, {"a-set": {"1": AnsweredSample(name)}}) for name in ("org/model", "org model")
    ]
    with pytest.raises(StoreError, match="org model and another model would both have org_model_a-set"):
        write_samples(records, tmp_path, lambda _: True)
    assert "org/model" in (tmp_path / "org_model_a-set.json").read_text()


def test_what_cannot_be_stored_stays_to_be_told(tmp_path):
    record = SampledRecord(Path("x"), "m", {"s": {"1": AnsweredSample("\ud800", begun=True)}})
    done = write_samples([record], tmp_path, bool)
    read = Recorded(Path(*done.answers))
    assert list(read.predictions.faults) == ["1"]
    assert done.left_out == {"answers begin within thoughts; recorded answers do not mark this": 1}


def test_long_names_have_files(tmp_path):
    (answers,) = write_samples(
        [SampledRecord(Path("x"), "é" * 400, {"s": {"1": AnsweredSample("A")}})], tmp_path, bool
    ).answers
    assert Path(answers).exists()

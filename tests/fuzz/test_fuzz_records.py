"""Records of Every Eval Ever, logs of Inspect AI, what testbed published, and the front matter of model cards."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from fuzzing import damaged_file, damaged_json, damaged_lines, damaged_table, fuzzed, robust, trial
from hypothesis import example, given

from testbed.db.store import Store
from testbed.extensions.exchange.every_eval_ever.reading import read_samples
from testbed.extensions.exchange.inspect_logs import read_log
from testbed.extensions.exchange.model_cards import merged_card, read_hub
from testbed.extensions.exchange.recorded import write_samples
from testbed.extensions.published.adding import add, read_folder
from testbed.extensions.published.own_results import COLUMNS, FORM

UUID = "00000000-0000-4000-8000-000000000000"
DETAILS = {"metric": "top1", "slice": "overall", "unit": "fraction"}
DETAILS |= {"better": '"higher"', "headline": "10", "zero_one": "true"}
RECORD = {
    "schema_version": "0.3.0", "evaluation_id": "val/a/b/1", "retrieved_timestamp": "1",
    "source_metadata": {"source_type": "evaluation_run"}, "eval_library": {"name": "testbed", "version": "1"},
    "model_info": {"name": "b", "id": "a/b"},
    "evaluation_results": [
        {
            "evaluation_name": "val", "source_data": {"dataset_name": "x", "source_type": "other"},
            "metric_config": {"lower_is_better": False, "min_score": 0, "max_score": 1, "additional_details": DETAILS},
            "score_details": {"score": 0.5, "uncertainty": {"standard_error": {"value": 0.1}, "num_samples": 25}},
        }
    ],
}  # fmt: skip
THEIRS = {**RECORD, "eval_library": {"name": "helm", "version": "1"}}
LINE = {
    "evaluation_name": "val", "sample_id": "1", "interaction_type": "single_turn",
    "input": {"raw": "What?", "reference": ["A"]}, "output": {"raw": ["A"], "reasoning_trace": ["Hm"]},
    "evaluation": {"score": 1.0, "is_correct": True}, "error": None,
    "metadata": {"score": "top1", "score.top1": "1.0", "output": "text", "not_defined": "is_correct"},
}  # fmt: skip
SAMPLE = {
    "id": 1, "epoch": 1, "target": ["A"], "input": [{"role": "user", "content": [{"type": "text", "text": "What?"}]}],
    "output": {"choices": [{"message": {"content": [{"type": "reasoning", "reasoning": "Hm"}]}, "stop_reason": "x"}]},
    "scores": {"choice": {"value": "C"}, "x": {"value": 0.5}}, "metadata": {}, "error": {"message": "x"},
}  # fmt: skip
LOG = {"version": 2, "eval": {"task": "val", "model": "a/b", "metadata": {}}, "samples": [SAMPLE]}
ROWS = (
    COLUMNS,
    ("m", "val", "c", "top1", "overall", "0.5", "0.1", "25", "fraction", "higher", "0", "1", "10", "true", "s"),
)
CELLS = ("1e400", "-0", "nan", "1_0", "٣", "9" * 30, "TRUE", "up", "x" * 300)
MANIFEST = {
    "form": FORM, "version": 1, "results": {"file": "results.csv", "rows": 1, "sha256": "0"},
    "cells": [{"model": "m", "eval_setting": "val", "cell": "c", "protocol": {"dtype": "float32"}}],
}  # fmt: skip


@fuzzed(3)
@given(record=damaged_json(RECORD, THEIRS), lines=damaged_lines(LINE, {**LINE, "sample_id": "2"}))
@example(record=json.dumps(RECORD).encode(), lines=b'{"evaluation_name": "val", "sample_id": "' + b"9" * 5000)
def test_records(record: bytes, lines: bytes, tmp_path: Path, sqlite_template: Path) -> None:
    with trial(tmp_path, sqlite_template.parent) as folder:
        place = folder / "in" / "x" / "a" / "b"
        place.mkdir(parents=True)
        (place / f"{UUID}.json").write_bytes(record)
        (place / f"{UUID}_samples.jsonl").write_bytes(lines)
        with robust(folder):
            read = read_samples(place / f"{UUID}.json")
            written = write_samples([read], folder / "out", lambda _: True)
            assert all(Path(each).parent == folder / "out" for each in written.files)
        with Store.open(f"sqlite:///{shutil.copy(sqlite_template, folder / 's.db')}", "write") as store:
            added = add(store, read_folder(folder / "in"), "theirs", own_names=True, settings=None)
            assert added.new == len(added.claims) == len(store.claims.find())


@fuzzed()
@given(content=damaged_json(LOG, {**LOG, "eval": {**LOG["eval"], "metadata": {"library": "testbed", "model": "b"}}}))
def test_logs(content: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "x.json").write_bytes(content)
        write_samples([read_log(folder / "x.json")], folder / "out", lambda _: True)


@fuzzed()
@given(manifest=damaged_json(MANIFEST), table=damaged_table(*ROWS, cells=CELLS))
def test_published_results(manifest: bytes, table: bytes, tmp_path: Path, sqlite_template: Path) -> None:
    with trial(tmp_path, sqlite_template.parent) as folder:
        (folder / "in").mkdir()
        digest = hashlib.sha256(table).hexdigest().encode()
        (folder / "in" / "manifest.json").write_bytes(manifest.replace(b'"sha256": "0"', b'"sha256": "%s"' % digest))
        (folder / "in" / "results.csv").write_bytes(table)
        with Store.open(f"sqlite:///{shutil.copy(sqlite_template, folder / 's.db')}", "write") as store:
            added = add(store, read_folder(folder / "in"), "theirs")
            assert added.new == len(added.claims) == len(store.claims.find())
            assert add(store, read_folder(folder / "in"), "theirs").new == 0


CARDS = (
    "---\nlicense: mit\nmodel-index:\n- name: b\n  results: []\n# c\ntags: [a]\n---\n# B\n",
    "---\r\na: &a [x]\r\nb: *a\r\n---\r\n",
    "---\nmodel-index: [{name: b, results: [{task: {type: t}, dataset: {type: d}, metrics: [{type: x}]}]}]\n---",
    "# B\n",
)
METRICS = [{"type": "x", "value": 1, "name": "x"}]
INDEX = [{"name": "b", "results": [{"task": {"type": "t"}, "dataset": {"type": "d", "name": "n"}, "metrics": METRICS}]}]


@fuzzed()
@given(content=damaged_file(*CARDS))
@example(content=b"---\r  \r\n---\r---\r\n")
def test_front_matter(content: bytes) -> None:
    text = content.decode("utf-8", "replace")
    with robust():
        merged = merged_card(text, INDEX)
        assert merged_card(merged, INDEX) == merged


@fuzzed()
@given(content=damaged_file("val=id=a/b,config=c,split=s,revision=r,task=t", "val=id=a"))
def test_ids_of_the_hub(content: bytes) -> None:
    with robust():
        read_hub([content.decode("utf-8", "replace")])

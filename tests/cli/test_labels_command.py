"""Evaluations of one cell that differ by prompts: told apart, shown and exported, all of them."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sqlite3

import numpy as np
import pytest
from digits_world import BY_CLASS, NAMES, SHORT, write_digits, write_json

CELL = ("digits-clip", "wds/digits")
RUN = ("--models", CELL[0], "--eval-settings", CELL[1], "--executor", "inline", "--data-root", "data")


@pytest.fixture(scope="module")
def folder(warm_python, root, tmp_path_factory):
    """A cell with the data set's prompts, files of templates, prompts by class and names, and a saved head."""
    folder = tmp_path_factory.mktemp("labels")
    write_digits(folder / "data")
    for words in (
        ("--save-clf", "heads"),
        ("--templates-file", write_json(folder / "short.json", SHORT)),
        ("--templates-file", write_json(folder / "cupl.json", BY_CLASS)),
        ("--classnames-file", write_json(folder / "a" / "names.json", NAMES)),
        ("--load-clfs", "heads/digits-clip_wds-digits.npy"),
        ("--classnames-file", write_json(folder / "b" / "names.json", {"digits": NAMES["digits"][::-1]})),
    ):
        done = warm_python.run(root / "eval.py", (*RUN, *words), folder, dict(os.environ))
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def told_apart(folder, tmp_path):
    """A copy of that store."""
    with contextlib.closing(sqlite3.connect(folder / "testbed.db")) as store:
        store.execute("VACUUM INTO ?", (str(tmp_path / "testbed.db"),))
    return tmp_path


def test_each_evaluation_has_a_label_by_the_name_of_its_file(told_apart, ask):
    said = ask("show", *CELL, "--all").stdout
    labels = ["the data set's prompts", "short.json", "cupl.json", "a/names.json"]
    for label in (*labels, "digits-clip_wds-digits.npy", "b/names.json"):
        assert said.count(f" ({label}), 54 samples") == 1
    found = json.loads(ask("show", *CELL, "--all", "--json").stdout)
    assert {each["label"] for each in found} == {*labels, "digits-clip_wds-digits.npy", "b/names.json"}
    assert "short.json" not in ask("--print-eval", *CELL).stdout  # the reported one alone


def test_a_file_that_changed_is_told_from_the_earlier_one(told_apart, ask, program):
    write_digits(told_apart / "data")
    for templates in (["{c}"], ["a {c}"]):
        program("eval.py", *RUN, "--templates-file", write_json(told_apart / "mine.json", {"digits": templates}))
    found = json.loads(ask("show", *CELL, "--prompts", "--all", "--json").stdout)
    labels = {each["label"]: each["templates"] for each in found if each["label"].startswith("mine.json (")}
    assert sorted(labels.values()) == [["a {c}"], ["{c}"]]


def test_the_prompts_are_shown(told_apart, ask):
    said = ask("show", *CELL, "--all", "--prompts").stdout
    assert "10 class names: nought, one, two" in said
    assert "  1 template\n    the number {c}\n" in said
    assert "  10 prompts by class\n    zero: a small zero\n" in said
    assert "zero-shot heads from files instead of prompts" in said
    assert "template" not in ask("--print-eval", *CELL).stdout


def test_outputs_under_the_former_name_of_english_are_reused(told_apart, ask, program):
    ask("--rename-eval-setting", "wds/digits", "wds/digits.zeroshot.en")
    write_digits(told_apart / "data")
    words = [word.replace("wds/digits", "wds/digits.zeroshot.en") for word in RUN]
    done = program("eval.py", *words, "--templates-file", write_json(told_apart / "short.json", SHORT), "--json")
    (outcome,) = json.loads(done.stdout)["outcomes"]
    assert (outcome["setting"], outcome["status"]) == ("wds/digits", "derived")
    assert "54 of 54" not in done.stderr


def test_all_of_them_are_exported(told_apart, ask):
    ask("export", "clip-benchmark", told_apart / "one.csv")
    ask("export", "clip-benchmark", told_apart / "all.csv", "--all")
    one, every = (list(csv.DictReader((told_apart / name).open())) for name in ("one.csv", "all.csv"))
    assert (len(one), "evaluation" in one[0], len(every)) == (1, False, 6)
    assert {"short.json", "cupl.json", ""} <= {row["evaluation"] for row in every}
    ask("export", "clip-benchmark", told_apart / "out", "--all", "--dump-classnames", "--dump-templates")
    records = [json.loads(path.read_text()) for path in (told_apart / "out").glob("*.json")]
    texts = {each.get("evaluation"): each.get("templates") for each in records}
    assert (len(records), texts["short.json"], texts["cupl.json"]) == (6, SHORT["digits"], BY_CLASS)
    assert sum(each.get("classnames", [""])[0] == "nought" for each in records) == 1
    ask("export", "logits", "wds/digits", told_apart / "logits", "--all")
    manifest = json.loads((told_apart / "logits" / "manifest.json").read_text())["files"]
    assert len(manifest) == len({each["sha256"] for each in manifest}) + 1 == 6  # the saved head repeats the first
    assert all(np.load(told_apart / "logits" / each["file"])["logits"].shape == (54, 10) for each in manifest)


def test_the_reported_evaluation_is_the_one_that_is_imported(told_apart, ask, program):
    ask("export", "clip-benchmark", told_apart / "all.csv", "--all")
    done = program("testbed", "import", "all.csv", "--db-url", "other.db")
    assert "values of 1 cell" in done.stdout
    assert "further evaluations of a cell: 5 of its values are left out" in done.stderr

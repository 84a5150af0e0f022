"""``db.py``: what it prints, its JSON, its exit codes, and what it imports."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from cli_world import in_process
from stored_cells import put_numbers
from warm_python import WarmPython

from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, Claim, ClaimSource, Metric
from testbed.registry import library_names


@dataclass
class Said:
    """How a command ended and what it printed."""

    code: Any
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Db = Callable[..., Said]


@pytest.fixture
def backend() -> str:
    """What is printed does not depend on the database; that both are looked up alike, `test_lookup` shows."""
    return "sqlite"


@pytest.fixture
def db(
    store_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Said]]:
    """A function that runs the program in this process; an error that is not told in words comes out of it."""
    with in_process(monkeypatch, capsys) as run:

        def db(*words: object, url: str = store_url) -> Said:
            done = run(*words, "--db-url", url)
            return Said(done.returncode, done.stdout, done.stderr)

        yield db


@pytest.fixture
def names_cache(tmp_path: Path) -> Path:
    """A cache folder in which the libraries' lists of models lie already: asking them takes a quarter of a minute."""
    folder = tmp_path / "cache"
    (folder / "names").mkdir(parents=True)
    lists = {
        "torchvision": {"resnet50": ["V1"]},
        "timm": {"vit_x": ["in1k"]},
        "open_clip_torch": {"ViT-B-32": ["openai"]},
    }
    for library, names in lists.items():
        file = f"{library}-{importlib.metadata.version(library)}-{library_names._FORMAT}.json"
        (folder / "names" / file).write_text(json.dumps([names, {}]))
    return folder


@pytest.fixture
def program(root: Path, names_cache: Path, warm_python: WarmPython, tmp_path: Path) -> Callable[..., Said]:
    """A function that runs ``testbed``, or ``db.py`` where an option comes first, as a program of its own."""

    def run(*words: object) -> Said:
        environment = {**os.environ, "TESTBED_CACHE": str(names_cache)}
        script = root / ("db.py" if str(words[0]).startswith("-") else "tests/support/bin/testbed")
        done = warm_python.run(script, [*map(str, words)], tmp_path, environment)
        return Said(done.returncode, done.stdout, done.stderr)

    return run


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


# --print-eval -----------------------------------------------------------------------------------------------------

METRICS = [
    Metric("top1", 0.5, 4, 0.25, scorer="classification@1"),
    Metric("top1", 1.0, 1, None, "hard", scorer="classification@1"),
    Metric("top5", None, 4, scorer="classification@1"),
    Metric("loss", 2.25, None, None, unit="nats", scorer="own"),
]


def test_the_metrics_of_an_evaluation_are_printed(db: Db, build: Any) -> None:
    evaluation = build.complete("net", "val", metrics=METRICS)
    said = db("show", "net", "val", "--slices")
    assert (said.code, said.err) == (0, "")
    printed = lines(said.out)
    assert printed[0] == "net on val"
    headline = printed[1].split(", ")
    assert headline[0].strip() == f"evaluation {evaluation.id}"
    assert headline[1:3] == ["4 samples", "float32"]
    assert headline[3].endswith("UTC")
    assert printed[2].split() == ["metric", "slice", *"value ± standard error 95 % interval n".split()]
    rows = sorted(" ".join(line.split()) for line in printed[4:])
    assert rows == [
        *("loss overall 2.2500 nats", "top1 hard 100.00 % 1"),
        *("top1 overall 50.00 ± 25.00 % [−29.56, 129.56] 4", "top5 overall not defined 4"),
    ]
    said = db("--print-eval", "net", "val")
    assert said.code == 0
    assert "1 more metric of slices" in said.err
    assert "--slices" in said.err
    assert "hard" not in said.out
    assert [line.split()[0] for line in lines(said.out)[4:]] == ["loss", "top1", "top5"]


def test_the_metrics_of_an_evaluation_as_json(db: Db, build: Any) -> None:
    evaluation = build.complete("net", "val", metrics=METRICS)
    said = db("--print-eval", "net", "val", "--json")
    assert (said.code, said.err) == (0, "")
    by_key = {(each["metric"], each["slice"]): each for each in said.json}
    assert len(said.json) == len(by_key) == 4
    assert by_key["top1", "overall"] == {
        "model": "net",
        "eval_setting": "val",
        "metric": "top1",
        "slice": "overall",
        "value": 0.5,
        "n": 4,
        "stderr": 0.25,
        "low": pytest.approx(0.5 - 0.25 * 3.182446, abs=1e-6),  # Student's t with 3 degrees of freedom
        "high": pytest.approx(0.5 + 0.25 * 3.182446, abs=1e-6),
        "clusters": None,
        "unit": "fraction",
        "better": None,
        "lowest": None,
        "highest": None,
        "scorer": "classification@1",
        "origin": "run",
        "dtype": "float32",
        "sample_limit": None,
        "random_weights": False,
        "evaluation": evaluation.id,
        "fingerprint": evaluation.fingerprint,
        "left_out": {},
        "published": [],
    }
    assert (by_key["top1", "hard"]["value"], by_key["top1", "hard"]["stderr"]) == (1.0, None)
    assert by_key["top5", "overall"]["value"] is None
    assert (by_key["loss", "overall"]["value"], by_key["loss", "overall"]["unit"]) == (2.25, "nats")


def test_in_json_a_fraction_is_not_rounded_and_an_infinite_value_null(db: Db, build: Any) -> None:
    odd = [Metric("perplexity", float("inf"), unit=""), Metric("top1", 1 / 3, 3, 0.1 + 0.2)]
    build.complete("net", "val", metrics=odd)
    found = {each["metric"]: each for each in db("--print-eval", "net", "val", "--json").json}
    assert found["perplexity"]["value"] is None
    assert (found["top1"]["value"], found["top1"]["stderr"]) == (1 / 3, 0.1 + 0.2)


def test_what_is_unusual_about_an_evaluation_is_said(db: Db, build: Any, store: Store) -> None:
    source = build.complete("net", "all")
    build.complete("net", "part", origin="derived", derived_from=source.id, size=1234)
    assert f"derived from evaluation {source.id}, 1,234 samples" in db("--print-eval", "net", "part").out
    build.complete("net", "limited", sample_limit=4, random_weights=True)
    said = db("--print-eval", "net", "limited").out
    assert "limited to 4" in said
    assert "RANDOM WEIGHTS" in said
    broken = build.begin("net", "broken")
    store.outputs.append([Chunk(broken.id, "logits", 0, build.logits())], {broken.id: {1: "no file", 2: "no file"}})
    store.evaluations.complete(broken.id, [], METRICS)
    assert "2 samples could not be read and counted as wrong" in db("--print-eval", "net", "broken").out
    assert "could not be read" not in said


def test_ones_own_and_the_imported_evaluation_are_both_printed(db: Db, build: Any, store: Store) -> None:
    build.complete("net", "val", 0.25)
    put_numbers(store, "net", "val", Metric("top1", 0.75))
    said = db("--print-eval", "net", "val").out
    assert "imported from table.csv" in said
    assert "25.00" in said
    assert "75.00" in said
    printed = db("--print-eval", "net", "val", "--json").json
    assert [(each["origin"], each["value"]) for each in printed] == [("run", 0.25), ("imported", 0.75)]


def test_the_evaluation_that_counts_is_printed_and_all_on_request(db: Db, build: Any) -> None:
    first = build.complete("net", "val", 0.25)
    second = build.complete("net", "val", 0.75)
    build.complete("net", "val", 0.9, sample_limit=4)
    said = db("--print-eval", "net", "val")
    assert f"evaluation {second.id}," in said.out
    assert f"evaluation {first.id}," not in said.out
    assert "2 more evaluations of this cell stored; --all shows them too" in said.err
    everything = db("show", "net", "val", "--all")
    assert everything.err == ""
    assert [value in everything.out for value in ("25.00", "75.00", "90.00")] == [True, True, True]
    as_json = db("show", "net", "val", "--all", "--json").json
    assert [each["value"] for each in as_json] == [0.25, 0.75, 0.9]
    assert [each["value"] for each in db("--print-eval", "net", "val", "--json").json] == [0.75]


def fails(said: Said, *words: str) -> None:
    """The command ended with exit code 1 and one line of error, with these words in it."""
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith("Error: ")
    assert len(said.err.splitlines()) == 1
    for word in words:
        assert word in said.err


@pytest.mark.parametrize("flags", [[], ["--json"], ["--all"]])
def test_cells_without_a_complete_evaluation_are_explained(db: Db, build: Any, store: Store, flags: list[str]) -> None:
    store.evaluations.fail(build.begin("net", "failed").id, "CUDA out of memory")
    store.evaluations.record_failure(
        CellRecord("net", "unsupported", "unidentified"), "unsupported", "it lacks logits", {}, {}
    )
    build.begin("net", "running")
    store.names.add("eval setting", "never")
    fails(db("show", "net", "failed", *flags), "net on failed is failed: CUDA out of memory")
    fails(db("show", "net", "unsupported", *flags), "net on unsupported is unsupported: it lacks logits")
    fails(db("show", "net", "running", *flags), "is not complete", "the same command")
    fails(db("show", "net", "never", *flags), "no evaluation of net on never", "testbed run 'net' --on 'never'")
    store.evaluations.fail(build.begin("net", "failed").id, "the last one")
    fails(db("show", "net", "failed", *flags), "the last one")
    build.complete("net", "val")
    store.evaluations.fail(build.begin("net", "val").id, "broke")
    assert db("--print-eval", "net", "val").code == 0


def test_unknown_names_are_told_with_the_nearest(db: Db, build: Any) -> None:
    build.complete("resnet50", "imagenet-a")
    fails(db("--print-eval", "resnet5", "imagenet-a"), "unknown model 'resnet5'", "did you mean 'resnet50'")
    fails(
        db("--print-eval", "resnet50", "imagenet-b"), "unknown eval setting 'imagenet-b'", "did you mean 'imagenet-a'"
    )


# Listings ---------------------------------------------------------------------------------------------------------


def test_the_models_in_the_store_are_listed(db: Db, build: Any, store: Store) -> None:
    assert db("--list-models-db").out == ""
    assert db("--list-models-db", "--json").json == []
    build.complete("zebra", "val")
    store.names.add("model", "ant", model_type="Standard training")
    said = db("--list-models-db")
    assert (said.code, said.out, said.err) == (0, "ant\nzebra\n", "2 models in the store\n")
    assert db("--list-eval-settings-db").err == "1 eval setting in the store\n"
    as_json = db("--list-models-db", "--json")
    assert as_json.err == ""
    assert as_json.json == [
        {"name": "ant", "evaluations": 0, "model_type": "Standard training"},
        {"name": "zebra", "evaluations": 1, "model_type": None},
    ]


def test_the_settings_in_the_store_are_listed(db: Db, build: Any, store: Store) -> None:
    build.complete("net", "val")
    store.names.add("eval setting", "val_10percent", parent="val")
    said = db("--list-eval-settings-db")
    assert (said.code, said.out, said.err) == (0, "val\nval_10percent\n", "2 eval settings in the store\n")
    assert db("--list-eval-settings-db", "--json").json == [
        {"name": "val", "evaluations": 1, "parent": None},
        {"name": "val_10percent", "evaluations": 0, "parent": "val"},
    ]


def test_the_models_of_the_registry_are_listed(program: Callable[..., Said]) -> None:
    said = program("--list-models-registry")
    assert said.code == 0
    listed = said.out.splitlines()
    assert {"digits-cnn", "resnet50", "ViT-B-32,openai"} <= set(listed)
    assert len(listed) == len(set(listed))
    assert said.err == f"{len(listed)} models in the registry\n"
    as_json = program("--list-models-registry", "--json").json
    assert [each["name"] for each in as_json] == listed
    assert all(each["source"] for each in as_json)


PLUGIN = """
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.registry import registry

registry.add_eval_setting(EvalSetting(name="own-setting", dataset=StandardDataset(path="."), size=3))
registry.add_eval_setting(
    EvalSetting(name="own-part", dataset=StandardDataset(path="."), size=3, parent_eval_setting="own-setting")
)
"""


def test_the_settings_of_the_registry_are_listed_those_of_a_file_too(
    program: Callable[..., Said], tmp_path: Path
) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(PLUGIN)
    every = program("--list-eval-settings-registry", "--plugin", plugin).out.splitlines()
    assert {"digits", "digits_10percent", "own-setting", "own-part"} <= set(every)
    parents = program("--list-parent-eval-settings-registry", "--plugin", plugin, "--json").json
    names = {each["name"] for each in parents}
    assert {"digits", "own-setting"} <= names <= set(every)
    assert not {"own-part", "digits_10percent"} & names
    assert any(str(plugin) in each["source"] for each in parents)


# Adding, removing, renaming ---------------------------------------------------------------------------------------


def test_what_is_in_the_registry_can_be_added_to_the_store(db: Db, store: Store) -> None:
    said = db("--add-model", "digits-cnn", "digits-logreg")
    assert said.code == 0
    assert said.out == "model digits-cnn: added to the store\nmodel digits-logreg: added to the store\n"
    assert db("--add-model", "digits-cnn").out == "model digits-cnn: already in the store\n"
    assert {each.name: each.model_type for each in store.names.all("model")} == {
        "digits-cnn": "Standard training",
        "digits-logreg": "Linear Classifier on Pixels",
    }
    assert db("--add-eval-setting", "digits_10percent").out == "eval setting digits_10percent: added to the store\n"
    assert [(each.name, each.parent) for each in store.names.all("eval setting")] == [("digits_10percent", "digits")]


def test_what_is_not_in_the_registry_is_added_only_with_override(program: Callable[..., Said], tmp_path: Path) -> None:
    url = tmp_path / "new.db"
    said = program("--add-model", "digits-cnn", "digits-cnm", "--db-url", url)
    fails(said, "unknown model 'digits-cnm' in the registry", "did you mean 'digits-cnn'")
    assert not url.exists(), "all are looked up before anything is stored"
    assert program("--add-model", "somebody-elses", "--override", "--db-url", url).code == 0
    assert program("--list-models-db", "--db-url", url).out == "somebody-elses\n"
    assert program("--list-eval-settings-registry", "--db-url", tmp_path / "none.db").code == 0
    assert not (tmp_path / "none.db").exists()


def test_removing_and_restoring_models_and_settings(db: Db, build: Any, store: Store) -> None:
    build.complete("net", "val")
    build.complete("net", "sketch")
    build.complete("other", "val")
    said = db("--remove-model", "net", "other")
    assert (said.code, said.err) == (0, "")
    assert said.out == (
        "model net and 2 evaluations removed; testbed store restore model net undoes it\n"
        "model other and 1 evaluation removed; testbed store restore model other undoes it\n"
    )
    assert store.results.find() == []
    assert db("--list-models-db").out == ""
    assert db("store", "restore", "model", "net").out == "model net and 2 evaluations restored\n"
    assert {each.model for each in store.results.find()} == {"net"}
    assert db("--remove-model", "ne*").out.startswith("model net and 2 evaluations removed")
    assert db("store", "restore", "model", "n*").out == "model net and 2 evaluations restored\n"
    fails(db("store", "restore", "model", "net"), "the model net has nothing to restore")
    fails(db("--print-eval", "other", "val"), "unknown model 'other'")
    said = db("--remove-eval-setting", "val")
    assert said.out == "eval setting val and 1 evaluation removed; testbed store restore setting val undoes it\n"
    assert {each.eval_setting for each in store.results.find()} == {"sketch"}
    assert db("store", "restore", "setting", "val").out == "eval setting val and 1 evaluation restored\n"


def test_removing_and_restoring_an_evaluation(db: Db, build: Any, store: Store) -> None:
    build.complete("net", "val")
    build.complete("net", "val")
    said = db("--remove-evaluation", "net", "val")
    assert said.out == "2 evaluations of net on val removed; testbed store restore evaluation net val undoes it\n"
    fails(db("--print-eval", "net", "val"), "no evaluation of net on val")
    fails(db("--remove-evaluation", "net", "val"), "no evaluation of net on val")
    assert db("store", "restore", "evaluation", "net", "val").out == "2 evaluations of net on val restored\n"
    assert db("--print-eval", "net", "val").code == 0
    fails(db("store", "restore", "evaluation", "net", "val"), "no removed evaluation of net on val")


def test_removing_what_is_not_there_suggests(db: Db, build: Any, store: Store) -> None:
    build.complete("resnet50", "val")
    fails(db("--remove-model", "resnet5"), "unknown model 'resnet5'", "did you mean 'resnet50'")
    fails(db("--remove-eval-setting", "vals"), "did you mean 'val'")
    fails(db("--remove-evaluation", "resnet50", "vals"), "did you mean 'val'")
    assert len(store.results.find()) == 1


def test_renaming(db: Db, build: Any, store: Store) -> None:
    build.complete("old", "val")
    store.names.add("eval setting", "part", parent="val")
    said = db("--rename-model", "old", "new")
    assert said.code == 0
    assert said.out == "model old renamed to new in the store; rename its definition too\n"
    assert db("--rename-eval-setting", "val", "validation").code == 0
    assert db("--print-eval", "new", "validation").code == 0
    assert db("--list-eval-settings-db", "--json").json[0]["parent"] == "validation"
    fails(db("--rename-model", "old", "other"), "unknown model 'old'")
    store.names.add("model", "taken")
    fails(db("--rename-model", "new", "taken"), "model 'taken' is already in the store", "choose another name")


def test_purging_takes_override(db: Db, build: Any, store: Store) -> None:
    build.complete("net", "val")
    db("--remove-model", "net")
    fails(db("store", "purge"), "permanently deletes", "outputs", "add --override")
    assert len(store.evaluations.find(hidden=True)) == 1
    said = db("store", "purge", "--override")
    assert (said.code, said.out) == (0, "1 evaluation and 1 name deleted\n")
    assert store.evaluations.find(hidden=True) == []
    assert db("store", "purge", "--override").out == "0 evaluations and 0 names deleted\n"


def test_purging_what_another_evaluation_needs_is_refused(db: Db, build: Any) -> None:
    source = build.complete("net", "all")
    build.complete("net", "part", origin="derived", derived_from=source.id)
    build.complete("net", "half", origin="derived", derived_from=source.id)
    db("--remove-evaluation", "net", "all")
    fails(db("store", "purge", "--override"), "net on part, net on half: derived from", "cannot be purged")


def test_several_actions_are_done_in_one_command(db: Db, build: Any) -> None:
    build.complete("net", "val")
    said = db("--rename-model", "net", "new", "--list-models-db")
    assert said.code == 0
    assert said.out.splitlines()[1:] == ["new"]


# Files ------------------------------------------------------------------------------------------------------------


def test_logits_are_saved_to_files(db: Db, build: Any, tmp_path: Path) -> None:
    logits = build.logits()
    build.complete("net", "val", logits=logits)
    build.complete("other", "val")
    out = tmp_path / "out"
    said = db("--save-logits", "val", out)
    assert said.code == 0
    assert said.out == f"net: {out}/val__net.npz\nother: {out}/val__other.npz\n"
    assert said.err == f"2 files and {out}/manifest.json\n"
    with np.load(out / "val__net.npz", allow_pickle=False) as arrays:
        assert (arrays["logits"] == logits).all()
    said = db("export", "logits", "val", tmp_path / "some", "--models", "other", "--format", "csv", "--json")
    assert [each["file"] for each in said.json] == ["val__other.csv"]
    assert sorted(path.name for path in (tmp_path / "some").iterdir()) == ["manifest.json", "val__other.csv"]


def test_logits_that_cannot_be_saved_are_told(db: Db, build: Any, tmp_path: Path) -> None:
    build.complete("net", "val")
    (tmp_path / "file").write_text("not a folder")
    fails(db("--save-logits", "vals", tmp_path / "out"), "unknown eval setting 'vals'", "did you mean 'val'")
    fails(db("export", "logits", "val", tmp_path / "out", "--models", "nobody"), "no logits of nobody on val")
    fails(db("--save-logits", "val", tmp_path / "file"), "cannot be written to", str(tmp_path / "file"))
    assert db("export", "logits", "val", tmp_path / "out", "--format", "pickle").code == 2


def test_a_table_is_imported_and_exported(db: Db, tmp_path: Path) -> None:
    table, types = tmp_path / "table.csv", tmp_path / "types.csv"
    table.write_text("model,val,vid_pm0\nnet,76.13,50\nother,80,\nnet,76.13,50\n")
    assert db("import", table, "--override", url=str(tmp_path / "new.db")).code == 0  # makes the store
    assert db("--list-models-db", url=str(tmp_path / "new.db")).out == "net\nother\n"
    types.write_text("model,model_type\nnet,Standard training\n")
    said = db("import", table, "--model-types", types, "--override")
    assert said.code == 0
    assert said.out == f"{table} (ImageNet-testbed's table): 5 values of 3 cells, 5 of them new\n"
    again = db("import", table, "--json").json
    assert again == {"form": "ImageNet-testbed's table", "values": 5, "cells": 3, "new": 0, "notes": []}
    assert db("--list-models-db", "--json").json[0]["model_type"] == "Standard training"
    said = db("export", "csv", tmp_path / "out.csv")
    assert (said.code, said.out) == (0, f"2 models × 2 columns written to {tmp_path / 'out.csv'}\n")
    assert (tmp_path / "out.csv").read_text() == "model,val,vid_pm0\nother,80,\nnet,76.13,50\n"
    assert db("published", "show", "net", "vid", "--json").json["published"][0]["metric"] == "pm0"
    assert db("show", "net", "vid").out.startswith("net on vid: published, not measured here\n")


def test_tables_that_cannot_be_imported_or_exported_are_told(db: Db, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.csv"
    foreign.write_text("a,b\n1,2\n")
    fails(db("import", foreign), "has an unknown format", "begins with a, b")
    fails(db("import", tmp_path / "missing.csv"), "no such file", "missing.csv")
    fails(db("export", "csv", tmp_path / "missing" / "out.csv"), "cannot be written")


# Upkeep -----------------------------------------------------------------------------------------------------------


def test_damage_is_listed_with_exit_code_1(db: Db, build: Any, raw: Any, store: Store) -> None:
    evaluation = build.complete("net", "val")
    said = db("store", "check")
    assert (said.code, said.out, said.err) == (0, "the store is sound\n", "")
    assert db("store", "check", "--json").json == {"ok": True, "faults": []}
    with raw(store) as connection:
        connection.execute(sa.text("UPDATE output_chunks SET checksum = 'another'"))
        connection.execute(sa.text("DELETE FROM metrics"))
    said = db("store", "check")
    assert said.code == 1
    assert said.err == "2 faults found; testbed store repair drops the damaged parts\n"
    assert len(said.out.splitlines()) == 2
    assert f"evaluation {evaluation.id} (net on val), logits" in said.out
    assert "has no metrics" in said.out
    said = db("store", "check", "--json")
    assert said.code == 1
    assert said.json["ok"] is False
    assert len(said.json["faults"]) == 2


def test_upgrading_a_store_that_is_up_to_date_says_so(db: Db) -> None:
    said = db("store", "upgrade")
    assert said.code == 0
    assert "the store has schema version" in said.out
    assert "already up to date" in said.out


def test_a_newer_store_is_refused_whatever_is_asked(db: Db, raw: Any, empty_url: str) -> None:
    Store.create(empty_url).close()
    with raw(empty_url) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'ffff'"))
    for action in (["--list-models-db"], ["store", "upgrade"], ["--add-model", "digits-cnn"], ["store", "check"]):
        fails(db(*action, url=empty_url), "schema version ffff", "upgrade testbed")


# Mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--json"],
        ["--print-eval", "net"],
        ["--rename-model", "net"],
        ["--no-such-option"],
        ["--save-logits", "val"],
        ["net"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_cannot_be_understood_ends_with_code_2(db: Db, words: list[str]) -> None:
    said = db(*words)
    assert said.code == 2
    assert said.out == ""
    assert "Error: " in said.err


NEED_A_STORE = ["--print-eval a b", "--list-models-db", "store check", "store upgrade", "--remove-model a"]
NEED_A_STORE += ["store purge --override"]


@pytest.mark.parametrize("words", NEED_A_STORE)
def test_a_missing_store_is_told_and_not_made(db: Db, words: str, tmp_path: Path) -> None:
    said = db(*words.split(), url=str(tmp_path / "none.db"))
    fails(said, "no results store at", "testbed run", "--db-url", "TESTBED_DB")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("{here}", "is a folder"),
        ("{here}/table.csv", "is not a SQLite database"),
        ("{here}/missing/lab.db", "no results store"),
        ("mysql://me:secret@host/lab", "SQLite and Postgres, not on 'mysql'"),
        ("postgresql://me:secret@127.0.0.1:1/lab", "cannot be reached"),
        (":memory:", "in-memory"),
        ("://", "is not a database URL"),
        ("postgresql://me@host:port/lab", "is not a database URL"),
    ],
)
def test_a_store_that_cannot_be_used_is_told_in_one_line(db: Db, tmp_path: Path, url: str, words: str) -> None:
    (tmp_path / "table.csv").write_text("model,val\nresnet50,76.13\n" * 50)
    said = db("--print-eval", "a", "b", url=url.format(here=tmp_path))
    fails(said, words)
    assert "secret" not in said.err


def test_help_names_every_action(db: Db) -> None:
    said = db("--help")
    assert said.code == 0
    for flag in (
        *("--add-model", "--remove-model", "--add-eval-setting", "--remove-eval-setting", "--remove-evaluation"),
        *("--rename-model", "--rename-eval-setting", "--print-eval", "--list-models-db", "--list-models-registry"),
        *("--list-eval-settings-db", "--list-eval-settings-registry", "--list-parent-eval-settings-registry"),
        *("--save-logits", "--override", "--json", "--db-url"),
    ):
        assert flag in said.out


# As a program -----------------------------------------------------------------------------------------------------


def test_a_reader_that_goes_away_is_no_error_to_speak_of(root: Path, tmp_path: Path, builder: Any) -> None:
    url = tmp_path / "store.db"
    with Store.create(str(url)) as store:
        source = ClaimSource("table", "t.csv", "a" * 64, "a table")
        names = [f"{'long' * 30}-{number}" for number in range(2000)]
        store.claims.add(source, [Claim(name, "val", "top1", 0.5, "fraction", "0.5", name, "top1") for name in names])
    command = [sys.executable, str(root / "db.py"), "--list-models-db", "--db-url", str(url)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("long")
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
        process.wait(timeout=60)
    assert "Traceback" not in errors
    assert "Exception" not in errors


@pytest.mark.parametrize("words", [["show", "net", "val"], ["--help"]])
def test_output_to_a_full_disk_is_told_in_a_line(root: Path, tmp_path: Path, builder: Any, words: list[str]) -> None:
    with Store.create(str(tmp_path / "store.db")) as store:
        builder(store).complete("net", "val")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "testbed", *words],
            env={**os.environ, "TESTBED_DB": str(tmp_path / "store.db")},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "Error: the output cannot be written: No space left on device\n"

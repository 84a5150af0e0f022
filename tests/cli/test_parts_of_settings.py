"""Parts of settings (``X.random-K``, ``X.anchors:FILE``) are shown where they are named, and nowhere else."""

from __future__ import annotations

import json

import pytest
from scored_captions import put_scored, row
from stored_cells import put, samples_of, saying

import testbed
from testbed.db.store import Store

PARTS = ("snaps.random-4", "snaps.anchors:/tmp/some.json")
SAID = {"a": [0, 1, 2, 3, 0, 1, 2, 3], "b": [0, 1, 2, 3, 0, 0, 0, 0]}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store of two models on a setting and on parts of it; captions judged on all and on a part."""
    path = tmp_path_factory.mktemp("parts") / "testbed.db"
    with Store.create(str(path)) as store:
        for model, said in SAID.items():
            put(store, model, "snaps", samples_of([0, 1, 2, 3] * 2), saying(said), task="classification")
            for name in PARTS:
                put(store, model, name, samples_of([0, 1, 2, 3]), saying(said[:4]), task="classification")
            for name in ("clips@gte", "clips.random-1@gte"):
                put_scored(store, model, name, {"v1": row(1, 1, 1)})
    return path


@pytest.fixture
def ask(program, filled):
    return lambda *words, db=filled, code=0: program("testbed", *map(str, words), "--db-url", str(db), code=code)


def text_of(folder):
    """The text of all files."""
    return "".join(
        each.read_text(encoding="utf-8", errors="replace") for each in sorted(folder.rglob("*")) if each.is_file()
    )


@pytest.mark.parametrize(
    "words",
    [
        ("site", "--out"),
        ("figures", "--out"),
        pytest.param(("publish",), marks=pytest.mark.long),
        pytest.param(("export", "every-eval-ever"), marks=pytest.mark.long),
        ("export", "clip-benchmark"),
    ],
)
def test_files_have_wholes_alone(ask, tmp_path, words):
    done = ask(*words, tmp_path / "made")
    written = text_of(tmp_path / "made")
    assert "snaps" in written
    assert ".random-" not in written
    assert ".anchors:" not in written
    assert "parts of settings" in done.stderr


def test_tables_have_wholes_alone(ask, tmp_path):
    done = ask("export", "csv", "table.csv")
    assert (tmp_path / "table.csv").read_text().splitlines()[0].count("snaps") == 1
    assert "left out: 3 parts of settings, such as clips.random-1@gte; parts are shown only if" in done.stderr
    card = ask("export", "model-card", "a")
    assert "snaps" in card.stdout
    assert ".random-" not in card.stdout
    assert "3 cells are of parts of settings" in card.stderr
    assert set(json.loads(ask("grid", "*", "--json").stdout)[0]) == {"model", "snaps", "metrics", "clips@gte"}
    points = ask("borda")
    assert ".random-" not in points.stdout
    assert "a part of a setting, clips.random-1@gte" in points.stderr


def test_python_has_wholes_unless_parts_are_named(filled):
    assert set(testbed.results(str(filled)).frame["eval_setting"]) == {"snaps", "clips@gte"}
    assert set(testbed.results(str(filled), eval_settings=PARTS[0]).frame["eval_setting"]) == {PARTS[0]}


def test_named_parts_are_shown(ask, tmp_path):
    drawn, chosen = PARTS
    assert drawn in ask("grid", drawn).stdout
    ask("figures", "--out", tmp_path / "figures", "--on", drawn, "--kinds", "ranking")
    assert drawn in text_of(tmp_path / "figures")
    ask("site", "--out", tmp_path / "site", "--samples", chosen)
    assert chosen in text_of(tmp_path / "site")
    ask("publish", tmp_path / "published", "--on", chosen)
    assert "snaps.anchors:some.json" in text_of(tmp_path / "published" / "site")


def test_lists_and_checks_have_all(ask):
    listed = {each["eval_setting"] for each in json.loads(ask("list", "results", "--json").stdout)}
    assert listed == {"snaps", *PARTS, "clips@gte", "clips.random-1@gte"}
    rescored = json.loads(ask("rescore", "--models", "a", "--json").stdout)
    assert {each["eval_setting"] for each in rescored} == listed


def test_who_has_parts_alone_is_told_so(ask, tmp_path):
    with Store.create(str(tmp_path / "other.db")) as store:
        put(store, "a", PARTS[0], samples_of([0, 1, 2, 3]), saying(SAID["a"][:4]))
    done = ask("export", "model-card", "a", db=tmp_path / "other.db", code=1)
    assert "left out: a part of a setting, snaps.random-4" in done.stderr

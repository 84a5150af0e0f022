"""``testbed groups``: means over groups of samples, from the data set or a table of one's own."""

from __future__ import annotations

import json

import pytest
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.metrics.inference.statistics import wilson

TARGETS = [0, 0, 1, 1, 2, 2]
SAID = {"a": [0, 0, 1, 0, 0, 0], "b": [0, 1, 1, 1, 2, 2]}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for model, said in SAID.items():
            put(opened, model, "val", samples_of(TARGETS), saying(said))
        yield opened


def rows_of(done):
    return {each["model"]: each for each in json.loads(done.stdout)}


def groups_of(row):
    return {each["name"]: (each["n"], each["value"]) for each in row["groups"]}


def test_samples_without_slices_are_grouped_by_class(store, program):
    rows = rows_of(program("testbed", "groups", "val", "--json"))
    row = rows["a"]
    assert (row["by"], row["score"], row["eval_setting"], row["n"], row["ungrouped"]) == ("class", "top1", "val", 6, 0)
    assert groups_of(row) == {"ant": (2, 1), "bee": (2, 0.5), "cat": (2, 0)}
    assert (row["mean"], row["mean_of_groups"], row["gap"]) == (0.5, 0.5, 1)
    assert (row["worst"]["low"], row["worst"]["high"]) == wilson(0, 2)
    assert (rows["b"]["worst"]["name"], rows["b"]["best"]["name"]) == ("ant", "bee")


def test_the_table(store, program):
    done = program("testbed", "groups", "val", "--models", "a")
    line = done.stdout.splitlines()[2]
    assert line.split()[:7] == ["a", "3", "6", "50.00", "%", "50.00", "%"]
    assert "cat" in line
    assert "[0.00, 65.76]" in line
    assert line.endswith(" 100.00 points")
    assert "top1 on val by class: 3 groups, 6 samples; intervals: 95 %, Wilson" in done.stderr


def test_groups_and_slices_of_the_data_set(store, ask):
    slices = [{"light": "day", "indoors": True}] * 2 + [{"light": "night", "indoors": False}] * 3 + [{"light": "day"}]
    samples = samples_of(TARGETS, group=["x", "x", "y", "y", "z", None], slices=slices)
    put(store, "a", "both", samples, saying(SAID["a"]))
    done = ask("groups", "both", "--json")
    assert "1 of 6 samples have no group by group" in done.stderr
    row = rows_of(done)["a"]
    assert (row["by"], row["n"], row["ungrouped"], row["mean"]) == ("group", 5, 1, 3 / 5)
    assert groups_of(row) == {"x": (2, 1), "y": (2, 0.5), "z": (1, 0)}
    assert groups_of(rows_of(ask("groups", "both", "--by", "light", "--json"))["a"]) == {
        "day": (3, pytest.approx(2 / 3)),
        "night": (3, pytest.approx(1 / 3)),
    }
    assert set(groups_of(rows_of(ask("groups", "both", "--by", "indoors", "--json"))["a"])) == {"true", "false"}
    assert rows_of(ask("groups", "both", "--by", "class", "--json"))["a"]["ungrouped"] == 0


def test_the_only_slice_is_meant_when_nothing_is_said(store, ask, refusal):
    put(store, "a", "one", samples_of(TARGETS, slices=[{"set": 1}, {"set": 2}] * 3), saying(SAID["a"]))
    assert rows_of(ask("groups", "one", "--json"))["a"]["by"] == "set"
    put(store, "a", "many", samples_of(TARGETS, slices=[{"light": "day", "place": 1}] * 6), saying(SAID["a"]))
    assert "choose a slice with --by; available: light, place" in refusal("groups", "many")
    told = refusal("groups", "many", "--by", "lihgt")
    assert "no slice 'lihgt'; --by takes: class, light, place" in told


def test_groups_from_a_table(store, ask, tmp_path):
    rows = ["id,artist,place", "000.png,Ada,", "001.png,Bea,in", "002.png,Ada,out", "003.png,Bea,out", "zzz.png,Ada,in"]
    (tmp_path / "meta.csv").write_text("\ufeff" + "\n".join(rows) + "\n", encoding="utf-8")
    done = ask("groups", "val", "--slices-from", "meta.csv", "--by", "artist", "--json")
    assert "1 of the 5 ids in meta.csv are not compared samples, such as 'zzz.png'" in done.stderr
    assert "2 of 6 samples have no group by artist" in done.stderr
    assert groups_of(rows_of(done)["a"]) == {"Ada": (2, 1), "Bea": (2, 0.5)}
    row = rows_of(ask("groups", "val", "--slices-from", "meta.csv", "--by", "place", "--json"))["a"]
    assert (groups_of(row), row["ungrouped"]) == ({"in": (1, 1), "out": (2, 0.5)}, 3)


def test_of_a_loss_the_largest_group_is_the_worst(store, ask):
    row = rows_of(ask("groups", "val", "--score", "nll", "--json"))["a"]
    assert (row["worst"]["name"], row["best"]["name"]) == ("cat", "ant")
    assert row["worst"]["value"] > row["best"]["value"]
    done = ask("groups", "val", "--score", "nll")
    assert "Student's t" in done.stderr
    assert "%" not in done.stdout.replace("95 %", "")


def test_samples_with_several_right_classes_are_in_no_class(store, ask):
    put(store, "a", "real", samples_of([[0, 1], [2], [2, 3], 0]), saying([0, 2, 2, 0]))
    row = rows_of(ask("groups", "real", "--json"))["a"]
    assert (groups_of(row), row["ungrouped"]) == ({"ant": (1, 1), "cat": (1, 1)}, 2)


def test_models_are_compared_on_the_samples_that_they_share(store, ask):
    put(store, "part", "val", samples_of(TARGETS[:3]), saying(TARGETS[:3]))
    done = ask("groups", "val", "--json")
    assert "only the 3 samples of val that all models have count; one model has 6" in done.stderr
    assert {each["n"] for each in rows_of(done).values()} == {3}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name,artist\n000.png,Ada\n", "expected a column 'id' and one or more columns of groups"),
        ("id\n000.png\n", "found: id"),
        ("", "found: none"),
        ("id,artist\n", "has a header but no rows"),
        ("id,artist,artist\n000.png,Ada,Bea\n", "with different names"),
        ("id,artist\n000.png,Ada\n000.png,Bea\n", "line 3: the id '000.png' occurs twice"),
        ("id,artist\n000.png,Ada,Bea\n", "line 2: expected 2 values"),
        ("id,artist\n000.png\n", "line 2: expected 2 values"),
        ("id,artist\nx.png,Ada\n", "none of its 1 ids is a sample of val; the first is 'x.png'"),
        ("id,artist,place\n000.png,Ada,in\n", "choose a column with --by; available: artist, place"),
        ("id,artist\n000.png,\n", "no sample of val has a group by artist"),
        (b"id,artist\n000.png,\xff\n", "is not a CSV file in UTF-8"),
        (None, "meta.csv cannot be read: No such file"),
    ],
)
def test_a_table_that_is_not_as_it_should_be(store, refusal, tmp_path, text, told):
    if text is not None:
        (tmp_path / "meta.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert told in refusal("groups", "val", "--slices-from", "meta.csv")


def test_mistakes_are_told_in_one_line(store, refusal, tmp_path):
    (tmp_path / "meta.csv").write_text("id,artist\n000.png,Ada\n")
    assert "unknown eval setting 'vale'" in refusal("groups", "vale")
    told = refusal("groups", "val", "--slices-from", "meta.csv", "--by", "place")
    assert told == "Error: meta.csv: there is no column 'place'; available: artist"
    assert "no slice 'set'; --by takes: class" in refusal("groups", "val", "--by", "set")
    assert "no sample of val has a group by group" in refusal("groups", "val", "--by", "group")


def shares(values):
    return [{"place": place, "place_training_share": share} for place, share in values]


def test_means_are_weighted_by_the_training_shares_that_samples_declare(store, ask):
    declared = shares([("land", 3498), ("land", 3498), ("land", 3498), ("water", 56), ("water", 56), ("water", 56)])
    put(store, "a", "birds", samples_of(TARGETS, slices=declared), saying(SAID["a"]))
    row = rows_of(ask("groups", "birds", "--json"))["a"]
    assert (row["by"], groups_of(row)) == ("place", {"land": (3, 1), "water": (3, 0)})
    assert row["mean_by_training_shares"] == pytest.approx(3498 / 3554)
    lines = ask("groups", "birds").stdout.splitlines()
    assert "by training shares  worst group" in lines[0]
    assert "98.42 %" in lines[2]
    assert rows_of(ask("groups", "birds", "--by", "class", "--json"))["a"]["mean_by_training_shares"] is None


def test_a_table_may_have_training_shares_too(store, ask, tmp_path):
    path = tmp_path / "places.csv"
    path.write_text(
        "id,place,place_training_share\n"
        + "".join(
            f"{place:03d}.png,{'land' if place < 2 else 'water'},{0.75 if place < 2 else 0.25}\n" for place in range(6)
        )
    )
    row = rows_of(ask("groups", "val", "--slices-from", path, "--json"))["a"]
    assert (row["by"], row["mean_by_training_shares"]) == ("place", pytest.approx(0.75 + 0.25 / 4))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([("land", 1), ("land", 2)], "the group 'land' has the place_training_share 2; one number of 0 or more, the"),
        ([("land", 1), ("water", None)], "the group 'water' has the place_training_share None"),
        ([("land", "many"), ("water", 1)], "the group 'land' has the place_training_share 'many'"),
        ([("land", 0), ("water", 0)], "every place_training_share is 0"),
    ],
)
def test_wrong_training_shares_are_refused(store, refusal, values, said):
    put(store, "a", "birds", samples_of([0, 1], slices=shares(values)), saying([0, 1]))
    assert said in refusal("groups", "birds")

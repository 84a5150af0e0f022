"""``testbed factors``: accuracy by the factors of a file, in ImageNet-X's form and as a CSV."""

from __future__ import annotations

import json

import pytest
from stored_cells import put, samples_of, saying

from testbed.db.store import Store

N = 8
IDS = [f"n01440764/ILSVRC2012_val_{place:08d}.JPEG" for place in range(1, N + 1)]
TARGETS = [0] * N
SAID = {"a": [0, 1, 1, 0, 0, 0, 0, 1], "b": [0, 0, 0, 0, 0, 0, 0, 1]}
POSE, DARK = [1, 1, 1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0]


def annotated(places=range(N), **more):
    rows = [
        {
            "file_name": IDS[place].split("/")[1],
            "class": 390 + place,
            "pose": POSE[place],
            "darker": DARK[place],
            **more,
        }
        for place in places
    ]
    return "".join(json.dumps({**row, "one_word": "fish"}) + "\n" for row in rows)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_text(annotated())
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for model, said in SAID.items():
            put(opened, model, "val", samples_of(TARGETS, IDS), saying(said))
        yield opened


def test_an_image_counts_for_each_of_its_factors(store, ask):
    found = {each["model"]: each for each in json.loads(ask("factors", "val", "--from", "x.jsonl", "--json").stdout)}
    a = found["a"]
    assert (a["n"], a["accuracy"]) == (8, 5 / 8)
    assert {name: (of["n"], of["accuracy"]) for name, of in a["factors"].items()} == {
        "darker": (2, 0),
        "pose": (4, 0.5),
    }
    assert a["factors"]["pose"]["ratio"] == pytest.approx(0.5 / (3 / 8))
    assert list(a["factors"]) == ["darker", "pose"]  # the largest ratio first
    assert found["b"]["factors"]["darker"]["ratio"] == 0


def test_the_table(store, ask):
    done = ask("factors", "val", "--from", "x.jsonl", "--models", "a")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[2] == ["a", "all", "annotated", "8", "62.50"]
    assert lines[3][:4] == ["darker", "2", "0.00", "2.67"]
    assert "error ratio: the error with the factor divided by that of all" in done.stderr


def test_images_without_annotations_or_left_out_are_counted(store, ask, tmp_path):
    (tmp_path / "part.jsonl").write_text(annotated(range(6)))
    (tmp_path / "prototypes.csv").write_text("file_name\n" + "\n".join(each.split("/")[1] for each in IDS[:2]) + "\n")
    done = ask("factors", "val", "--from", "part.jsonl", "--leave-out", "prototypes.csv", "--json")
    assert {each["n"] for each in json.loads(done.stdout)} == {4}
    assert "2 of 8 samples of val are not in part.jsonl and do not count" in done.stderr
    assert "2 samples of val are in prototypes.csv and do not count" in done.stderr


def test_a_csv_with_ids_will_do(store, ask, tmp_path):
    lines = [f"{name},{dark},text" for name, dark in zip(IDS, DARK, strict=True)]
    (tmp_path / "own.csv").write_text("id,darker,note\n" + "\n".join(lines) + "\n")
    found = json.loads(ask("factors", "val", "--from", "own.csv", "--models", "a", "--json").stdout)
    assert list(found[0]["factors"]) == ["darker"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.csv", "image,dark\na,1\n", "x.csv, image 1: expected a column file_name or id; found image, dark"),
        ("x.csv", "id,dark\na,1\na,0\n", "x.csv has the image 'a' twice"),
        ("x.csv", "id,dark\na,yes\n", "x.csv has no column of 0 and 1; its columns are dark"),
        ("x.csv", "id,dark\na,yes,1\n", "x.csv has no column of 0 and 1; its columns are dark, None"),
        (
            "x.csv",
            "id,dark\nz,1\n",
            "has no annotations of the 8 samples of val; it has images such as 'z', the setting",
        ),
        ("x.csv", "", "x.csv has no images"),
        ("y.jsonl", "{]\n", "y.jsonl is neither a CSV nor JSON lines"),
        ("y.jsonl", "[1]\n", "each line should be a JSON object"),
        ("gone.jsonl", None, "gone.jsonl cannot be read"),
    ],
)
def test_a_wrong_file_is_refused_in_a_line(store, refusal, tmp_path, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    assert said in refusal("factors", "val", "--from", name)


def test_a_score_of_0_and_1_is_needed(store, refusal):
    assert "needs a score of 0 and 1" in refusal("factors", "val", "--from", "x.jsonl", "--score", "nll")

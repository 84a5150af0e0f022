"""Files of image-caption pairs, and the settings on them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from caption_world import draw, write

from testbed.data.formats.caption_pairs import caption_pairs
from testbed.data.sets.digits import CLASS_NAMES, Digits
from testbed.db.store import Store
from testbed.errors import DataError
from testbed.graph.options import RunOptions
from testbed.registry import registry
from testbed.runner.run import run

PAIRS = [("b.png", "a dog, running"), ("sub/a.png", 'the "second"'), ("./b.png", " again\nb "), ("sub/a.png", "über")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(("b.png", "sub/a.png")):
        draw(tmp_path / name, number * 90)
    return tmp_path


def as_csv(pairs: list[tuple[str, str]], heading: str = "image,caption") -> str:
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in pair) for pair in pairs]
    return "\ufeff" + "\r\n".join([heading, *quoted, ""])


def as_jsonl(pairs: list[tuple[str, str]]) -> str:
    return "\n".join(json.dumps({"image": image, "caption": caption}) for image, caption in pairs)


@pytest.mark.parametrize(("file", "content"), [("x.csv", as_csv(PAIRS)), ("x.jsonl", as_jsonl(PAIRS))])
def test_images_are_in_the_order_of_their_first_pair_with_all_captions(folder: Path, file: str, content: str) -> None:
    source = caption_pairs(write(folder / file, content), "x")
    assert list(source.ids) == ["b.png", "sub/a.png"]
    assert source.targets == [["a dog, running", " again\nb "], ['the "second"', "über"]]
    assert source.image(1).size == (12, 8)
    again = pickle.loads(pickle.dumps(source))
    assert again.describe_samples([0, 1]).fingerprint == source.describe_samples([0, 1]).fingerprint


def test_other_columns_in_any_order_are_not_read(folder: Path) -> None:
    path = write(folder / "x.csv", 'source, caption ,image\nweb,a dog,b.png\n,"two\nlines",sub/a.png\n')
    assert caption_pairs(path, "x").targets == [["a dog"], ["two\nlines"]]
    path = write(folder / "x.jsonl", '{"image": "b.png", "caption": "x", "width": 3}\n\n')
    assert caption_pairs(path, "x").targets == [["x"]]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("x.csv", "image,text\nb.png,x\n", "should have the columns image and caption, each once; it has image, text"),
        ("x.csv", "image,caption,caption\nb.png,x,y\n", "each once; it has image, caption, caption"),
        ("x.csv", "", "each once; it has none"),
        ("x.csv", "image,caption\n", "has no pairs"),
        ("x.csv", "image,caption\nb.png,x\nb.png, \t\n", r"x\.csv, line 3: the caption of b\.png is blank"),
        (
            "x.csv",
            "image,caption\nb.png,a dog, running\n",
            r"line 2 has more or fewer cells than columns; quote captions",
        ),
        ("x.csv", "image,caption\nb.png\n", "line 2 has more or fewer cells than columns"),
        ("x.csv", 'image,caption\nb.png,"x', "is not valid CSV"),
        ("x.csv", "image,caption\n../b.png,x\n", r"line 2 has the path '\.\./b\.png', which leaves the image folder"),
        ("x.csv", "image,caption\n/etc/passwd,x\n", "leaves the image folder; give a path inside it"),
        ("x.csv", "image,caption\n,x\n", "has an empty path for an image"),
        ("x.csv", "image,caption\nb.png,x\nc.png,y\n", "1 of 2 images are missing in .*, the first is c.png"),
        ("x.jsonl", '{"image": "b.png"}', r"x\.jsonl, entry 1 should have 'caption'; it has image"),
        ("x.jsonl", '{"image": "b.png", "caption": ["x"]}', "'caption' should be a text"),
        ("x.jsonl", '{"image": "b.png", "caption": ""}', "entry 1: the caption of b.png is blank"),
        ("x.jsonl", '["b.png", "x"]', "entry 1 should be an object with 'image'"),
        ("x.jsonl", "{", "line 1 is not valid JSON"),
        ("x.jsonl", "", "has no pairs"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(folder: Path, file: str, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        caption_pairs(write(folder / file, content), "x")


def test_bytes_that_are_no_text_are_told(folder: Path) -> None:
    (folder / "x.csv").write_bytes(b"image,caption\nb.png,caf\xe9\n")
    with pytest.raises(DataError, match="is not UTF-8 text"):
        caption_pairs(folder / "x.csv", "x")


# Settings ---------------------------------------------------------------------------------------------------------


def test_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    registry.load()
    monkeypatch.chdir(tmp_path)
    known = registry.eval_settings.canonical
    base = f"pairs:{tmp_path}/x.csv"
    assert known("pairs:x.csv") == known("pairs:./x.csv.clip_score") == known(base) == base
    assert known("pairs:x.csv.clip_score.prefix") == known("pairs:x.csv.prefix") == f"{base}.prefix"
    assert known("pairs:a.b/x.jsonl.captioning") == f"pairs:{tmp_path}/a.b/x.jsonl.captioning"
    for name in ("pairs:", "pairs:x.txt", "pairs:x.csv.retrieval", "pairs:x.csv.captioning.prefix"):
        assert known(name) is None
    scored, prefixed, described = (
        registry.get_eval_setting(f"pairs:x.csv{each}") for each in ("", ".prefix", ".captioning")
    )
    assert (scored.task, scored.task_options, scored.image_set) == ("clip_score", {}, base)
    assert (prefixed.task, prefixed.task_options, prefixed.image_set) == (
        "clip_score", {"prefix": "A photo depicts "}, base,
    )  # fmt: skip
    assert (described.task, described.image_set, described.dataset.spec()) == (
        "captioning",
        base,
        scored.dataset.spec(),
    )
    with pytest.raises(DataError, match=rf"the file of pairs {tmp_path}/x.csv does not exist"):
        scored.dataset.open()


@pytest.mark.slow
@pytest.mark.usefixtures("shared_cache")
def test_digits_in_a_file_of_pairs(tmp_path: Path) -> None:
    digits = Digits("test")
    lines = ["image,caption"]
    for place in range(12):
        digits.image(place).save(tmp_path / f"{place}.png")
        name = CLASS_NAMES[digits.targets[place]]
        lines += [
            f"{place}.png,{text}" for text in (f"a photo of the digit {name}", f"the number {name}")[: 1 + place % 2]
        ]
    write(tmp_path / "x.csv", "\n".join(lines))
    setting = f"pairs:{tmp_path}/x.csv"
    options = RunOptions(db_url=str(tmp_path / "store.db"), executor="inline", data_workers=0)
    report = run(registry, options, ["digits-clip"], [setting, f"{setting}.prefix"])
    assert report.ok, [(each.setting, each.reason) for each in report.outcomes]
    with Store.open(options.db_url) as store:
        found = {each.metric: each for each in store.results.find(["digits-clip"], [setting])}
        other = {each.metric: each for each in store.results.find(["digits-clip"], [f"{setting}.prefix"])}
        assert found["clip_score"].n == other["clip_score"].n == 18
        assert found["clip_score"].value != other["clip_score"].value
        (evaluation,) = store.evaluations.find(["digits-clip"], [setting])
        scores = {name: values for (_, name), values in store.scores.read(evaluation.id).items() if "cosine" in name}
        assert np.isnan(scores["cosine.2"]).tolist() == [True, False] * 6
        together = np.concatenate([scores["cosine.1"], scores["cosine.2"]])
        assert np.nanmean(together) == pytest.approx(found["clip_score"].value, abs=1e-12)

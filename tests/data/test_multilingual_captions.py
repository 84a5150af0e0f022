"""One set of images with captions in many languages."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from caption_world import draw_all, write

from testbed.data.sets.languages import CROSSMODAL_LANGUAGES, FLORES_CODES, XTD_LANGUAGES
from testbed.data.sets.multilingual_captions import LINE_FILES, crossmodal_captions, line_captions
from testbed.errors import DataError

NAMES = ["COCO_train2014_2.jpg", "COCO_val2014_3.jpg", "COCO_train2014_1.jpg"]
TWO = {name: files.languages[1] for name, files in LINE_FILES.items()}


def make(root: Path, name: str, captions: dict[str, str]) -> Path:
    files = LINE_FILES[name]
    draw_all(root / files.folder / "images", NAMES)
    write(root / files.index, "\n".join(NAMES) + "\n")
    for language, text in captions.items():
        write(root / files.captions.format(language), text)
    return root


@pytest.mark.parametrize("name", LINE_FILES)
def test_every_language_has_the_same_images_in_the_order_of_the_list(tmp_path, name):
    first, second = LINE_FILES[name].languages[0], TWO[name]
    make(tmp_path, name, {first: "one\ntwo, too\nthree\n", second: "eins\r\nz\u2028wei\x85\r\n d r e i \r\n"})
    sources = [line_captions(tmp_path, language, name) for language in (first, second)]
    assert [source.ids for source in sources] == [NAMES, NAMES]
    assert sources[0].targets == [["one"], ["two, too"], ["three"]]
    assert sources[1].targets == [["eins"], ["z\u2028wei\x85"], [" d r e i "]]
    assert sources[0].digests(range(3)) == sources[1].digests(range(3))
    assert pickle.loads(pickle.dumps(sources[1])).targets == sources[1].targets


def test_the_languages_are_those_of_clip_benchmark():
    assert set(XTD_LANGUAGES) == set("de en es fr it jp ko pl ru tr zh".split())
    assert (len(CROSSMODAL_LANGUAGES), len(set(CROSSMODAL_LANGUAGES))) == (36, 36)
    assert (len(FLORES_CODES), len(set(FLORES_CODES))) == (201, 201)
    assert all(len(code) == 8 and code[3] == "_" for code in FLORES_CODES)


@pytest.mark.parametrize(
    ("text", "count"), [("one\ntwo\n", 2), ("one\n\ntwo\nthree\n", 4), ("one\ntwo\nthree\nfour\n\n", 4), ("", 0)]
)
def test_another_number_of_captions_is_refused(tmp_path, text, count):
    make(tmp_path, "xtd10", {"en": text})
    with pytest.raises(DataError, match=rf"test_1kcaptions_en.txt has {count} captions, .* lists 3 images"):
        line_captions(tmp_path, "en", "xtd10")


def test_a_blank_line_is_a_caption_without_words_but_not_at_the_end(tmp_path):
    make(tmp_path, "xtd10", {"en": "one\n\nthree\n\n\n", "de": "eins\nzwei\n\n"})
    assert line_captions(tmp_path, "en", "xtd10").targets == [["one"], [""], ["three"]]
    assert line_captions(tmp_path, "de", "xtd10").targets == [["eins"], ["zwei"], [""]]


def test_an_image_that_is_listed_twice_has_both_captions(tmp_path):
    make(tmp_path, "xtd10", {"en": "one\ntwo\nthree\nfour\n"})
    write(tmp_path / "test_image_names.txt", "\n".join([*NAMES, NAMES[0]]))
    source = line_captions(tmp_path, "en", "xtd10")
    assert source.ids == NAMES
    assert source.targets[0] == ["one", "four"]


def test_files_may_lie_as_in_the_repository_that_publishes_them(tmp_path):
    make(tmp_path, "xtd10", {})
    (tmp_path / "XTD10").mkdir()
    (tmp_path / "test_image_names.txt").rename(tmp_path / "XTD10" / "test_image_names.txt")
    write(tmp_path / "STAIR" / "test_1kcaptions_jp.txt", "一\n二\n三\n")
    assert line_captions(tmp_path, "jp", "xtd10").targets == [["一"], ["二"], ["三"]]


@pytest.mark.parametrize("name", LINE_FILES)
def test_what_clip_benchmark_leaves_is_read_and_its_paths_are_not_followed(tmp_path, name):
    files, language = LINE_FILES[name], TWO[name]
    draw_all(tmp_path / files.folder / "images", NAMES)
    paths = [f"root/{NAMES[0]}", f"/home/else/../{NAMES[1]}", f"D:\\data\\{NAMES[2]}"]
    made = {"image_paths": paths, "annotations": ["a", "b", "c"], "indicies": [0, 1, 2]}
    write(tmp_path / files.json.format(language), made)
    source = line_captions(tmp_path, language, name)
    assert (source.ids, source.targets) == (NAMES, [["a"], ["b"], ["c"]])
    write(tmp_path / files.json.format(language), {**made, "annotations": ["a"]})
    with pytest.raises(DataError, match=r"has 1 captions, .* lists 3 images"):
        line_captions(tmp_path, language, name)
    write(tmp_path / files.json.format(language), {**made, "image_paths": [*paths[:2], "x/.."]})
    with pytest.raises(DataError, match=r"leaves the image folder"):
        line_captions(tmp_path, language, name)


@pytest.mark.parametrize(
    ("name", "language", "near"),
    [("xtd10", "ja", "jp"), ("xtd200", "en", "eng_Latn"), ("flickr30k-200", "deu", "deu_Latn"), ("xtd10", "fra", "fr")],
)
def test_an_unknown_language_suggests(tmp_path, name, language, near):
    make(tmp_path, name, {})
    with pytest.raises(DataError, match=rf"no captions in '{language}'; did you mean .*{near}"):
        line_captions(tmp_path, language, name)


def test_missing_files_and_images_are_named(tmp_path):
    with pytest.raises(DataError, match=r"test_image_names.txt is missing"):
        line_captions(tmp_path, "en", "xtd10")
    write(tmp_path / "test_image_names.txt", "1.jpg\n")
    with pytest.raises(DataError, match=r"test_1kcaptions_en.txt is missing .*Cross-lingual-Test-Dataset-XTD10"):
        line_captions(tmp_path, "en", "xtd10")
    write(tmp_path / "test_1kcaptions_en.txt", "one")
    with pytest.raises(DataError, match=r"1 of 1 images are missing"):
        line_captions(tmp_path, "en", "xtd10")
    write(tmp_path / "test_image_names.txt", "../1.jpg\n")
    with pytest.raises(DataError, match=r"leaves the image folder"):
        line_captions(tmp_path, "en", "xtd10")


# Crossmodal-3600 --------------------------------------------------------------------------------------------------

LINES = [
    {"image/key": "b", "image/locale": "sw", "en": {"caption": ["b 1", "b\u2028 2"]}, "ja": {"caption": ["び"]}},
    {"image/key": "a", "image/locale": "en", "en": {"caption": ["a 1"]}, "fil": {"caption": ["x"]}},
]


@pytest.fixture
def crossmodal(tmp_path: Path) -> Path:
    draw_all(tmp_path / "xm3600" / "images", ["a.jpg", "b.jpg"])
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in LINES)
    write(tmp_path / "xm3600" / "captions.jsonl", "\ufeff" + text)
    return tmp_path


def test_crossmodal_has_all_captions_and_the_same_images_in_each_language(crossmodal):
    english, japanese = (crossmodal_captions(crossmodal, language) for language in ("en", "ja"))
    assert english.ids == japanese.ids == ["b.jpg", "a.jpg"]
    assert english.targets == [["b 1", "b\u2028 2"], ["a 1"]]
    assert japanese.targets == [["び"], []]
    assert english.slices == [{"locale": "sw"}, {"locale": "en"}]


def test_crossmodal_without_a_language(crossmodal):
    with pytest.raises(DataError, match=r"no captions in 'jp'; did you mean ja\?"):
        crossmodal_captions(crossmodal, "jp")
    with pytest.raises(DataError, match=r"no captions in 'quz'.*it has en, fil, ja"):
        crossmodal_captions(crossmodal, "quz")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"image/key": "a", "en": {"caption": ["x"]}', r"line 1 is not valid JSON"),
        ('{"en": {"caption": ["x"]}}', r"entry 1 should have 'image/key'"),
        ('{"image/key": "../a", "en": {"caption": ["x"]}}', r"leaves the image folder"),
        ('{"image/key": "a", "en": ["x"]}', r"'en' should be an object with 'caption'"),
        ('{"image/key": "a", "en": {"caption": "x"}}', r"'caption' should be a list; it is \"x\""),
        ('{"image/key": "c", "en": {"caption": ["x"]}}', r"1 of 1 images are missing"),
    ],
)
def test_faults_of_crossmodal(crossmodal, line, said):
    write(crossmodal / "xm3600" / "captions.jsonl", line)
    with pytest.raises(DataError, match=said):
        crossmodal_captions(crossmodal, "en")

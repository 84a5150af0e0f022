"""MS-COCO and Flickr with their captions, in each form of their annotation files."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from caption_world import COCO, coco_form, draw_all, karpathy_form, list_form, write

from testbed.data.content import file_digest
from testbed.data.formats.caption_files import coco_captions, flickr_captions, read_caption_rows
from testbed.errors import DataError, SampleError

EXPECTED = {
    "val2014/COCO_val2014_000000000001.jpg": ["a dog,\nrunning"],
    "val2014/COCO_val2014_000000000002.jpg": [],
    "val2014/COCO_val2014_000000000003.jpg": ["the \u2028first ", 'the "second"'],
}
FORMS = {
    "coco_test_karpathy.json": coco_form(),
    "annotations/coco_test_karpathy.json": coco_form(),
    "dataset_coco.json": karpathy_form(),
    "coco_karpathy_test.json": list_form(),
    "byte order mark/coco_test_karpathy.json": "\ufeff" + json.dumps(coco_form()),
}


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    draw_all(tmp_path / "val2014", COCO)
    return tmp_path


@pytest.fixture
def flickr(tmp_path: Path) -> Path:
    draw_all(tmp_path / "Images", ["10.jpg", "9.jpg", "11_x.jpg"])
    return tmp_path


# MS-COCO ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FORMS)
def test_coco_is_the_same_data_set_in_every_form(coco, file):
    write(coco / file.removeprefix("byte order mark/"), FORMS[file])
    source = coco_captions(coco, "test")
    assert dict(zip(source.ids, source.targets, strict=True)) == EXPECTED
    assert list(source.ids) == sorted(source.ids)
    copy = pickle.loads(pickle.dumps(source))  # as it travels to another process
    assert copy.image(0).size == (12, 8)
    assert copy.digests([2, 0]) == [file_digest(coco / source.ids[2]), file_digest(coco / source.ids[0])]
    assert copy.describe_samples([0, 2]).fingerprint == source.describe_samples([0, 2]).fingerprint
    (coco / "val2014" / COCO[1]).write_bytes(b"no image")
    with pytest.raises(SampleError):
        source.image(0)


def test_coco_s_own_splits_lie_in_the_folder_of_their_name(tmp_path):
    names = [f"{number:012}.jpg" for number in (3, 1, 2)]
    draw_all(tmp_path / "val2017", names)
    write(tmp_path / "annotations" / "captions_val2017.json", coco_form(names))
    assert coco_captions(tmp_path, "captions_val2017").ids == [f"val2017/{name}" for name in sorted(names)]


def test_an_image_that_is_listed_twice_is_one_image_with_both_captions(coco):
    data = list_form()
    write(coco / "coco_karpathy_test.json", [*data, {"image": f"val2014/{COCO[1]}", "caption": "once more"}])
    source = coco_captions(coco, "test")
    assert source.targets[0] == ["a dog,\nrunning", "once more"]
    assert len(source) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"images": [], "annotations": [{"image_id": 5, "caption": "x"}]}, r"to the image 5, which .* does not list"),
        ({"images": [{"id": 1}], "annotations": []}, r"images\[0\] should have 'file_name'; it has id"),
        ({"images": [], "annotations": []}, r"lists no images"),
        ({"images": karpathy_form()["images"][3:]}, r"no images of the split 'test'; it has restval"),
        ([{"image": "a.jpg", "caption": [1]}], r"\[0\]: 'caption' should be a list of texts"),
        ([{"image": "a.jpg", "caption": None}], r"\[0\]: 'caption' should be a list of texts"),
        ({"other": 1}, r"should be captions in COCO's form"),
        ('{"images": [', r"is not valid JSON: .*incomplete"),
        ("\udcff", r"is not UTF-8 text \(byte 0"),
        ([{"image": "a.jpg", "caption": "\ud83d"}], r"half of a surrogate pair"),
        ([{"image": "a.jpg", "caption": "a\0b"}], r"NUL"),
        ([{"image": "val2014/gone.jpg", "caption": "x"}], r"1 of 1 images are missing in .*gone.jpg.*cocodataset"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(coco, content, said):
    write(coco / "coco_test_karpathy.json", content)
    with pytest.raises(DataError, match=said):
        coco_captions(coco, "test")


@pytest.mark.parametrize(
    "path", ["../secret.jpg", "/etc/passwd", "val2014/../../x.jpg", "C:\\x.jpg", "a\\..\\..\\x.jpg"]
)
@pytest.mark.parametrize("form", ["coco", "list", "karpathy"])
def test_paths_that_lead_out_are_not_followed(coco, path, form):
    draw_all(coco.parent, ["secret.jpg"])
    content = {
        "coco": {"images": [{"id": 1, "file_name": path}], "annotations": []},
        "list": [{"image": path, "caption": []}],
        "karpathy": {"images": [{"split": "test", "filename": path, "sentences": []}]},
    }[form]
    write(coco / "coco_test_karpathy.json", content)
    with pytest.raises(DataError, match=r"leaves the image folder"):
        coco_captions(coco, "test")


def test_missing_files_are_named_with_where_they_come_from(tmp_path):
    with pytest.raises(DataError, match=r"coco_test_karpathy.json is missing in .*retrieval_annotations"):
        coco_captions(tmp_path, "test")
    with pytest.raises(DataError, match=r"the folder .*none does not exist; it should contain captions_val2017.json"):
        coco_captions(tmp_path / "none", "captions_val2017")


# Flickr -----------------------------------------------------------------------------------------------------------

ROWS = '''image,caption
9.jpg,plain caption
9.jpg,"with a comma, and ""quotes"""
10.jpg," over\ntwo lines"
11_x.jpg,never quoted, though it has commas
11_x.jpg,"odd" start, no CSV
10.jpg,separator\u2028within
'''


def test_flickr_rows_as_pandas_writes_them_and_rows_that_were_never_quoted(flickr):
    write(flickr / "flickr30k_test_karpathy.txt", ROWS)
    source = flickr_captions(flickr, "test", "en", "flickr30k")
    assert dict(zip(source.ids, source.targets, strict=True)) == {
        "10.jpg": [" over\ntwo lines", "separator\u2028within"],
        "11_x.jpg": ["never quoted, though it has commas", '"odd" start, no CSV'],
        "9.jpg": ["plain caption", 'with a comma, and "quotes"'],
    }


def test_rows_are_what_pandas_reads(tmp_path):
    import pandas

    captions = ["a, b", 'say "x"', "", " led by a blank", "two\nlines", '"', "trailing ", "ünï — 中文,「」"]
    table = pandas.DataFrame({"image": [f"{number}.jpg" for number in range(len(captions))], "caption": captions})
    table.to_csv(tmp_path / "rows.txt", index=False)
    assert [own for (own,) in read_caption_rows(tmp_path / "rows.txt").values()] == captions
    windows = (tmp_path / "rows.txt").read_text(encoding="utf-8").replace("\n", "\r\n").replace("two\r\n", "two\n")
    (tmp_path / "windows.txt").write_bytes(windows.encode())
    assert [own for (own,) in read_caption_rows(tmp_path / "windows.txt").values()] == captions


def test_rows_need_no_heading_and_may_have_blank_lines(tmp_path):
    write(tmp_path / "rows.txt", "\n1.jpg,one\n\n1.jpg,two")
    assert read_caption_rows(tmp_path / "rows.txt") == {"1.jpg": ["one", "two"]}


@pytest.mark.parametrize("line", ["no comma", "picture,caption", "1.gif,x"])
def test_a_row_without_an_image_is_refused(tmp_path, line):
    write(tmp_path / "rows.txt", f"image,caption\n1.jpg,one\n{line}\n")
    with pytest.raises(DataError, match=r"line 3 should be IMAGE.jpg,CAPTION"):
        read_caption_rows(tmp_path / "rows.txt")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("flickr8k_test_zh.txt", "image,caption\n9.jpg,两个人,在外面\n10.jpg,狗\n11_x.jpg,猫\n"),
        ("flickr8k_cn_test.txt", "9.jpg#0\t两个人,在外面\n10.jpg#0\t狗\n11_x.jpg#0\t猫\n"),
        ("flickr8k_cn_test.txt", "9#zhm#0\t两个人,在外面\n10#zhm#0\t狗\n11_x#zhm#0\t猫"),
        ("flickr8k_cn_test.txt", "9.jpg#zhb#0 两个人,在外面\n10.jpg#zhb#0 狗\n11_x.jpg#zhb#0 猫\n"),
    ],
)
def test_images_come_in_the_same_order_in_each_language(flickr, file, content):
    write(flickr / "flickr8k_test_karpathy.txt", "image,caption\n11_x.jpg,cat\n9.jpg,people\n10.jpg,dog\n")
    write(flickr / file, content)
    english = flickr_captions(flickr, "test", "en", "flickr8k")
    chinese = flickr_captions(flickr, "test", "zh", "flickr8k")
    assert english.ids == chinese.ids == ["10.jpg", "11_x.jpg", "9.jpg"]
    assert english.digests(range(3)) == chinese.digests(range(3))
    assert chinese.targets == [["狗"], ["猫"], ["两个人,在外面"]]


def test_flickr_in_karpathy_s_form_and_with_the_images_in_the_folder_itself(tmp_path):
    names = ["10.jpg", "9.jpg", "11_x.jpg"]
    draw_all(tmp_path, names)
    write(tmp_path / "dataset_flickr30k.json", karpathy_form(names, folder=None))
    source = flickr_captions(tmp_path, "test", "en", "flickr30k")
    assert source.ids == ["10.jpg", "11_x.jpg", "9.jpg"]
    assert source.targets[1] == []
    write(tmp_path / "flickr30k_test.json", list_form(names, "flickr30k-images/"))
    (tmp_path / "dataset_flickr30k.json").unlink()
    assert flickr_captions(tmp_path, "test", "en", "flickr30k").targets == source.targets


def test_a_language_that_there_is_not(flickr):
    with pytest.raises(DataError, match=r"no captions in 'cn'; did you mean zh\?; it has en, zh"):
        flickr_captions(flickr, "test", "cn", "flickr30k")
    with pytest.raises(DataError, match=r"flickr30k_test_zh.txt is missing .*nor is there flickr30k_cn_test.txt"):
        flickr_captions(flickr, "test", "zh", "flickr30k")


def test_a_broken_line_of_numbered_captions(flickr):
    write(flickr / "flickr30k_cn_test.txt", "9.jpg#0\t狗\nrest of it\n")
    with pytest.raises(DataError, match=r"line 2 should be IMAGE#NUMBER"):
        flickr_captions(flickr, "test", "zh", "flickr30k")

"""Data files in place of a setting's name: tables, archives and shards; each gives the numbers of plain torch."""

from __future__ import annotations

import base64
import gzip
import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from at_hand_world import COUNT, RIGHT, evaluated, make_pictures, right_of

from testbed.data.at_hand.files import open_file
from testbed.errors import DataError, UnknownNameError
from testbed.inputs import Inputs
from testbed.paths import cache_dir
from testbed.registry import registry
from testbed.registry.data_files import braces_expanded, data_path, form_of, in_braces
from testbed.registry.folders import settings_of_folders

ALL = (RIGHT, COUNT)


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    return make_pictures(tmp_path / "in" / "pictures")


def table(pictures, line, head=""):
    return head + "".join(
        f"{line.format(path=path.name, label=label)}\n" for path, label in zip(*pictures[2:0:-1], strict=True)
    )


TABLES = {
    "labels.csv": ("pictures/{path},{label}", "path,label\n"),
    "other.csv": ("7;{label};pictures/{path}", "id;class_id;file_name\n"),
    "bare.csv": ("pictures/{path},{label}", ""),
    "quoted.csv": ('"{label}","pictures/{path}"', '"y","image"\n'),
    "marked.csv": ("pictures/{path},{label}", "\ufeffImage Path,Label\r\n"),
    "labels.tsv": ("{label}.0\tpictures/{path}", "target\tfilename\n"),
    "val_map.txt": ("pictures/{path} {label}", ""),
    "labels.jsonl": ('{{"image": "pictures/{path}", "label": {label}}}', ""),
    "text.jsonl": ('{{"label": "{label}", "file": "pictures/{path}", "note": null}}', "\n"),
}


def test_tables_of_paths(pictures, tmp_path):
    folder = tmp_path / "in"
    for name, (line, head) in TABLES.items():
        (folder / name).write_text(table(pictures, line, head))
    rows = [{"image": str(path), "label": label} for path, label in zip(pictures.paths, pictures.labels, strict=True)]
    (folder / "list.json").write_text(json.dumps(rows))
    files = [*TABLES, "list.json"]
    found = evaluated([folder / name for name in files], tmp_path)
    assert found.failed.empty
    rows = found.frame.query("metric == 'top1' and slice == 'overall'")
    right = {row.eval_setting: (round(row.value * row.n), row.n) for row in rows.itertuples()}
    assert right == {f"file/{name}": ALL for name in files}
    assert not (tmp_path / "cache" / "data").exists()  # they are read in place


def test_pictures_in_base64_and_an_object_of_labels_by_image(pictures, tmp_path):
    folder = tmp_path / "in"
    codes = [base64.b64encode(path.read_bytes()).decode() for path in pictures.paths]
    long = "x" * (1 << 18)  # longer than what is read to see the form, and than a cell of the csv module
    rows = zip(codes, pictures.labels, strict=True)
    (folder / "codes.tsv").write_text("image\tlabel\tnote\n" + "".join(f"{code}\t{y}\t{long}\n" for code, y in rows))
    rows = zip(codes, pictures.labels, strict=True)
    lines = [json.dumps({"picture": f"data:image/png;base64,{code}", "label": label}) for code, label in rows]
    (folder / "urls.jsonl").write_text("\n".join(lines))
    by_image = {f"pictures/{path.name}": label for path, label in zip(pictures.paths, pictures.labels, strict=True)}
    (folder / "map.json").write_text(json.dumps(by_image, indent=1))
    for name in ("codes.tsv", "urls.jsonl", "map.json"):
        assert right_of(folder / name, tmp_path) == ALL


def test_the_command_line_takes_them_and_a_perturbation(pictures, tmp_path):
    (tmp_path / "in" / "labels.csv").write_text(table(pictures, *TABLES["labels.csv"]))
    found = evaluated("file/labels.csv+imagenet-c.contrast.1", tmp_path, data_root=tmp_path / "in")
    assert found.failed.empty
    assert right_of(f"csv:{tmp_path / 'in' / 'labels.csv'}", tmp_path) == ALL
    by_path = evaluated(f"{tmp_path / 'in' / 'labels.csv'}+imagenet-c.contrast.1", tmp_path)
    assert [outcome.status for outcome in by_path.outcomes] == ["stored"]


def test_a_pattern_of_names_stays_one_beside_a_folder(tmp_path, monkeypatch):
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    for word in ("digits+imagenet-c.*.3", "digits-c.fog.*", "digits+imagenet-c.fog.3"):
        assert settings_of_folders(registry, [word], Inputs()) == ([word], Inputs())
    words, _ = settings_of_folders(registry, ["./digits+imagenet-c.fog.3"], Inputs())
    assert words == ["folder/digits+imagenet-c.fog.3"]
    with pytest.raises(
        UnknownNameError,
        match=r"after the folder ./digits comes \+CORRUPTION: .*'imagenet-c.fogg.3'.* mean 'imagenet-c.fog.3'",
    ):
        settings_of_folders(registry, ["./digits+imagenet-c.fogg.3"], Inputs())


def test_a_list_of_names_stays_one(tmp_path):
    for name in ("names.txt", "names.csv", "names"):
        (tmp_path / name).write_text("# chosen\ndigits\ndigits-c.contrast.1 # harder\nbabel_imagenet,fr\n")
        assert form_of(tmp_path / name) is None
        assert data_path(str(tmp_path / name)) is None
    with pytest.raises(UnknownNameError, match="has one field in each line"):
        data_path(f"csv:{tmp_path / 'names.csv'}")
    with pytest.raises(UnknownNameError, match="there is no file"):
        data_path(f"csv:{tmp_path / 'none.csv'}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "has the columns a, b; which one has the images?"),
        ("path,x,z\na.png,1,2\n", "which one has the labels?"),
        ("path,label\na.png,1,2\n", "line 2 has 3 fields, the first has 2"),
        ("path,path\na.png,1\n", "has two columns with the same name"),
        ("path,label\na.png,1\nb.png,\n", "sample 1 has the label ''; "),
        ("path,label\ngone.png,1\n", "none of the 1 images exist; the first would be .*gone.png; relative paths are"),
        ("path,label\nhttps://example.org/a.png,1\n", "nothing is downloaded"),
        ("path,label\n", "x.csv has no images"),
        ('{"image": "a.png"\n', "line 1 is not JSON"),
        ('{"image": "a.png", "label": 1}\n[]\n', "line 2 is not an object"),
    ],
)
def test_faulty_tables_are_one_clear_line(text, message, tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        open_file(str(tmp_path / "x.csv"), "x")


# Archives ---------------------------------------------------------------------------------------------------------


def write_folders(pictures, folder):
    """Class folders, and junk as macOS leaves it."""
    for path, label in zip(pictures.paths, pictures.labels, strict=True):
        (folder / f"{label:02d}" / "deeper").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / f"{label:02d}" / "deeper" / path.name)
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX" / "._p00.png").write_bytes(b"x")
    (folder / "readme.md").write_text("x")


@pytest.mark.parametrize("form", ["zip", "tar", "gztar", "xztar"])
@pytest.mark.parametrize("above", [True, False], ids=["a folder above", "none above"])
def test_archives_of_class_folders_are_what_their_folder_is(form, above, pictures, tmp_path):
    from testbed.data.formats.image_folder import ImageFolder

    folder = tmp_path / "folders" / "mine"
    write_folders(pictures, folder)
    root = folder.parent if above else folder
    file = shutil.make_archive(str(tmp_path / "in" / "archive"), form, root, "mine" if above else ".")
    found, expected = open_file(file, "x"), ImageFolder(folder, "x")
    assert (list(found.ids), found.targets, found.class_names) == (expected.ids, expected.targets, expected.class_names)
    assert found.digests(range(COUNT)) == expected.digests(range(COUNT))
    assert [found.image(n).tobytes() for n in range(COUNT)] == [expected.image(n).tobytes() for n in range(COUNT)]
    assert {each.reason for each in found.left_out} == {
        "files with other extensions left out",
        "hidden or system files left out",
    }
    (kept,) = cache_dir("data").iterdir()
    assert (kept / "images").exists() == (form != "tar")  # a plain tar file is read in place
    before = kept.stat().st_mtime_ns
    assert open_file(file, "x").ids == found.ids
    assert kept.stat().st_mtime_ns == before


def test_an_archive_that_changes_is_read_again(pictures, tmp_path):
    for number in (3, 5):
        folder = tmp_path / f"folders{number}"
        for path in pictures.paths[:number]:
            (folder / "ant").mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / "ant")
        shutil.make_archive(str(tmp_path / "in" / "archive"), "zip", folder)
        assert len(open_file(str(tmp_path / "in" / "archive.zip"), "x")) == number


def zipped(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def tarred(path, members, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("write", [zipped, tarred])
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["../a/x.png"], "its member '../a/x.png' points outside it"),
        (["/a/x.png"], "its member '/a/x.png' points outside it"),
        (["x.png", "y.png"], "neither class folders .* nor labels"),
        (["a/x.txt"], "has no images"),
        (["train/a/x.png", "val/b/x.png"], r"a folder for each split \(train, val\); unpack it"),
        (["a/x.png", "a/x.cls", "a/y.png"], "the sample a/y has no label; expected a/y.cls"),
        (["a/x.png", "a/x.jpg", "a/x.cls"], "the sample a/x has two images"),
    ],
)
def test_archives_that_are_refused(write, names, message, pictures, tmp_path):
    file = write(
        tmp_path / "in" / "x",
        {name: b"0" if name.endswith("cls") else pictures.paths[0].read_bytes() for name in names},
    )
    with pytest.raises(DataError, match=message):
        open_file(str(file), "x")
    assert list(cache_dir("data").iterdir()) == []


@pytest.mark.parametrize("form", ["zip", "tar", "gztar"])
def test_damaged_archives_are_named(form, pictures, tmp_path):
    write_folders(pictures, tmp_path / "folders")
    file = tmp_path / "in" / "archive"
    made = shutil.make_archive(str(file), form, tmp_path / "folders")
    data = Path(made).read_bytes()
    file.write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(DataError, match="archive"):
        open_file(str(file), "x")
    assert not list(cache_dir("data").iterdir())


def test_an_encrypted_zip_and_a_link_in_a_tar(pictures, tmp_path):
    image = pictures.paths[0].read_bytes()
    file = zipped(tmp_path / "in" / "x.zip", {"a/x.png": image})
    data = bytearray(file.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory
    file.write_bytes(data)
    with pytest.raises(DataError, match="is encrypted; unpack it"):
        open_file(str(file), "x")
    with tarfile.open(tmp_path / "in" / "x.tar", "w") as archive:
        archive.add(pictures.paths[0], "a/x.png")
        link = tarfile.TarInfo("a/y.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    found = open_file(str(tmp_path / "in" / "x.tar"), "x")
    assert list(found.ids) == ["a/x.png"]
    assert any("links" in each.reason for each in found.left_out)


# Shards -----------------------------------------------------------------------------------------------------------


def write_shards(pictures, folder, count=2, label="cls", image="png", mode="w"):
    """As webdataset's TarWriter writes them."""
    folder.mkdir(parents=True)
    for shard in range(count):
        members = {}
        for place in range(shard, COUNT, count):
            number = pictures.labels[place]
            members[f"s{place:03d}.{image}"] = pictures.paths[place].read_bytes()
            members[f"s{place:03d}.{label}"] = (
                json.dumps({"label": number, "caption": "x"}) if label.endswith("json") else str(number)
            ).encode()
            members[f"s{place:03d}.txt"] = b"words"
        tarred(folder / f"x-{shard:06d}.tar{'.gz' if mode == 'w:gz' else ''}", members, mode)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["x-{000000..000001}.tar", "x-*.tar", "x-00000[01].tar", "x-{000000,000001}.tar", ""]),
        ({"count": 1, "label": "json"}, ["x-000000.tar"]),
        ({"count": 1, "image": "input.png", "label": "target.cls"}, ["x-000000.tar", "*.tar"]),
        ({"mode": "w:gz"}, ["x-{000000..000001}.tar.gz", ""]),
    ],
    ids=["cls", "json", "longer extensions", "compressed"],
)
def test_shards_as_webdataset_writes_them(options, words, pictures, tmp_path):
    write_shards(pictures, tmp_path / "in" / "shards", **options)
    for word in words:
        assert right_of(str(tmp_path / "in" / "shards" / word), tmp_path) == ALL


def test_a_missing_shard_is_said(pictures, tmp_path):
    write_shards(pictures, tmp_path / "in" / "shards")
    with pytest.raises(UnknownNameError, match=r"names 4 files, of which 2 are missing: .*x-000002.tar"):
        evaluated(str(tmp_path / "in" / "shards" / "x-{000000..000003}.tar"), tmp_path)
    with pytest.raises(UnknownNameError, match="no file matches"):
        evaluated(str(tmp_path / "in" / "shards" / "y-*.tar"), tmp_path)


@pytest.mark.parametrize(
    "paths",
    [["a"], ["a0", "a1"], ["s/x-09.tar", "s/x-10.tar", "s/x-11.tar"], ["x1.tar", "x3.tar"], ["ab", "b"], ["a", "ab"]],
)
def test_braces_are_read_as_they_are_written(paths):
    assert braces_expanded(in_braces(paths)) == paths


def test_braces():
    assert braces_expanded("a{1..3}{x,y}") == ["a1x", "a1y", "a2x", "a2y", "a3x", "a3y"]
    assert braces_expanded("{08..11}") == ["08", "09", "10", "11"]
    with pytest.raises(UnknownNameError, match="is not a range"):
        braces_expanded("{9..1}")


def test_arrays_and_tensors_are_found_by_shape_and_type(pictures, tmp_path):
    folder, labels = tmp_path / "in", np.array(pictures.labels)
    np.savez(folder / "medmnist.npz", split=np.array("test"), a=labels[:, None], b=pictures.pixels)
    first = torch.from_numpy(pictures.pixels).permute(0, 3, 1, 2)
    torch.save((first, torch.from_numpy(labels)), folder / "pair.pt")
    torch.save({"x": first / 255, "y": torch.from_numpy(labels), "norm": torch.ones(3)}, folder / "named.pt")
    for name in ("medmnist.npz", "pair.pt", "named.pt"):
        assert right_of(folder / name, tmp_path) == ALL


@pytest.mark.parametrize(
    ("name", "arrays", "message"),
    [
        ("two.npz", {"x_train": (3, 8, 8, 3), "y_train": (3,), "x_test": (2, 8, 8), "y_test": (2,)}, "2 pairs"),
        ("none.npz", {"features": (3, 64), "y": (3,)}, r"has no images with as many .*features \[3, 64\]"),
        ("objects.npz", {"x": (3, 8, 8), "y": None}, "pickles, which are not opened"),
        ("net.pt", {"weight": (3,)}, r"has no images .*weight \[3\] torch.int64"),
    ],
)  # fmt: skip
def test_files_of_other_arrays_are_one_line(name, arrays, message, tmp_path):
    made = {
        key: np.array([None]) if shape is None else np.zeros(shape, np.int64 if len(shape) == 1 else np.uint8)
        for key, shape in arrays.items()
    }
    if name.endswith(".npz"):
        np.savez(tmp_path / name, **made)
    else:
        torch.save({key: torch.from_numpy(value) for key, value in made.items()}, tmp_path / name)
    with pytest.raises(DataError, match=message) as caught:
        open_file(str(tmp_path / name), name)
    assert "\n" not in str(caught.value)


def test_paths_of_windows_and_images_in_a_folder_beside_the_table(pictures, tmp_path):
    folder = tmp_path / "in"
    (folder / "windows.csv").write_text(table(pictures, "..\\in\\pictures\\{path};{label}", "path;label\n"))
    (folder / "val_annotations.txt").write_text(table(pictures, "{path}\tn{label:02}\t0\t0\t7\t7"))
    assert right_of(folder / "windows.csv", tmp_path) == ALL
    source = open_file(str(folder / "val_annotations.txt"), "tiny")
    assert [source.class_names[target] for target in source.targets] == [f"n{label:02}" for label in pictures.labels]


def test_an_excel_workbook_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(DataError, match="it is an Excel workbook"):
        open_file(str(tmp_path / "t.xlsx"), "t.xlsx")


def test_other_files_are_not_data(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"digits"))
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for name in ("x.gz", "x.png"):
        assert form_of(tmp_path / name) is None
    with pytest.raises(DataError, match="is not data in a known form; expected a table"):
        open_file(str(tmp_path / "x.png"), "x")

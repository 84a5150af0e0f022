"""What is left out while data sets are listed: counted by reason, named, and never a sample or a class."""

from __future__ import annotations

import os
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pytest
import wds_world as world
from PIL import Image

from testbed.data.formats.captions import CaptionedImages
from testbed.data.formats.image_folder import ImageFolder
from testbed.data.formats.image_lists import ImageArrays, ListedImages
from testbed.data.formats.image_store import ImagesInFolder, ImagesInZip
from testbed.data.left_out import LeftOut, merged, printable
from testbed.data.source import Source
from testbed.data.tables.source import TableSource
from testbed.data.webdataset.source import WebDataset
from testbed.errors import DataError

NFC, NFD = (unicodedata.normalize(form, "été") for form in ("NFC", "NFD"))


def plant(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(world.picture(0))
    return root


def found(source: Source) -> dict[str, tuple[int, tuple[str, ...], bool]]:
    return {each.reason: (each.count, each.names, each.expected) for each in source.left_out}


# Folders ----------------------------------------------------------------------------------------------------------


def test_hidden_and_system_files_are_neither_samples_nor_classes(tmp_path):
    junk = ["cat/._1.png", "cat/.DS_Store", "cat/.ipynb_checkpoints/1-checkpoint.png", "cat/Thumbs.db"]
    junk += [".ipynb_checkpoints/x.png", "__MACOSX/cat/._1.png", "@eaDir/1.png", ".hidden.png", "cat/sub/.x.jpg"]
    source = ImageFolder(plant(tmp_path, "cat/1.png", "dog/1.png", *junk), "pets")
    assert (source.ids, source.class_names) == (["cat/1.png", "dog/1.png"], ["cat", "dog"])
    ((reason, (count, names, expected)),) = found(source).items()
    assert (reason, count, expected) == ("hidden or system files left out", 9, True)
    assert names == tuple(sorted(names))
    assert len(names) == 5


def test_files_with_other_extensions_are_counted_and_a_whole_class_of_them_keeps_its_number(tmp_path):
    others = ["bee/1.gif", "bee/2.jfif", "cat/1.avif", "cat/notes.txt", "cat/picture"]
    source = ImageFolder(plant(tmp_path, "ant/1.png", "cat/1.png", *others), "pets")
    assert (source.targets, source.class_names) == ([0, 2], ["ant", "bee", "cat"])
    assert found(source) == {
        "files with other extensions left out": (5, tuple(others), False),
        "classes without images": (1, ("bee",), True),
    }


def test_files_beside_the_class_folders_are_counted_but_not_those_that_testbed_reads(tmp_path):
    beside = ["1.png", "README.md", "classnames.txt", "classnames.zh.txt", "templates.txt"]
    source = ImageFolder(plant(tmp_path, "cat/1.png", *beside), "pets")
    assert found(source) == {"files outside of the class folders left out": (2, ("1.png", "README.md"), False)}


def test_pipes_are_not_read_and_broken_links_are_unreadable_samples(tmp_path):
    plant(tmp_path, "cat/1.png")
    os.mkfifo(tmp_path / "cat" / "pipe.png")
    (tmp_path / "cat" / "gone.png").symlink_to("nowhere.png")
    source = ImageFolder(tmp_path, "pets")
    assert source.ids == ["cat/1.png", "cat/gone.png"]
    assert found(source) == {"devices, pipes and sockets left out": (1, ("cat/pipe.png",), False)}


def test_two_folders_of_one_name_in_two_unicode_forms_are_refused(tmp_path):
    plant(tmp_path, f"{NFC}/1.png", f"{NFD}/2.png")
    with pytest.raises(DataError, match=r"two folders .* in different Unicode forms"):
        ImageFolder(tmp_path, "pets")


def test_classes_of_a_list_are_found_in_either_unicode_form(tmp_path):
    source = ImageFolder(plant(tmp_path, f"{NFD}/1.png", "zoo/1.png"), "pets", ["ant", NFC, "zoo"])
    assert source.targets == [1, 2]
    assert found(source) == {"classes without images": (1, ("ant",), True)}


# Webdatasets ------------------------------------------------------------------------------------------------------


def two(first: str, second: str) -> list[tuple[str, bytes]]:
    return world.samples({first: b"0", second: b"1"})


@pytest.mark.parametrize(
    "members",
    [
        two("1.5", "1.6"),
        two("1", "1.5"),  # beside a sample whose key has no dot
        two("v1.0/cat.0001", "v1.0/cat.0002"),
        [("1.5.png", world.picture(0)), ("2.cls", b"0"), ("2.png", world.picture(1))],  # not even a label
    ],
)
def test_keys_with_dots_are_an_error_never_dropped(members, tmp_path):
    root = world.write_split(tmp_path, [members], classnames="cat\ndog\n")
    with pytest.raises(DataError, match=r"a key ends at the first dot .* write the names without dots"):
        WebDataset(root)


def test_dots_in_folders_and_further_members_of_a_sample_are_no_keys_with_dots(tmp_path):
    members = [*two("v1.0/a", "v1.0/b"), ("v1.0/a.seg.png", world.picture(5)), ("v1.0/a.json", b"{}")]
    source = WebDataset(world.write_split(tmp_path, [members], classnames="cat\ndog\n"))
    assert source.ids == ["test/v1.0/a", "test/v1.0/b"]
    assert found(source) == {}


def test_members_of_no_sample_are_counted_over_all_shards_and_again_from_the_cache(tmp_path):
    shards = [
        [*two("a", "b"), ("._a.png", b"x"), ("c.json", b"{}"), ("c.tiff", b"x"), ("README", b"x")],
        [*two("d", "e"), ("__MACOSX/._d.png", b"x"), ("f.gif", b"x")],
    ]
    root = world.write_split(tmp_path, shards, classnames="cat\ndog\n")
    for _ in range(2):
        source = WebDataset(root)
        assert len(source) == 4
        assert found(source) == {
            "hidden or system files left out": (2, ("._a.png", "__MACOSX/._d.png"), True),
            "records with neither an image nor a label left out": (3, ("README", "c.json", "f.gif"), False),
        }


# Tables, lists, arrays --------------------------------------------------------------------------------------------


def test_rows_of_a_table_without_a_picture_are_counted(tmp_path):
    text = "index\tquestion\timage\n1\twhat?\t" + "A" * 80 + "\n2\twhat?\t\n3\twhat?\t\n"
    (tmp_path / "t.tsv").write_text(text)
    assert found(TableSource(tmp_path / "t.tsv")) == {"rows without a picture left out": (2, ("2", "3"), False)}


@pytest.mark.parametrize(("listed", "there"), [(NFC, NFD), (NFD, NFC)])
def test_files_of_a_list_are_found_in_either_unicode_form(listed, there, tmp_path):
    plant(tmp_path / "images", f"{there}/{there}.png", "a.png")
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr(f"images/{there}/{there}.png", world.picture(0))
    names = [f"{listed}/{listed}.png"]
    sources = [
        ListedImages(tmp_path / "images", "list", names, [0], ["x"]),
        *(
            CaptionedImages(images, {names[0]: ["a summer"]}, "captions", "nowhere")
            for images in (ImagesInFolder(tmp_path / "images"), ImagesInZip(tmp_path / "images.zip"))
        ),
    ]
    for source in sources:
        assert source.ids == names
        np.testing.assert_array_equal(np.asarray(source.image(0)), world.pixels(0))
        assert "missing" not in source.digests([0])
    (tmp_path / "t.tsv").write_text(f"index\tquestion\timage_path\n1\twhat?\t{names[0]}\n", encoding="utf-8")
    table = TableSource(tmp_path / "t.tsv", pictures=tmp_path / "images")
    assert table.row(0).pictures[0].data == world.picture(0)


def test_a_file_that_is_missing_in_any_form_is_missing(tmp_path):
    images = ImagesInFolder(plant(tmp_path, "a.png", f"{NFC}.png"))
    assert images.missing([f"{NFD}.png", "été2.png", "b.png", f"{NFC}/x.png"]) == ["été2.png", "b.png", f"{NFC}/x.png"]


@pytest.mark.parametrize("kind", [np.uint16, np.float32, np.int64])
def test_arrays_of_other_numbers_than_bytes_are_refused(kind):
    with pytest.raises(DataError, match="uint8 is expected"):
        ImageArrays("mine", "test", np.zeros((1, 4, 4), kind), [0], None)


# What is said -----------------------------------------------------------------------------------------------------


def test_names_are_printable_and_parts_are_added_up():
    assert printable("a\x1b[2J\n\udcff") == "a\\x1b[2J\\n\\udcff"
    first, second = LeftOut("files left out", 7, tuple("abcde")), LeftOut("files left out", 1, ("z",))
    (both,) = merged([first, second])
    assert (str(both), both.count) == ("files left out: 8 (a, b, c, d, e, …)", 8)
    assert LeftOut.from_object(both.as_object()) == both


def test_an_image_of_a_folder_with_deep_files_is_scaled(tmp_path):
    (tmp_path / "cat").mkdir()
    values = np.arange(0, 65536, 4096, dtype=np.uint16).reshape(4, 4)
    Image.fromarray(values).save(tmp_path / "cat" / "1.png")
    assert np.asarray(ImageFolder(tmp_path, "pets").image(0))[..., 0].tolist() == (values // 256).tolist()

"""Images in folders and in zip archives."""

from __future__ import annotations

import os
import pickle
import stat
import zipfile
from pathlib import Path

import pytest
from caption_world import draw

from testbed.data import content
from testbed.data.formats.image_store import ImagesInFolder, ImagesInZip, find_images, require_images
from testbed.errors import DataError, SampleError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw(tmp_path / "images" / "a.png", 10)
    draw(tmp_path / "images" / "sub" / "b.png", 20)
    return tmp_path / "images"


def pack(folder: Path, prefix: str = "") -> Path:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*.png")):
            archive.write(file, f"{prefix}{file.relative_to(folder)}")
    return path


@pytest.mark.parametrize("prefix", ["", "images/"])
def test_an_archive_serves_the_same_images_as_the_folder_it_unpacks_to(folder, prefix):
    names = ["sub/b.png", "a.png"]
    plain, packed = ImagesInFolder(folder), ImagesInZip(pack(folder, prefix))
    assert plain.digests(names) == packed.digests(names)
    assert plain.image("a.png").tobytes() == packed.image("a.png").tobytes()
    assert packed.missing([*names, "c.png", "c.png"]) == plain.missing([*names, "c.png", "c.png"]) == ["c.png"]
    assert not (folder.parent / "a.png").exists()
    assert pickle.loads(pickle.dumps(packed)).image("sub/b.png").size == (12, 8)


def test_digests_of_members_are_remembered_until_the_archive_changes(folder, monkeypatch):
    monkeypatch.setattr(content, "_SETTLED_NS", 0)
    images = ImagesInZip(pack(folder))
    before = images.digests(["a.png"])
    with monkeypatch.context() as patch:
        patch.setattr(ImagesInZip, "encoded", lambda *_: pytest.fail("read again"))
        assert images.digests(["a.png"]) == before
    draw(folder / "a.png", 99)
    os.utime(pack(folder), ns=(1, 1))
    assert images.digests(["a.png"]) != before


def test_what_is_in_an_archive_is_checked(folder, monkeypatch):
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("link.png")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.write(folder / "a.png", "a.png")
        archive.writestr("text.png", "no image")
        archive.writestr("folder.png/", "")
        archive.write(folder / "a.png", "broken.png")
        offset = archive.getinfo("broken.png").header_offset
    content = bytearray(path.read_bytes())
    content[offset + 60] ^= 255
    path.write_bytes(content)
    images = ImagesInZip(path)
    for name, said in (
        ("link.png", "is a link"),
        ("folder.png/", "is a link or a folder"),
        ("text.png", "not an image in a known format"),
        ("none.png", "has no member none.png"),
        ("broken.png", "cannot be read: Bad CRC"),
    ):
        with pytest.raises(SampleError, match=said):
            images.image(name)
    assert images.digests(["broken.png", "none.png"]) == ["missing", "missing"]
    monkeypatch.setattr("testbed.data.formats.image_store._LARGEST_MEMBER", 10)
    with pytest.raises(SampleError, match="too large for an image"):
        images.image("a.png")


def test_encrypted_members_are_said_to_be(folder):
    path = pack(folder)
    content = path.read_bytes()
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.index(signature) + place
        content = content[:at] + bytes([content[at] | 1]) + content[at + 1 :]
    path.write_bytes(content)
    with pytest.raises(SampleError, match="is encrypted; unpack the archive"):
        ImagesInZip(path).image("a.png")


def test_what_is_no_archive_is_refused(folder):
    path = folder.with_suffix(".zip")
    path.write_text("no archive")
    with pytest.raises(DataError, match="cannot be read as a zip archive"):
        ImagesInZip(path).missing(["a.png"])


def test_the_first_place_that_exists_is_taken(folder):
    root = folder.parent
    assert find_images(root, ["none", "images", "images.zip"], "x", "y") == ImagesInFolder(folder)
    pack(folder)
    assert find_images(root, ["images.zip", "images"], "x", "y") == ImagesInZip(root / "images.zip")
    with pytest.raises(
        DataError, match=r"data set 'x': the images are missing; looked for .*/none, .*/n.zip; .* from y"
    ):
        find_images(root, ["none", "n.zip"], "x", "y")
    with pytest.raises(DataError, match=r"2 of 3 images are missing in .*images, the first is c.png; they come from y"):
        require_images(ImagesInFolder(folder), ["a.png", "c.png", "d.png", "c.png"], "x", "y")

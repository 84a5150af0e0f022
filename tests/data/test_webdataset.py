"""Data sets in the webdataset format: what is read, what is refused, and that a shard is read once."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import random
import re
import tarfile

import numpy as np
import pytest
import wds_world as world
from torch.utils.data import DataLoader

from testbed.data import file_index
from testbed.data.webdataset import index as webdataset_index
from testbed.data.webdataset.source import WebDataset
from testbed.errors import DataError, SampleError
from testbed.identity.describe import digest_bytes

pytestmark = pytest.mark.usefixtures("own_cache")

CLASSES = "cat\ndog\nowl\n"


@pytest.fixture
def root(tmp_path):
    """Two shards with three and one samples."""
    shards = [world.samples({"s0": b"2", "s1": b"0", "s2": b"1"}), world.samples({"s3": b"2"})]
    return world.write_split(tmp_path / "data", shards, classnames=CLASSES, templates="a {c}\nthe {c}\n")


def refused(root, members, kind="classification", **files):
    """The error of a data set with these members in its only shard."""
    world.write_split(root, [members], dataset_type=kind, **files)
    with pytest.raises(DataError) as caught:
        WebDataset(root)
    return str(caught.value)


# What is read -----------------------------------------------------------------------------------------------------


def test_samples_are_in_the_order_of_their_shards(root):
    source = WebDataset(root, name="wds/pets-test")
    assert source.ids == ["test/s0", "test/s1", "test/s2", "test/s3"]
    assert source.targets == [2, 0, 1, 2]
    assert (source.kind, source.name, len(source), source.num_classes) == ("classification", "wds/pets-test", 4, 3)
    assert source.class_names == ["cat", "dog", "owl"]
    assert source.templates == ["a {c}", "the {c}"]


def test_images_are_read_in_any_order(root):
    source = WebDataset(root)
    for position in (3, 0, 2, 1):
        image = source.image(position)
        assert image.mode == "RGB"
        own = position if position < 3 else 0
        assert np.array_equal(np.asarray(image), world.pixels(own))
        assert source.encoded(position) == world.picture(own)


def test_digests_are_those_of_the_images_bytes(root):
    expected = [digest_bytes(world.picture(number)) for number in (0, 1, 2, 0)]
    assert WebDataset(root).digests([0, 1, 2, 3]) == expected
    assert WebDataset(root).digests([2]) == expected[2:3]


def test_ten_shards_are_in_the_order_of_their_numbers(tmp_path):
    world.write_split(tmp_path, [world.samples({f"s{number}": b"0"}) for number in range(11)])
    assert WebDataset(tmp_path).ids == [f"test/s{number}" for number in range(11)]


def test_blank_class_names_count(tmp_path):
    names = "one\n\nthree\n\n"
    world.write_split(tmp_path, [world.samples({"s": b"3"})], classnames=names)
    assert WebDataset(tmp_path).class_names == ["one", "", "three", ""]


def test_captions_are_not_cut_at_separators_of_unicode(tmp_path):
    text = "a dog\u2028on a hill\u0085today\na \\n cat".encode()
    world.write_split(tmp_path, [world.samples({"s": text, "t": b""}, "txt")], dataset_type="retrieval\n")
    source = WebDataset(tmp_path)
    assert source.targets == [["a dog\u2028on a hill\u0085today", "a \n cat"], []]
    assert (source.kind, source.class_names, source.templates, source.num_classes) == ("retrieval", None, None, None)


def test_several_labels_are_lists_of_classes(tmp_path):
    labels = {"s": world.vector([1, 0, 1]), "t": world.vector([0, 0, 0])}
    world.write_split(tmp_path, [world.samples(labels, "npy")], dataset_type="multilabel\n", classnames=CLASSES)
    source = WebDataset(tmp_path)
    assert source.targets == [[0, 2], []]
    assert source.num_classes == 3


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_archives_of_every_form_are_read(tmp_path, form):
    long = "deep/" * 12 + "n" * (40 if form == tarfile.USTAR_FORMAT else 150) + "é"
    members = [*world.samples({long: b"1", "./s1": b"0"}), ("README.md", b"text"), ("s1.json", b"{}")]
    folder = tarfile.TarInfo("deep")
    folder.type = tarfile.DIRTYPE
    world.write_split(tmp_path, [[]])
    world.write_tar(tmp_path / "test" / "0.tar", [(folder, b""), *members], form)
    source = WebDataset(tmp_path)
    assert source.ids == [f"test/{long}", "test/s1"]
    assert [np.array_equal(source.image(place), world.pixels(place)) for place in (0, 1)] == [True, True]


def test_the_image_is_the_first_known_kind_and_extensions_may_be_capitals(tmp_path):
    members = [
        *[("a.png", world.picture(0)), ("b.png", world.picture(1)), ("b.cls", b"1"), ("a.cls", b"0")],  # not together
        *[("s.JPG", world.picture(0, "jpg")), ("s.PNG", world.picture(1)), ("s.cls", b"0"), ("s.seg.png", b"no image")],
        *[("t.jpeg", world.picture(2, "jpg")), ("t.CLS", b"0")],
        *[("u.cls", b"0"), ("u.png", world.picture(3)), ("u.webp", world.picture(4, "webp"))],
        ("._s.png", b"what macOS adds"),
    ]
    world.write_split(tmp_path, [members])
    source = WebDataset(tmp_path)
    assert (source.ids, source.targets) == ([f"test/{key}" for key in "abstu"], [0, 1, 0, 0, 0])
    assert np.array_equal(np.asarray(source.image(2)), world.pixels(1))
    assert source.encoded(3) == world.picture(2, "jpg")
    assert np.array_equal(np.asarray(source.image(4)), world.pixels(4))


def test_an_unreadable_image_is_a_fault_of_that_sample(tmp_path):
    world.write_split(tmp_path, [[("s.png", b"no image"), ("s.cls", b"0"), *world.samples({"t": b"0"})]])
    source = WebDataset(tmp_path)
    with pytest.raises(SampleError, match=r"test/s in .*0.tar cannot be decoded"):
        source.image(0)
    assert source.image(1).size == (12, 9)


def test_a_source_travels_to_a_process_of_its_own(root):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(world.Arrays(WebDataset(root)).__getitem__, range(4))
    assert np.array_equal(found, [world.pixels(number) for number in (0, 1, 2, 0)])


def test_data_workers_may_be_more_than_shards(tmp_path):
    world.write_split(tmp_path, [world.samples({f"s{number}": b"0" for number in range(5)})])
    loader = DataLoader(world.Arrays(WebDataset(tmp_path)), batch_size=None, num_workers=2)
    assert np.array_equal(list(loader), [world.pixels(number) for number in range(5)])


# Reading once -----------------------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """The shards that are read, by name."""
    seen = []
    real = webdataset_index.read_shard
    monkeypatch.setattr(webdataset_index, "read_shard", lambda path, *more: seen.append(path.name) or real(path, *more))
    return seen


def test_a_second_opening_reads_no_shard(root, reads):
    first = WebDataset(root)
    assert sorted(reads) == ["0.tar", "1.tar"]
    second = WebDataset(root)
    assert sorted(reads) == ["0.tar", "1.tar"]
    for attribute in ("ids", "targets", "class_names", "templates"):
        assert getattr(first, attribute) == getattr(second, attribute)
    assert first.digests(range(4)) == second.digests(range(4))
    assert np.array_equal(np.asarray(second.image(3)), world.pixels(0))


def test_only_a_shard_that_was_changed_is_read_again(root, reads):
    WebDataset(root)
    reads.clear()
    world.write_tar(root / "test" / "1.tar", world.samples({"s3": b"1", "s4": b"0"}))
    assert WebDataset(root).targets == [2, 0, 1, 1, 0]
    assert reads == ["1.tar"]


def test_class_names_are_read_anew(root):
    WebDataset(root)
    (root / "classnames.txt").write_text("a\nb\nc\nd\n")
    assert WebDataset(root).class_names == ["a", "b", "c", "d"]


def test_another_kind_is_another_index(root, reads):
    WebDataset(root)
    (root / "dataset_type.txt").write_text("retrieval")
    with pytest.raises(DataError, match=r"no label \.txt"):
        WebDataset(root)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"revision": 1}', b'{"revision": 0}', b"\xff", "cut off"])
def test_a_damaged_memory_is_not_believed(root, reads, tmp_path, content):
    WebDataset(root)
    for memo in (tmp_path / "cache" / "webdataset").iterdir():
        known = json.loads(memo.read_bytes())
        known["sizes"].pop()  # a column that is too short
        memo.write_bytes(json.dumps(known).encode() if content == "cut off" else content)
    assert WebDataset(root).targets == [2, 0, 1, 2]
    assert len(WebDataset(root).digests(range(4))) == 4
    assert len(reads) == 4


def test_a_shard_that_is_changed_while_it_is_used_is_noticed(root):
    source = WebDataset(root)
    os.utime(root / "test" / "1.tar", ns=(1, 1))
    assert source.image(0).size == (12, 9)
    with pytest.raises(DataError, match=r"1.tar changed during use"):
        source.image(3)
    (root / "test" / "1.tar").unlink()
    with pytest.raises(DataError, match=r"1.tar cannot be read"):
        source.image(3)


def test_nothing_is_unpacked(root, tmp_path):
    before = set(root.rglob("*"))
    source = WebDataset(root)
    source.image(0)
    assert set(root.rglob("*")) == before
    assert {path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()} == {".json"}


# What is refused --------------------------------------------------------------------------------------------------


def test_what_is_missing_is_named(tmp_path, root):
    with pytest.raises(DataError, match=r"the folder .*nowhere does not exist"):
        WebDataset(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"the split 'train' is missing in .*: it has the split test"):
        WebDataset(root, "train")
    (root / "test" / "nshards.txt").unlink()
    with pytest.raises(DataError, match=r"nshards.txt is missing \(the folder has 2 shards.*create it with 2"):
        WebDataset(root)


@pytest.mark.parametrize("split", ["", ".", "..", "../test", "a/b", "a\\b"])
def test_a_split_leads_nowhere_else(root, split):
    with pytest.raises(DataError, match="a split is the name of a folder"):
        WebDataset(root, split)


def test_shards_and_their_number_must_agree(root):
    (root / "test" / "nshards.txt").write_text("4")
    with pytest.raises(DataError, match=r"lacks 2 of the 4 shards .* the first is 2.tar \(it has 2\)"):
        WebDataset(root)
    (root / "test" / "nshards.txt").write_text("1")
    with pytest.raises(DataError, match=r"has 2 shards, but nshards.txt says 1"):
        WebDataset(root)


def test_a_link_to_a_shard_is_followed(root, tmp_path):
    os.replace(root / "test" / "1.tar", tmp_path / "blob")
    (root / "test" / "1.tar").symlink_to(tmp_path / "blob")
    assert np.array_equal(np.asarray(WebDataset(root).image(3)), world.pixels(0))


def test_a_truncated_shard_is_refused_wherever_it_was_cut(tmp_path):
    world.write_split(tmp_path, [world.samples({"s0": b"1", "s1": b"0"})])
    path = tmp_path / "test" / "0.tar"
    whole = path.read_bytes()
    with tarfile.open(path) as archive:
        last = archive.getmembers()[-1]
    end = last.offset_data + -(-last.size // 512) * 512
    for cut in (*range(0, end, 256), end - 1, end, end + 511):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match=r"0.tar is (truncated|damaged)"):
            WebDataset(tmp_path)
    path.write_bytes(whole[: end + 512])  # one block of zeros is an end
    assert len(WebDataset(tmp_path)) == 2


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path):
    world.write_split(tmp_path, [world.samples({"s0": b"1", "s1": b"0"})])
    path = tmp_path / "test" / "0.tar"
    with tarfile.open(path) as archive:
        third = archive.getmembers()[2].offset
    data = bytearray(path.read_bytes())
    data[third + 150] ^= 0xFF  # of the checksum
    path.write_bytes(data)
    with pytest.raises(DataError, match=rf"0.tar is damaged: .* at byte {third:,}, there are trailing bytes"):
        WebDataset(tmp_path)
    path.write_bytes(os.urandom(4096))
    with pytest.raises(DataError, match=r"0.tar is damaged or not a tar archive"):
        WebDataset(tmp_path)


def test_two_archives_put_together_are_refused(tmp_path):
    world.write_split(tmp_path, [world.samples({"s0": b"1"}), world.samples({"s1": b"1"})])
    one, two = (tmp_path / "test" / f"{number}.tar" for number in (0, 1))
    one.write_bytes(one.read_bytes() + two.read_bytes())
    with pytest.raises(DataError, match="two archives put together are not an archive"):
        WebDataset(tmp_path)


def test_a_member_with_a_negative_size_does_not_send_us_round_in_circles(tmp_path):
    world.write_split(tmp_path, [world.samples({"s0": b"1"})])
    path = tmp_path / "test" / "0.tar"
    header = bytearray(world.member("s.png", b"")[0].tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = b"\xff" * 10 + b"\xfc\x00"  # −1024 in base 256
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 256 + sum(header[156:]))
    path.write_bytes(bytes(header) + path.read_bytes())
    with pytest.raises(DataError, match=r"damaged"):
        WebDataset(tmp_path)


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (gzip.compress, r"is compressed \(gzip\).*decompress it"),
        (lambda data: b"BZh9" + data, r"is compressed \(bzip2\).*decompress it"),
        (lambda data: b"\xfd7zXZ\0" + data, r"is compressed \(xz\).*decompress it"),
        (lambda data: LFS, "git lfs pull"),
    ],
)
def test_a_shard_in_another_form_is_refused_with_the_remedy(tmp_path, changed, said):
    world.write_split(tmp_path, [world.samples({"s0": b"1"})])
    path = tmp_path / "test" / "0.tar"
    path.write_bytes(changed(path.read_bytes()))
    with pytest.raises(DataError, match=said):
        WebDataset(tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match=r"0.tar is not a file"):
        WebDataset(tmp_path)


def one(label, extension="cls", **more):
    return world.samples({"s": label, **more}, extension)


SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s.png", "GNU.sparse.realsize": "9"}
OUT = ("/etc/passwd.png", "../s.png", "a/../../s.png", "..\\s.png", "\\s.png", "a/..")
LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE)
DEVICES = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
MULTILABEL = {"kind": "multilabel", "classnames": CLASSES}


def odd(kind):
    return world.member("t.png", b"", type=kind, linkname="/etc/passwd")


@pytest.mark.parametrize(
    ("members", "options", "said"),
    [
        *(([*one(b"0"), (name, b"x")], {}, "is refused: its member .*points outside it") for name in OUT),
        *(([*one(b"0"), odd(kind)], {}, "is refused: its member 't.png' is.*a link") for kind in LINKS),
        *(([*one(b"0"), odd(kind)], {}, r"is refused: its member 't.png' is((?!a link).)*$") for kind in DEVICES),
        ([world.member("s.png", b"0\n".ljust(512, b"\0"), pax_headers=SPARSE)], {}, "'s.png' is not a plain file"),
        ([("s.png", world.picture(0)), ("t.cls", b"0")], {},
         r"sample 's' has no label \.cls, which a classification data set needs; it has \.png"),
        ([("t.cls", b"0")], {}, r"sample 't' has no image \(webp, png, jpg, jpeg\)"),
        (one(b"a dog", "txt"), {}, r"dataset_type\.txt should say retrieval\?"),
        (one(b"cat"), {}, "sample 's': its label is b'cat'"),
        (one(b"0", t=b"3"), {"classnames": CLASSES}, r"sample 't' in .*has the label 3, but classnames\.txt has 3"),
        (one(b"-1"), {}, "has the label -1"),
        (one(world.vector([1, 0]), "npy"), MULTILABEL, r"has labels for 2 classes, but classnames\.txt has 3"),
        (one(world.vector([1, 0]), "npy", t=world.vector([1])), {"kind": "multilabel"},
         "has labels for 1 classes, but others have 2"),
        (one(b"caf\xe9", "txt"), {"kind": "retrieval"}, "its captions are not UTF-8"),
        (one(b"0") * 2, {}, r"has two members s\.cls"),
        ([*one(b"0"), ("./s.PNG", b"x")], {}, r"has two members s\.png"),
        ([("README.md", b"x")], {}, "have no samples"),
    ],
)  # fmt: skip
def test_members_that_do_not_fit_are_refused(tmp_path, members, options, said):
    assert re.search(said, refused(tmp_path, members, **options))


def test_keys_are_unique(tmp_path):
    world.write_split(tmp_path, [world.samples({"s": b"0"}), world.samples({"t": b"0", "s": b"0"})])
    with pytest.raises(DataError, match=r"the key 's' is in .*0.tar and in .*1.tar"):
        WebDataset(tmp_path)


def test_names_that_are_no_text_are_refused(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT, encoding="latin-1") as archive:
        archive.addfile(world.member("caf\xe9.cls", b"0")[0], io.BytesIO(b"0"))
    world.write_split(tmp_path, [[]])
    (tmp_path / "test" / "0.tar").write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match="is not UTF-8"):
        WebDataset(tmp_path)


def test_without_a_place_to_remember_shards_are_read_each_time(root, reads, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_index, "write_atomically", full)
    assert WebDataset(root).targets == WebDataset(root).targets
    assert len(reads) == 4


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_damaged_headers_give_one_kind_of_error(tmp_path, form):
    long = "d/" * 10 + "n" * (90 if form == tarfile.USTAR_FORMAT else 180)
    path = world.write_tar(tmp_path / "0.tar", world.samples({"s0": b"1", long: b"0"}), form)
    whole, rng, refusals = path.read_bytes(), random.Random(0), 0
    headers = [start for start in range(0, len(whole), 512) if whole[start + 257 : start + 262] == b"ustar"]
    for _ in range(200):
        data = bytearray(whole)
        start = rng.choice(headers)
        data[start + rng.randrange(512)] = rng.choice((0, 48, 128, 255))
        data[start + 124] = rng.choice((48, 48, 128, 255))  # sizes of all magnitudes, negative ones too
        checked = sum(data[start : start + 148]) + 256 + sum(data[start + 156 : start + 512])
        data[start + 148 : start + 156] = b"%06o\0 " % checked
        path.write_bytes(data)
        try:
            webdataset_index.read_shard(path, "classification")
        except DataError:
            refusals += 1
    assert 50 < refusals < 200

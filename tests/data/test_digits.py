"""The digits data set: scikit-learn's images and labels, and a split that never changes."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_digits as theirs

from testbed.data.sets import digits
from testbed.data.sets.digits import CLASS_NAMES, Digits, load_digits, split_indices
from testbed.errors import DataError, DefinitionError

BUNCH = theirs()


def fingerprint(source):
    return source.describe_samples(range(len(source))).fingerprint


def test_the_images_are_scikit_learns_in_256_grey_levels():
    images, labels = load_digits()
    assert images.shape == (1797, 8, 8)
    assert images.dtype == np.uint8
    np.testing.assert_array_equal(labels, BUNCH.target)
    expected = np.array([0, 16, 32, 48, 64, 80, 96, 112, 128, 143, 159, 175, 191, 207, 223, 239, 255])
    np.testing.assert_array_equal(images, expected[BUNCH.images.astype(int)])


@pytest.mark.parametrize("damage", ["missing", "cut", "text", "changed"])
def test_digits_are_kept_and_loaded_again_when_what_is_kept_is_damaged(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    images, _ = load_digits.__wrapped__()
    (kept,) = (tmp_path / "digits").iterdir()
    if damage == "missing":
        kept.unlink()
    elif damage == "cut":
        kept.write_bytes(kept.read_bytes()[:1000])
    elif damage == "text":
        kept.write_text("no zip file")
    else:
        np.savez(kept, images=images[::-1], labels=BUNCH.target)
    np.testing.assert_array_equal(load_digits.__wrapped__()[0], images)
    np.testing.assert_array_equal(np.load(kept)["images"], images)


def test_what_is_kept_is_read_without_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    load_digits.__wrapped__()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert len(load_digits.__wrapped__()[0]) == 1797


def test_other_digits_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    monkeypatch.setattr(digits, "_load", lambda: (np.zeros((1797, 8, 8), np.uint8), BUNCH.target))
    with pytest.raises(DataError, match="scikit-learn"):
        load_digits.__wrapped__()
    assert list((tmp_path / "digits").iterdir()) == []


def test_the_splits_are_disjoint_and_cover_everything():
    train, test = set(split_indices("train")), set(split_indices("test"))
    assert not train & test
    assert train | test == set(range(1797))
    assert Counter(Digits("test").targets) == dict.fromkeys(range(10), 54)


def test_the_fingerprints_never_change():
    # Every stored result on the digits hangs on these; a change makes all of them strangers.
    assert fingerprint(Digits("test")) == "0c9d725a45d58b1b77f78d0cdf540f20"
    assert fingerprint(Digits("train")) == "256f02693f91fa07d2beac2ed781ee04"
    assert fingerprint(Digits("test", classes=range(10))) == fingerprint(Digits("test"))
    assert fingerprint(Digits("test", classes=[1, 0])) != fingerprint(Digits("test", classes=[0, 1]))
    assert Digits("test").class_names == list(CLASS_NAMES)


@pytest.mark.parametrize("split", ["train", "test"])
def test_images_ids_and_targets_belong_together(split):
    source = Digits(split)
    assert len(set(source.ids)) == len(source)
    assert source.ids == sorted(source.ids)
    for position in range(0, len(source), 97):
        index = int(source.ids[position].removeprefix("digits/"))
        assert source.targets[position] == BUNCH.target[index]
        image = source.image(position)
        assert (image.mode, image.size) == ("RGB", (8, 8))
        pixels = np.asarray(image)
        np.testing.assert_array_equal(pixels[..., 0], np.rint(BUNCH.images[index] * 255 / 16))
        assert (pixels == pixels[..., :1]).all()


def test_some_classes_in_an_order_of_ones_own():
    source = Digits("test", classes=[7, 1, 4])
    assert len(source) == 3 * 54
    assert source.class_names == ["seven", "one", "four"]
    whole = Digits("test")
    digit = dict(zip(whole.ids, whole.targets, strict=True))
    assert [[7, 1, 4][target] for target in source.targets] == [digit[each] for each in source.ids]
    assert source.ids == [each for each in whole.ids if digit[each] in (7, 1, 4)]


def test_digests_are_equal_for_equal_pixels_alone():
    source = Digits("test")
    digests = source.digests(range(len(source)))
    pixels = [source.pixels[position].tobytes() for position in range(len(source))]
    assert len(set(digests)) == len(set(pixels))
    assert source.digests([5, 3]) == [digests[5], digests[3]]


@pytest.mark.parametrize("split", ["val", "", "Test"])
def test_an_unknown_split_is_refused(split):
    with pytest.raises(DefinitionError, match=rf"'train' and 'test', not '{split}'"):
        Digits(split)

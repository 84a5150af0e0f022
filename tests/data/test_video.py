"""ImageNet-Vid-Robust and YTBB-Robust in their published forms."""

from __future__ import annotations

import json

import imagenet_world
import numpy as np
import pytest

from testbed.data.sets.video import ClassMap, vid_robust, ytbb_robust
from testbed.errors import DataError


@pytest.fixture
def vid(tmp_path, photos):
    imagenet_world.make_vid_robust(tmp_path, photos)
    return tmp_path


@pytest.fixture
def ytbb(tmp_path, photos):
    imagenet_world.make_ytbb_robust(tmp_path, photos)
    return tmp_path


def test_vid_robust_has_each_set_after_its_anchor(vid):
    source = vid_robust(vid, "vid")
    assert source.ids == [
        *("a/000010.JPEG", "a/000009.JPEG", "a/000011.JPEG"),
        *("b/000005.JPEG", "c/000002.JPEG", "c/000001.JPEG"),
    ]
    # The classes 0, 4 and 26 of the videos are the groups 0, 1 and 2.
    assert source.targets == [[1, 2], [1], [2], [0], [2], [2]]
    assert [each["anchor"] for each in source.slices] == [True, False, False, True, True, False]
    assert [each["set"] for each in source.slices] == source.groups
    assert ClassMap(vid).groups == [[404], [7, 8, 9], [33, 34]]
    assert np.asarray(source.image(3)).shape == (40, 40, 3)
    assert len(set(source.digests(range(6)))) == 6


def test_metadata_may_lie_beside_the_frames(vid):
    for path in (vid / "metadata").iterdir():
        path.rename(vid / path.name)
    for folder in (vid / "val").iterdir():
        folder.rename(vid / folder.name)
    (vid / "val").rmdir()
    assert len(vid_robust(vid, "vid")) == 6


def test_ytbb_robust_has_what_its_reviewers_found_good(ytbb):
    source = ytbb_robust(ytbb, "ytbb")
    assert source.ids == [
        *("vid1_100/frame-30.jpg", "vid1_100/frame-29.jpg"),
        *("vid2_200/frame-5.jpg", "vid2_200/frame-6.jpg"),
        "vid5_500/frame-2.jpg",
    ]
    # bird; cat, as a reviewer added, and car, which the list calls 22; a skateboard, which ImageNet has not
    assert source.targets == [[0], [0], [1, 2], [1, 2], []]
    assert source.class_names == ["bird", "cat", "car"]


@pytest.mark.parametrize("name", ["pmsets.json", "labels.json", "rev_class_idx_map.json"])
def test_metadata_that_are_missing_or_damaged_are_named(vid, name):
    path = vid / "metadata" / name
    path.write_text("{")
    with pytest.raises(DataError, match=rf"{name} is not valid JSON"):
        vid_robust(vid, "vid")
    path.unlink()
    with pytest.raises(DataError, match=rf"{name} is missing: it should be in .*metadata"):
        vid_robust(vid, "vid")


def test_missing_frames_are_counted(vid):
    (vid / "val" / "b" / "000005.JPEG").unlink()
    with pytest.raises(DataError, match=r"1 of the 6 frames.*the first is b/000005.JPEG"):
        vid_robust(vid, "vid")


def test_a_frame_without_labels_is_named(vid):
    labels = json.loads((vid / "metadata" / "labels.json").read_text())
    del labels["val/c/000001.JPEG"]
    (vid / "metadata" / "labels.json").write_text(json.dumps(labels))
    with pytest.raises(DataError, match=r"labels.json lacks the frame c/000001.JPEG"):
        vid_robust(vid, "vid")


def test_an_anchor_without_a_class_is_named(ytbb):
    path = ytbb / "ytbb_robustness_test_anchors_full.csv"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("vid2")))
    with pytest.raises(DataError, match=r"no class for vid2_200/frame-5.jpg"):
        ytbb_robust(ytbb, "ytbb")


def test_a_frame_of_several_sets_is_refused(vid):
    sets = json.loads((vid / "metadata" / "pmsets.json").read_text())
    sets["val/b/000005.JPEG"] = ["val/a/000009.JPEG"]
    (vid / "metadata" / "pmsets.json").write_text(json.dumps(sets))
    with pytest.raises(DataError, match="several sets"):
        vid_robust(vid, "vid")

"""ImageNet-O and the images that it is told from."""

from __future__ import annotations

import imagenet_world
import numpy as np
import pytest

from testbed.data.formats.image_folder import ImageFolder
from testbed.data.sets.imagenet import ImageNetFolder, synsets
from testbed.data.sets.imagenet_o import imagenet_o, read_classes
from testbed.errors import DataError

VAL = [0, 1, 395, 500, 988]  # a val of five classes; a target is the place among them


@pytest.fixture
def folders(tmp_path, photos):
    """ImageNet-O, and a validation set whose targets are ImageNet's numbers."""
    imagenet_world.make_imagenet_o(tmp_path / "imagenet-o", photos)
    imagenet_world.make_classes(tmp_path / "val", [synsets()[label] for label in VAL], photos, "v{number}.JPEG")
    val = ImageNetFolder(tmp_path / "val", "val", VAL)
    val.targets = [VAL[place] for place in val.targets]
    val.class_names = list(synsets())
    return tmp_path / "imagenet-o", val


def test_its_images_come_first_and_then_those_of_its_classes(folders):
    root, val = folders
    source = imagenet_o(root, "imagenet-o", val)
    assert read_classes(root, "imagenet-o") == [1, 395, 988]
    assert source.ids[0] == f"imagenet-o/{synsets()[1]}/0.JPEG"
    assert source.ids[5:] == [
        f"val/{synsets()[1]}/v2.JPEG",
        f"val/{synsets()[395]}/v3.JPEG",
        f"val/{synsets()[988]}/v5.JPEG",
    ]
    assert source.targets == [-1] * 5 + [0, 1, 2]
    assert source.class_names == [synsets()[label] for label in (1, 395, 988)]


def test_images_and_digests_are_those_of_the_parts(folders):
    root, val = folders
    source, first = imagenet_o(root, "imagenet-o", val), ImageFolder(root, "imagenet-o")
    np.testing.assert_array_equal(source.image(4), first.image(4))
    np.testing.assert_array_equal(source.image(6), val.image(2))
    assert source.digests([6, 0, 5, 4]) == [
        *val.digests([2]),
        *first.digests([0]),
        *val.digests([1]),
        *first.digests([4]),
    ]


def test_folders_that_are_no_classes_are_refused(folders):
    root, _ = folders
    (root / "n99999999").mkdir()
    with pytest.raises(DataError, match=r"WordNet ids.*1 of 4 are not, the first is n99999999"):
        read_classes(root, "imagenet-o")
    with pytest.raises(DataError, match=r"natural-adv-examples; there are none"):
        read_classes(root / "missing", "imagenet-o")

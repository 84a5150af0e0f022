"""Hard ImageNet: the validation images of ImageNet for which its authors publish a segmentation of the object."""

from __future__ import annotations

from pathlib import Path

from testbed.data.formats.image_folder import image_files
from testbed.data.formats.image_lists import ListedImages
from testbed.data.left_out import LeftOutLog
from testbed.data.sets.imagenet import synsets
from testbed.errors import DataError

ARCHIVE = "hardImageNet.zip of https://github.com/mmoayeri/HardImageNet"


def hard_imagenet(masks: Path, images: Path, name: str) -> ListedImages:
    """The images that have a mask; the target is one of ImageNet's 1,000 classes.

    Args:
        masks: The folder of the masks. ``<WordNet id>_<file name>`` is the mask of ``<WordNet id>/<file name>``.
        images: ImageNet's validation images, with a folder for each class, named by its WordNet id.
        name: The data set's name, for messages.

    Raises:
        DataError: If a folder is missing, or has no masks, or a mask's name is not of this form.
    """
    for folder, content in ((masks, f"the masks in val/ of {ARCHIVE}"), (images, "ImageNet's validation images")):
        if not folder.is_dir():
            raise DataError(f"data set {name!r}: the folder {folder} does not exist; it should hold {content}")
    leaving = LeftOutLog()
    labels = {wnid: label for label, wnid in enumerate(synsets())}
    parts = [mask.partition("_") for mask in sorted(image_files(masks, leaving))]
    unknown = next(("".join(part) for part in parts if part[0] not in labels or not part[2]), None)
    if unknown is not None or not parts:
        found = f"the file {unknown} is named otherwise" if parts else "it has no images"
        raise DataError(
            f"data set {name!r}: {masks} should hold masks named <WordNet id>_<file name>, from {ARCHIVE}; {found}"
        )
    files = [f"{wnid}/{file}" for wnid, _, file in parts]
    source = ListedImages(images, name, files, [labels[wnid] for wnid, _, _ in parts], None)
    source.left_out = leaving.found()
    return source

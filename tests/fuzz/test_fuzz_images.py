"""Archives and arrays of images: zip files, and PatchCamelyon's HDF5 files."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import TOKENS, fuzzed, mangled_bytes, robust, trial
from hypothesis import given
from hypothesis import strategies as st
from table_world import photo

from testbed.data.formats.image_lists import HDF5Images
from testbed.data.formats.image_store import ImagesInZip
from testbed.errors import DataError

NAMES = ("a.png", "x/b.png", "images/c.png")
ODD_NAMES = (*NAMES, "../secret.png", "/etc/passwd", "", ".", "x", "x/", *(name for name in TOKENS if len(name) < 400))


def archive(*names: str, method: int = zipfile.ZIP_DEFLATED, mode: int = 0) -> bytes:
    """A zip archive with a photo under each name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as written:
        for name in names:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.external_attr = method, mode << 16
            written.writestr(info, photo("coffee", 4))
    return file.getvalue()


ARCHIVES = (
    *(archive(*NAMES, method=method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)),
    archive("a.png", mode=0o120777),
    archive("../a.png", "/b.png", "a.png"),
)


@fuzzed()
@given(content=mangled_bytes(*ARCHIVES), names=st.lists(st.sampled_from(ODD_NAMES), max_size=4))
def test_zip_archives(content: bytes, names: list[str], tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "secret.png").write_bytes(photo("rocket"))
        path = folder / "inner" / "images.zip"
        path.parent.mkdir()
        path.write_bytes(content)
        images = ImagesInZip(path)
        for name in (*NAMES, *names):
            with robust(folder):
                images.missing([name])
                images.digests([name])
                assert images.encoded(name) != photo("rocket")
                images.image(name)


# HDF5 -----------------------------------------------------------------------------------------------------------------


def hdf5(folder: Path, **arrays: Any) -> bytes:
    """An HDF5 file."""
    import h5py

    path = folder / "made.h5"
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            if callable(values):
                values(file, name)
            else:
                file[name] = values
    content = path.read_bytes()
    path.unlink()
    return content


PIXELS = np.arange(3 * 4 * 5 * 3, dtype=np.uint8).reshape(3, 4, 5, 3)
LABELS = np.array([0, 1, 1]).reshape(3, 1, 1, 1)
ODD_ARRAYS = (PIXELS, LABELS, PIXELS.astype(float), np.array([np.nan, np.inf, 1]), np.float32(1), "text", PIXELS[:0])
ODD_ARRAYS += (PIXELS[..., :2], np.zeros((3, 0, 0, 3), np.uint8), np.array([1, 2], dtype=object).astype("S3"))


def read_all(folder: Path, images: bytes, labels: bytes) -> None:
    (folder / "x.h5").write_bytes(images)
    (folder / "y.h5").write_bytes(labels)
    source = HDF5Images(folder / "x.h5", folder / "y.h5", "pcam", "test")
    for position in range(len(source.ids)):
        with robust(folder):
            source.digests([position])
            source.image(position)


@fuzzed()
@given(pixels=st.sampled_from(ODD_ARRAYS), labels=st.sampled_from(ODD_ARRAYS), named=st.booleans())
def test_arrays_of_other_kinds(pixels: Any, labels: Any, named: bool, tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="testbed[h5] is not here")
    with trial(tmp_path) as folder:
        images = hdf5(folder, **{"x" if named else "z": pixels})
        read_all(folder, images, hdf5(folder, y=labels))


@pytest.mark.parametrize("way", ["link", "raw bytes", "virtual", "group"])
def test_other_files_are_not_read(way: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="testbed[h5] is not here")
    other = tmp_path / "other.h5"
    other.write_bytes(hdf5(tmp_path, x=PIXELS))

    def elsewhere(file: Any, name: str) -> None:
        if way == "link":
            file[name] = h5py.ExternalLink(str(other), "x")
        elif way == "raw bytes":
            file.create_dataset(name, PIXELS.shape, np.uint8, external=[(str(other), 0, PIXELS.nbytes)])
        elif way == "virtual":
            layout = h5py.VirtualLayout(PIXELS.shape, np.uint8)
            layout[:] = h5py.VirtualSource(str(other), "x", PIXELS.shape)
            file.create_virtual_dataset(name, layout)
        else:
            file.create_group(name)

    with pytest.raises(DataError, match="x is not an array in the file itself"):
        read_all(tmp_path, hdf5(tmp_path, x=elsewhere), hdf5(tmp_path, y=LABELS))

"""Content decides what a checkpoint file is, never its name; what is no checkpoint is named, with what to do."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from testbed.errors import WeightsError
from testbed.models.base.weights import LocalFiles
from testbed.models.loading.checkpoint_file import load_state_dict, open_checkpoint

STATE = {"weight": torch.arange(600.0).reshape(2, 300), "bias": torch.ones(2)}
Write = Callable[[Path], Any]


def as_torch(path: Path) -> None:
    torch.save(STATE, path)


def as_legacy(path: Path) -> None:
    torch.save(STATE, path, _use_new_zipfile_serialization=False)


def as_safetensors(path: Path) -> None:
    save_file(STATE, path)


@pytest.mark.parametrize("name", ["w.pth", "w.safetensors", "w.bin", "w.tar", "w.ckpt", "w.onnx", "weights"])
@pytest.mark.parametrize("write", [as_torch, as_legacy, as_safetensors])
@pytest.mark.parametrize("content", [True, False])
def test_each_format_is_read_under_any_name(tmp_path: Path, name: str, write: Write, content: bool) -> None:
    write(tmp_path / name)
    found = open_checkpoint(tmp_path / name, content)
    assert {key: value.shape for key, value in found.items()} == {key: value.shape for key, value in STATE.items()}
    if content:
        assert all(torch.equal(value, STATE[key]) for key, value in found.items())


def cut(write: Write, share: float = 0.5) -> Write:
    def damaged(path: Path) -> None:
        write(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    return damaged


def said(content: bytes | str) -> Write:
    return lambda path: path.write_bytes(content.encode() if isinstance(content, str) else content)


def packed() -> bytes:
    buffer = io.BytesIO()
    torch.save(STATE, buffer)
    return buffer.getvalue()


def in_zip(name: str, content: bytes) -> Write:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, content)

    return write


def in_tar(*names: str) -> Write:
    def write(path: Path) -> None:
        with tarfile.open(path, "w") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name))

    return write


def scripted(path: Path) -> None:
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), path)


def exported(path: Path) -> None:
    """torch.export insists on its suffix."""
    torch.export.save(torch.export.export(nn.Linear(2, 2), (torch.zeros(1, 2),)), path.with_suffix(".pt2"))
    if path.suffix != ".pt2":
        shutil.move(path.with_suffix(".pt2"), path)


KINDS: dict[str, tuple[Write, str]] = {
    "safetensors, cut": (cut(as_safetensors), "a safetensors file that is damaged or cut off: it has"),
    "safetensors, cut in its header": (cut(as_safetensors, 0.01), "a safetensors file that is damaged or cut off"),
    "safetensors, another header": (said((40).to_bytes(8, "little") + b"{" + b"x" * 60), "whose header is damaged"),
    "torch, cut": (cut(as_torch), "damaged, or was not written to its end"),
    "torch, its last bytes missing": (cut(as_torch, 0.98), "damaged, or was not written to its end"),
    "torch before 1.6, cut": (cut(as_legacy), "before version 1.6) that is damaged or cut off"),
    "torch before 0.1.10": (in_tar("sys_info", "pickle", "storages", "tensors"), "the TAR format that torch.save had"),
    "TAR": (in_tar("best.pth", "last.pth"), "a TAR archive of best.pth and 1 more; unpack it"),
    "ZIP": (
        in_zip("model/best.pth", packed()),
        "a ZIP archive that torch.save did not write, of model/best.pth; unpack",
    ),
    "gzip": (said(gzip.compress(packed())), "a gzip archive; unpack it"),
    "xz": (said(b"\xfd7zXZ\x00" + bytes(9)), "an xz archive; unpack it"),
    "TorchScript": (scripted, "a TorchScript archive, a program; evaluate it by its path alone"),
    "ONNX": (said(b"\x08\x08\x12\x07pytorch\x1a\x032.1" + bytes(range(90))), "an ONNX program, not weights"),
    "SavedModel": (said(b"\x08\x01\x12\xb4\x10" + bytes(90)), "a graph that TensorFlow saved (SavedModel)"),
    "TensorFlow Lite": (said(b"\x1c\x00\x00\x00TFL3" + bytes(30)), "a TensorFlow Lite program"),
    "TensorFlow's index": (
        said(bytes(90) + b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"),
        "the index of a TensorFlow checkpoint",
    ),
    "Flax": (said(b"\x81\xa6params\x82\xa3foo\xc7\x10"), "a MessagePack file, as Flax writes them"),
    "Keras": (said(b"\x89HDF\r\n\x1a\n" + bytes(99)), "an HDF5 file, as Keras writes them"),
    "NumPy": (lambda path: np.savez(path.open("wb"), a=np.zeros(3)), "an archive of NumPy arrays (.npz)"),
    "Git LFS": (said("version https://git-lfs.github.com/spec/v1\noid sha256:ab\n"), "a Git LFS pointer"),
    "HTML": (said("\n <!DOCTYPE html>\n<html><title>Sign in</title>"), "an HTML page instead of the file"),
    "HTML, long": (said("<html>" + "ü" * 999), "an HTML page instead of the file"),
    "XML": (said('<?xml version="1.0"?><Error><Code>AccessDenied</Code>'), "an XML document instead of the file"),
    "JSON": (said('{"error": "Repository not found"}'), "a JSON file, not weights; it has the entries 'error'"),
    "an index of shards": (
        said(json.dumps({"weight_map": {"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"}})),
        "the index of a sharded checkpoint of 2 files (m-00001-of-00002.safetensors and 1 more), not weights; join",
    ),
    "text": (said("epoch 3\n"), "a text that begins with 'epoch 3'"),
    "a picture": (said(b"\x89PNG\r\n\x1a\n" + bytes(50)), "a PNG image"),
    "empty": (said(b""), "the file is empty"),
    "noise": (said(bytes(range(200, 256))), "neither a file of torch.save nor of safetensors"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["w.pth", "w.safetensors"])
def test_what_is_no_checkpoint_is_named_by_its_content(tmp_path: Path, kind: str, name: str) -> None:
    write, words = KINDS[kind]
    write(tmp_path / name)
    for content in (True, False):
        with pytest.raises(WeightsError) as caught:
            open_checkpoint(tmp_path / name, content)
        assert words in str(caught.value)
        assert str(tmp_path / name) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_an_exported_program_is_named_under_any_name(tmp_path: Path) -> None:
    for name in ("net.pt2", "w.pth", "w.safetensors"):
        exported(tmp_path / name)
        with pytest.raises(
            WeightsError, match=r"a program that torch\.export saved \(\.pt2\), not weights; evaluate it by"
        ):
            load_state_dict(tmp_path / name)


def test_a_folder_is_named_with_the_checkpoint_in_it(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"is a folder without checkpoint files$"):
        load_state_dict(tmp_path)
    as_safetensors(tmp_path / "model.safetensors")
    with pytest.raises(WeightsError, match=r"is a folder; name a file in it, such as .*model\.safetensors$"):
        load_state_dict(tmp_path)
    with pytest.raises(WeightsError, match=r"is a folder; name a file in it"):  # asked before any is opened
        LocalFiles((tmp_path,)).files(False)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(WeightsError, match=r"parts of a sharded checkpoint \(model\.safetensors\.index\.json\): join"):
        load_state_dict(tmp_path)
    (tmp_path / ".metadata").write_bytes(b"\x80\x02")
    with pytest.raises(WeightsError, match=r"of torch\.distributed\.checkpoint; .* dcp_to_torch"):
        LocalFiles((tmp_path,)).files(False)


def test_arrays_of_numpy_are_named_as_such(tmp_path: Path) -> None:
    torch.save({"weight": np.zeros(3)}, tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=r"'weight'; its values are numpy arrays: save tensors"):
        load_state_dict(tmp_path / "w.pth")


def test_a_part_of_a_sharded_checkpoint_is_recognised(tmp_path: Path) -> None:
    from testbed.models.loading.checkpoint_network import load_checkpoint

    for name in ("model-00001-of-00003.safetensors", "pytorch_model-00001-of-00003.bin"):
        (as_safetensors if name.startswith("model") else as_torch)(tmp_path / name)
        with pytest.raises(WeightsError, match="it is part 1 of 3 of a sharded checkpoint; join the parts"):
            load_checkpoint("timm/test_resnet", tmp_path / name)

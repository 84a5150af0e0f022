"""Programs in files as models: torch.export, TorchScript, ONNX; against torch by itself."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_models import MEAN, SIDE, STD, WHOLE, logits_by_hand, network, pictures, stored_logits

import testbed

needs_onnx = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("onnxscript") is None,
    reason="needs onnxruntime and onnxscript",
)
BATCH = torch.zeros(5, 3, SIDE, SIDE)
ANY = ({0: torch.export.Dim("batch")},)
GIVEN = {"mean": MEAN, "std": STD}


class Last(torch.nn.Module):
    """A network that takes its channels last, as those of TensorFlow do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.inner(images.permute(0, 3, 1, 2))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures and programs."""
    folder = tmp_path_factory.mktemp("programs")
    pictures(folder / "mine")
    torch.export.save(torch.export.export(network(), (BATCH,)), folder / "fixed.pt2")
    torch.export.save(torch.export.export(network(), (BATCH,), dynamic_shapes=ANY), folder / "free.pt2")
    shutil.copy(folder / "free.pt2", folder / "renamed.bin")
    torch.jit.save(torch.jit.trace(network(), BATCH), folder / "script.pt")
    torch.save(network().state_dict(), folder / "weights.pt2")
    (folder / "text.onnx").write_text("<html>not found</html>")
    if importlib.util.find_spec("onnxscript") is not None:
        torch.onnx.export(network(), (BATCH,), folder / "fixed.onnx", dynamo=True, external_data=False)
        torch.onnx.export(network(), (BATCH,), folder / "free.onnx", dynamo=True, dynamic_shapes=ANY)
        torch.onnx.export(Last(), (torch.zeros(1, SIDE, SIDE, 3),), folder / "last.onnx", dynamo=True)
        shutil.copy(folder / "fixed.onnx", folder / "anything")
    return folder


@pytest.fixture
def evaluate(made: Path, tmp_path: Path) -> Any:
    """A function that evaluates a model on the pictures; returns the results and, if it ran, their logits."""

    def call(model: Any, **options: Any) -> Any:
        db = str(tmp_path / "testbed.db")
        found = testbed.evaluate(model, made / "mine", db=db, executor="inline", progress=False, **options)
        return found, stored_logits(found, db) if found.failed.empty else None

    return call


def expected(made: Path) -> torch.Tensor:
    return logits_by_hand(network(), sorted((made / "mine").glob("*/*.png")))


ONNX_FILES = [
    pytest.param(f"{name}", marks=needs_onnx) for name in ("fixed.onnx", "free.onnx", "last.onnx", "anything")
]


@pytest.mark.parametrize("file", ["fixed.pt2", "free.pt2", "renamed.bin", *ONNX_FILES])
def test_a_program_gives_the_logits_that_its_network_gives(evaluate, made, file):
    found, logits = evaluate(str(made / file), **GIVEN)
    assert np.allclose(logits, expected(made), atol=1e-5), found.failed.reason.tolist()
    assert found.frame.model.iloc[0] == Path(file).stem
    assert f"the input of {SIDE} pixels" in found.preprocessing[0]


@pytest.mark.parametrize("file", ["fixed.pt2", pytest.param("free.onnx", marks=needs_onnx)])
def test_a_program_with_a_transform(evaluate, made, file):
    found, logits = evaluate(made / file, transform=WHOLE, name="held-in-a-file")
    assert np.allclose(logits, expected(made), atol=1e-5)
    assert set(found.frame.model) == {"held-in-a-file"}


def test_an_exported_program_in_memory(evaluate, made):
    program = torch.export.load(made / "free.pt2")
    assert np.allclose(evaluate(program, transform=WHOLE)[1], expected(made), atol=1e-5)


def test_torchscript_is_loaded_only_if_the_user_trusts_the_file(evaluate, made, monkeypatch):
    path = made / "script.pt"
    (reason,) = evaluate(path, image_size=SIDE, **GIVEN)[0].failed.reason
    assert "is a TorchScript program, which is not loaded unless you trust it" in reason
    assert f"TESTBED_TRUST_REMOTE_CODE={path}" in reason
    monkeypatch.setenv("TESTBED_TRUST_REMOTE_CODE", str(path))
    assert np.allclose(evaluate(path, image_size=SIDE, **GIVEN)[1], expected(made), atol=1e-5)


def test_a_scripted_network_in_memory(evaluate, made):
    net = torch.jit.load(made / "script.pt")
    first, logits = evaluate(net, transform=WHOLE)
    assert np.allclose(logits, expected(made), atol=1e-5)
    assert set(evaluate(net, transform=WHOLE)[0].frame.model) == set(first.frame.model)


@pytest.mark.parametrize(
    ("file", "options", "said"),
    [
        ("free.pt2", {}, "an exported program does not say how images are normalized; give --mean"),
        ("free.pt2", {**GIVEN, "image_size": 48}, "takes images of 32 pixels, so the crop cannot be 48"),
        ("free.pt2", {"mean": MEAN}, "its preprocessing is incomplete: --std missing"),
        ("weights.pt2", GIVEN, "should be an exported program, by its name; its content is not"),
        ("nothing.pt2", GIVEN, "nothing.pt2 does not exist"),
        ("nothing.onnx", GIVEN, "nothing.onnx does not exist"),
        pytest.param("text.onnx", GIVEN, "cannot be read as an ONNX graph", marks=needs_onnx),
        pytest.param("fixed.onnx", {}, "an ONNX graph does not say how images are normalized", marks=needs_onnx),
    ],
)
def test_what_is_missing_is_said_before_anything_is_computed(evaluate, made, file, options, said):
    (reason,) = evaluate(str(made / file), **options)[0].failed.reason
    assert said in reason
    assert "\n" not in reason


@needs_onnx
def test_numbers_beside_an_onnx_graph_belong_to_it(evaluate, made, tmp_path):
    for name in ("free.onnx", "free.onnx.data"):
        shutil.copy(made / name, tmp_path)
    first, _ = evaluate(tmp_path / "free.onnx", name="beside", **GIVEN)
    content = bytearray((tmp_path / "free.onnx.data").read_bytes())
    content[-1] ^= 1
    (tmp_path / "free.onnx.data").write_bytes(content)
    second, _ = evaluate(tmp_path / "free.onnx", **GIVEN)
    assert set(first.frame.evaluation) != set(second.frame.evaluation)
    (tmp_path / "free.onnx.data").unlink()
    (reason,) = evaluate(tmp_path / "free.onnx", **GIVEN)[0].failed.reason
    assert "keeps numbers in the file" in reason


def test_an_absent_onnxruntime_names_the_extra(evaluate, made, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (reason,) = evaluate(made / "text.onnx", **GIVEN)[0].failed.reason
    assert "needs the package onnxruntime: pip install -e '.[onnx]'" in reason

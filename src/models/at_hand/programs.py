"""Programs in files as networks: ONNX graphs by onnxruntime, programs of torch.export, TorchScript."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from testbed.errors import MissingExtraError, WeightsError
from testbed.models.at_hand.program_file import refuse_objects
from testbed.models.base.outputs import logits_in
from testbed.models.base.weights import only_weights

CHANNELS = 3
NUMPY_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64"}


@dataclass(frozen=True)
class Facts:
    """A program's declarations of its images and its logits; None where it has none, or takes any.

    Attributes:
        side: Side of its images (pixels).
        batch: Images of a batch.
        classes: The number of logits.
        channels_last: True if images are [B, H, W, 3].
    """

    side: int | None = None
    batch: int | None = None
    classes: int | None = None
    channels_last: bool = False


def in_batches(images: torch.Tensor, size: int | None, run: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The outputs for images [B, …] of a program that takes batches of one size; None for one that takes any."""
    if size is None or len(images) == size:
        return run(images)
    parts = []
    for start in range(0, len(images), size):
        part = images[start : start + size]
        full = part if len(part) == size else torch.cat([part, part[-1:].expand(size - len(part), *part.shape[1:])])
        parts.append(run(full)[: len(part)])
    return torch.cat(parts)


def facts_of(shape: Sequence[Any], output: Sequence[Any] | None, what: str) -> Facts:
    """The facts in the shapes of a program's input and output; numbers are fixed, anything else is free.

    Raises:
        WeightsError: If the input is not a batch of images with three channels.
    """
    sizes = [size if isinstance(size, int) and size > 0 else None for size in shape]
    last = len(sizes) == 4 and sizes[3] == CHANNELS and sizes[1] != CHANNELS
    channels, *sides = [sizes[3], *sizes[1:3]] if last else sizes[1:] or [None]
    if len(sizes) != 4 or channels not in (CHANNELS, None):
        raise WeightsError(f"{what} takes an input of shape {list(shape)}; [batch, 3, height, width] is expected")
    if None not in sides and sides[0] != sides[1]:
        raise WeightsError(f"{what} takes images of {sides[0]} × {sides[1]} pixels; squares are expected")
    classes = output[1] if output is not None and len(output) == 2 and isinstance(output[1], int) else None
    return Facts(sides[0] or sides[1], sizes[0], classes, last)


# ONNX --------------------------------------------------------------------------------------------------------------


class OnnxNetwork:
    """An ONNX graph as a function from images to logits; it gives no gradients.

    Args:
        device: Such as ``"cpu"`` or ``"cuda:0"``; a GPU is used where onnxruntime has been built for it.

    Raises:
        WeightsError: If it cannot be read, or does not classify images.
    """

    def __init__(self, path: Path, device: str = "cpu") -> None:
        if importlib.util.find_spec("onnxruntime") is None:
            raise MissingExtraError("onnxruntime", "onnx", str(path))
        import onnxruntime

        if not path.is_file():
            raise WeightsError(f"the file {path} does not exist")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        providers: list[Any] = ["CPUExecutionProvider"]
        if device.startswith("cuda") and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            providers.insert(0, ("CUDAExecutionProvider", {"device_id": torch.device(device).index or 0}))
        try:
            self.session = onnxruntime.InferenceSession(path, options, providers=providers)
        except Exception as error:
            raise WeightsError(f"{path} cannot be read as an ONNX graph: {str(error).splitlines()[0]:.300}") from error
        self.input, self.output = self._one_input(path), self._one_output(path)
        self.facts = facts_of(self.input.shape, self.output.shape, f"the ONNX graph {path}")

    def _one_input(self, path: Path) -> Any:
        inputs = self.session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in NUMPY_TYPES:
            told = ", ".join(f"{argument.name} ({argument.type})" for argument in inputs)
            raise WeightsError(f"the ONNX graph {path} takes {told}; one batch of images of float numbers is expected")
        return inputs[0]

    def _one_output(self, path: Path) -> Any:
        outputs = self.session.get_outputs()
        named = [output for output in outputs if output.name == "logits"]
        fitting = named or [output for output in outputs if len(output.shape or ()) == 2]
        if len(fitting) != 1:
            told = ", ".join(f"{output.name} {output.shape}" for output in outputs)
            raise WeightsError(f"the ONNX graph {path} gives {told}; one output of logits [batch, classes] is expected")
        return fitting[0]

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Maps normalized images [B, 3, H, W] to logits [B, C]."""
        return in_batches(images, self.facts.batch, self._run)

    def _run(self, images: torch.Tensor) -> torch.Tensor:
        rows = images.permute(0, 2, 3, 1) if self.facts.channels_last else images
        fed = rows.detach().cpu().contiguous().numpy().astype(NUMPY_TYPES[self.input.type], copy=False)
        (logits,) = self.session.run([self.output.name], {self.input.name: fed})
        return torch.from_numpy(logits).float().to(images.device)


@lru_cache(maxsize=64)
def _onnx_facts(path: Path, modified: int, size: int) -> Facts:
    return OnnxNetwork(path).facts


def onnx_facts(path: Path) -> Facts:
    """Returns the declared input and output of an ONNX graph.

    Raises:
        WeightsError: As `OnnxNetwork`.
    """
    if not path.is_file():
        raise WeightsError(f"the file {path} does not exist")
    stamp = os.stat(path)
    return _onnx_facts(path, stamp.st_mtime_ns, stamp.st_size)


# torch ------------------------------------------------------------------------------------------------------------


class TorchProgram(nn.Module):
    """A program of torch.export or TorchScript as a network.

    Args:
        program: The module that computes it.
        batch: Images of a batch, if the program takes batches of that size alone.
    """

    def __init__(self, program: nn.Module, batch: int | None = None) -> None:
        super().__init__()
        self.program = program
        self.batch = batch

    def train(self, mode: bool = True) -> TorchProgram:
        """Does nothing to an exported program, which has no modes."""
        self.training = mode
        if isinstance(self.program, torch.jit.ScriptModule):
            self.program.train(mode)
        return self

    def forward(self, images: torch.Tensor) -> Any:
        """Maps normalized images [B, 3, H, W] to logits [B, C]."""
        return in_batches(images, self.batch, lambda part: logits_in(self.program(part)))


def exported_network(program: Any, what: str) -> tuple[TorchProgram, Facts]:
    """Loads a program of torch.export as a network, with its declared input and output.

    Raises:
        WeightsError: If it does not take one batch of images.
    """
    names = set(program.graph_signature.user_inputs)
    inputs = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    if len(inputs) != 1 or not isinstance(inputs[0], torch.Tensor):
        raise WeightsError(f"{what} takes {len(inputs)} inputs; one batch of images is expected")
    outputs = {node.name: node.meta.get("val") for node in program.graph.nodes}
    given = [outputs.get(str(name)) for name in program.graph_signature.user_outputs]
    logits = given[0].shape if len(given) == 1 and isinstance(given[0], torch.Tensor) else None
    facts = facts_of(inputs[0].shape, logits, what)
    # Guards of the file are code in it; those of shapes follow from the facts.
    return TorchProgram(program.module(check_guards=False), facts.batch), facts


def load_exported(path: Path) -> tuple[TorchProgram, Facts]:
    """The network of a file that torch.export.save wrote.

    Raises:
        WeightsError: If it holds more than tensors and a graph, or does not take images.
    """
    refuse_objects(path)
    with only_weights(), open(path, "rb") as file:
        program = torch.export.load(file)
    return exported_network(program, f"the exported program {path}")


@lru_cache(maxsize=8)
def _exported_facts(path: Path, modified: int, size: int) -> Facts:
    return load_exported(path)[1]


def exported_facts(path: Path) -> Facts:
    """Returns the declared input and output of an exported program.

    Raises:
        WeightsError: As `load_exported`.
    """
    stamp = os.stat(path)
    return _exported_facts(path, stamp.st_mtime_ns, stamp.st_size)


def load_script(path: Path) -> TorchProgram:
    """The network of a TorchScript file, whose program is read from the file."""
    loaded: Any = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    return TorchProgram(loaded)

"""Programs in files, by their paths: ``model.onnx`` (onnxruntime), ``net.pt2`` (torch.export), TorchScript.

The content decides the kind of a file. None of them defines how images are normalized, so an option is required:
``testbed run model.onnx --on FOLDER --mean 0.485 0.456 0.406 --std 0.229 0.224 0.225``; the size of the images is the
program's own, if it has one. TorchScript is loaded only if the user trusts the file, because its program could do
anything that torch's operations can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError, WeightsError
from testbed.inputs import ENV_TRUST_CODE, active
from testbed.models.at_hand.preprocessing import Preparation, of_options
from testbed.models.at_hand.program_file import EXPORTED, ONNX, SCRIPT, SUFFIXES, external_files, kind_of
from testbed.models.base.class_order import ClassOrder, asked
from testbed.models.base.definition import LoadOptions
from testbed.models.base.weights import loading
from testbed.models.loading.hub_folder import trusted_by_user
from testbed.models.model_base import Model
from testbed.paths import expanded, is_file
from testbed.registry import registry

if TYPE_CHECKING:
    from testbed.models.at_hand.programs import Facts
    from testbed.models.base.runtime import LoadedClassifier

EVAL_BATCH_SIZE = 64


@dataclass(frozen=True)
class ProgramFiles:
    """A program's file, and those that hold numbers of it."""

    path: Path

    def files(self, fetch: bool) -> Sequence[Path]:
        """The files."""
        if not self.path.is_file():
            raise WeightsError(f"the file {self.path} does not exist")
        return [self.path, *(external_files(self.path) if kind_of(self.path) == ONNX else ())]


class ProgramModel(Model):
    """A classifier whose program lies in a file.

    Args:
        name: Unique in the registry.
        prepared: The preparation of images; None for the run's options.

    Raises:
        WeightsError: If the file does not exist, is not a program, or is not trusted.
        DefinitionError: If the preparation of images is not defined.
    """

    def __init__(self, name: str, path: Path, prepared: Preparation | None = None) -> None:
        kind, facts = _look_at(path)
        prepared = prepared or of_options(active().preprocessing, str(path), facts.side)
        if prepared is None:
            size = "" if facts.side else "--image-size 224 "
            raise DefinitionError(
                f"{path}: an {kind} does not say how images are normalized; give {size}--mean 0.485 0.456 0.406 --std"
                " 0.229 0.224 0.225 (or its own; 0 0 0 and 1 1 1 for none), in Python transform=…"
            )
        super().__init__(
            name,
            prepared.transform,
            lambda: _load(kind, path, LoadOptions()),
            EVAL_BATCH_SIZE,
            normalization=prepared.normalization,
            num_classes=facts.classes,
            differentiable=kind != ONNX,
            architecture={"program": kind},
            weights=ProgramFiles(path),
        )
        self.kind, self.path = kind, path
        self.preprocessing_from = prepared.where
        order = active().class_order
        self.class_order = ClassOrder() if order is None else asked(order)
        self.remarks = tuple(
            said
            for said, holds in (
                (f"{kind}", True),
                (f"batches of {facts.batch}, which it is made for", facts.batch is not None),
                ("channels last", facts.channels_last),
            )
            if holds
        )

    def load(self, options: LoadOptions) -> LoadedClassifier:
        """The loaded program, on a device."""
        from testbed.models.base.runtime import LoadedClassifier

        if options.random_seed is not None:
            raise WeightsError(f"{self.name}: a program has its weights in it; it cannot run with --random-weights")
        with loading(self.name):
            return LoadedClassifier(self, _load(self.kind, self.path, options), options)


def _look_at(path: Path) -> tuple[str, Facts]:
    """Inspects a file: its kind, and its declared input and output."""
    if not path.is_file():
        raise WeightsError(f"the file {path} does not exist")
    kind = kind_of(path)
    if kind is None:
        raise WeightsError(f"{path} should be an {SUFFIXES.get(path.suffix, ONNX)}, by its name; its content is not")
    from testbed.models.at_hand.programs import Facts, exported_facts, onnx_facts

    with loading(str(path)):
        if kind == ONNX:
            return kind, onnx_facts(path)
        if kind == EXPORTED:
            return kind, exported_facts(path)
    if not trusted_by_user(str(path)):
        raise WeightsError(
            f"{path} is a {SCRIPT}, which is not loaded unless you trust it, because it could do anything that torch's"
            f" operations can; set {ENV_TRUST_CODE}={path} if you do"
        )
    return kind, Facts()


def _load(kind: str, path: Path, options: LoadOptions) -> Any:
    from testbed.models.at_hand.programs import OnnxNetwork, load_exported, load_script

    if kind == ONNX:
        return OnnxNetwork(path, options.device)
    return load_exported(path)[0] if kind == EXPORTED else load_script(path)


class ProgramFamily:
    """Paths of files that hold a program."""

    name = "program"
    reads_files = True  # so that a definition is built anew each time

    def names(self) -> Iterable[str]:
        """Lists none: there are as many as there are files."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The absolute path of a program's file, or of one that is called like it."""
        path = expanded(name)
        if "," in name and not is_file(path):
            return None  # a checkpoint with its architecture
        return str(path.absolute()) if path.suffix in SUFFIXES or kind_of(path) is not None else None

    def build(self, name: str) -> Model:
        """Builds the definition, with the preprocessing of the run's options."""
        return ProgramModel(name, Path(name))


registry.add_model_family(ProgramFamily())

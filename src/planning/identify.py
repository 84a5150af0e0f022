"""The identity of a cell: what determines its outputs, what determines its metrics, and the digests of both."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from testbed.calls import reason_of
from testbed.entities import DatasetInfo
from testbed.errors import IdentityError, TestbedError, UnsupportedError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.build import Graph
from testbed.graph.cells import Action, Cell, ItemNode, OpenedModel, OpenedSetting
from testbed.graph.item_nodes import SCORED_BY, as_recorded, view_of_reading
from testbed.graph.nodes import FITTED, IMAGES, Built, Items, OutputsOf, Reads, Rows
from testbed.graph.ops import embedding_spec
from testbed.graph.options import RunOptions
from testbed.identity.describe import SCHEME, describe, describe_fields, digest
from testbed.identity.fingerprints import cell_fingerprint, forward_fingerprint
from testbed.models.base.capability import EMBED_IMAGE, NETWORK
from testbed.models.base.class_reading import reading
from testbed.models.made.derived import DerivedModel
from testbed.models.model_base import ModelDefinition
from testbed.planning.opening import Opener, attempt
from testbed.registry.catalog import Catalog
from testbed.registry.references import PRESENT
from testbed.tasks.task_base import check_options, get_task, require
from testbed.tracing import own_code

MADE_OF = "made of"  # the key of what a model is made of, in the identity of its cells
CellOf = Callable[[str, str], Cell]


@dataclass(eq=False)
class Identifier:
    """Fills in the identity of cells.

    Args:
        opener: Opens them.
        images_of: The cell in which a model embeds the images of a setting.
        cell_of: The cell of a model on a setting.
    """

    catalog: Catalog
    opener: Opener
    options: RunOptions
    images_of: CellOf
    cell_of: CellOf

    def fits(self, cell: Cell) -> bool:
        """Builds what the task needs, if the models can do it at all; asks for neither data nor weights."""
        try:
            model, setting = self.catalog.get_model(cell.model), self.catalog.get_eval_setting(cell.setting)
            task = get_task(setting.task)
            check_options(setting)
            task.route(model, setting)
            setting.perturbation.require()
            cell.built = task.build(Graph(model, setting))
            self._require_judges(cell.built, setting)
        except UnsupportedError as error:
            cell.action, cell.reason = Action.UNSUPPORTED, str(error)
        except TestbedError as error:
            cell.action, cell.reason = Action.FAILED, str(error)
        except Exception as error:  # a family may be a plug-in's
            cell.action, cell.reason = Action.FAILED, f"it cannot be defined: {reason_of(error)}"
        return cell.action is Action.RUN

    def _require_judges(self, built: Built, setting: EvalSetting) -> None:
        """Checks that a judge has the capabilities that it takes."""
        needed: dict[str, set[str]] = {}
        for each in built.inputs.values():
            if each.by:
                needed.setdefault(each.by, set()).add(each.op.needs if isinstance(each, Items) else EMBED_IMAGE)
        for name, capabilities in needed.items():
            judge = self.catalog.get_model(name)
            require(judge, capabilities, setting)
            judge.text_language(setting.language)

    def identify(self, cell: Cell) -> None:
        """Opens the model and the setting of a cell that fits, and fills in its identity."""
        setting, model = self.opener.setting(cell.setting), self.opener.model(cell.model)
        if isinstance(model, str) or isinstance(setting, str):
            cell.action, cell.reason = Action.FAILED, model if isinstance(model, str) else str(setting)
            return
        try:
            setting = _read(model.definition, setting)
        except UnsupportedError as error:
            cell.action, cell.reason = Action.UNSUPPORTED, str(error)
            return
        cell.opened_model, cell.opened_setting = model, setting
        cell.files |= model.files | setting.files
        specs = attempt(partial(self._specs, cell, model, setting))
        if isinstance(specs, str):
            cell.action, cell.reason = Action.FAILED, specs
            return
        forward, view, precision = specs
        cell.identity = {
            "model": _model(model),
            "forward": forward,
            "view": view,
            **_network(model),
            **({MADE_OF: {name: _model(each) for name, each in model.parts.items()}} if model.parts else {}),
            "samples": setting.dataset.fingerprint,
            "dtype": precision,
            "scheme": SCHEME,
            **as_recorded([item for item in cell.items if not item.items.by]),
        }
        if model.identity is None:
            cell.reason = "weights not downloaded yet"
        elif any(judge.identity is None for judge in cell.judges):
            cell.reason = "weights of the judge not downloaded yet"
        else:
            cell.forward = forward_fingerprint(model.identity, precision, forward)
            cell.fingerprint = cell_fingerprint(cell.forward, setting.dataset.fingerprint, view)

    # Outputs ------------------------------------------------------------------------------------------------------

    def _specs(self, cell: Cell, model: OpenedModel, setting: OpenedSetting) -> tuple[Any, Any, str]:
        """Describes what determines the outputs, what determines the metrics, and the precision of the outputs."""
        assert cell.built is not None
        definition = setting.setting
        made_for, rows = self._origin(cell.built, model, definition)
        cell.left_out = self.opener.left_out(setting, others(rows))
        forward = self._forward(made_for, rows, model, setting)
        source = type(setting.source)
        if own_code.is_own_class(source):  # what it calls a sample's content may not be all of it
            with contextlib.suppress(IdentityError):
                forward["source"] = describe(source, cell.files)
        view = view_of(definition, cell.files)
        if setting.read is not None:
            view |= view_of_reading(setting.read, definition.among_present)
        cell.items = [
            self._item_node(role, each, cell, model)
            for role, each in cell.built.inputs.items()
            if isinstance(each, Items)
        ]
        precision = self.options.dtype if rows.op.reads is Reads.MESSAGES else self.options.precision
        return describe_fields(forward, cell.files), view | self._judge(cell, definition), precision

    def _origin(self, built: Built, model: OpenedModel, definition: EvalSetting) -> tuple[EvalSetting, Rows]:
        """The rows that are the outputs of a cell, and the setting that they are computed for, maybe another one."""
        outputs = built.outputs
        while isinstance(outputs, OutputsOf):
            definition = self.catalog.get_eval_setting(outputs.name)
            outputs = get_task(definition.task).build(Graph(model.definition, definition)).outputs
        return definition, outputs

    def _forward(
        self, definition: EvalSetting, outputs: Rows, model: OpenedModel, setting: OpenedSetting
    ) -> dict[str, Any]:
        """Describes what determines the outputs; those of another cell are described by its definition."""
        names = setting.dataset.class_names
        forward = outputs.op.spec(model.definition, definition, names, self.options.seed)
        derived = setting.read is not None and outputs.op.reads is Reads.OUTPUTS  # of logits that are seen already
        forward["restricted"] = outputs.op.restricts(model.definition, definition) or derived
        fitted_on = self.opener.fitted_on(setting, others(outputs))
        if embedded := {role: self._embedded(each, fitted_on[role], model) for role, each in others(outputs).items()}:
            forward["embedded"] = embedded
        if outputs.op.reads is Reads.OUTPUTS:
            forward["outputs"] = {role: self._outputs(role, each, model) for role, each in outputs.inputs.items()}
        return forward

    def _outputs(self, role: str, taken: OutputsOf, model: OpenedModel) -> str | None:
        """Describes what determines the outputs of another cell; with samples and classes if something is fitted."""
        cell = self.cell_of(taken.by or model.definition.name, taken.setting)
        if cell.action in (Action.FAILED, Action.UNSUPPORTED):
            raise TestbedError(f"{cell.name}, which it needs, cannot be run: {cell.reason}")
        return cell.fingerprint if role == FITTED else cell.forward

    def _embedded(self, images: OutputsOf, dataset: DatasetInfo, model: OpenedModel) -> list[str]:
        """Describes what determines the embeddings of images other than the cell's own, including targets."""
        setting = self.catalog.get_eval_setting(images.setting)
        return [dataset.fingerprint, image_fingerprint(setting, self.options.seed)]

    # What outputs are scored with ---------------------------------------------------------------------------------

    def _judge(self, cell: Cell, setting: EvalSetting) -> dict[str, Any]:
        """The identity of the judge, as a part of what determines the metrics; empty if there is none."""
        assert cell.built is not None
        if setting.scoring is None or not setting.scoring.judges:
            return {}
        cell.judges = [self._open(name) for name in setting.scoring.judges]
        first = cell.judges[0]  # the others are in the items that they answer
        described: dict[str, Any] = {
            "model": _model(first),
            "dtype": self.options.dtype,
            "encoder": None,
            "images": None,
        }
        for role, each in cell.built.inputs.items():
            if isinstance(each, OutputsOf) and each.by and first.identity is not None:
                described[role] = self.images_of(each.by, each.setting).forward
        judged = [item for item in cell.items if item.items.by]
        return {SCORED_BY: {**described, **as_recorded(judged, texts="encoder")}}

    def _item_node(self, role: str, items: Items, cell: Cell, model: OpenedModel) -> ItemNode:
        by = self._open(items.by) if items.by else model
        node = ""
        if by.identity is not None:
            node = items.op.node(digest([by.identity, self.options.dtype]), by.definition, self.options.seed)
        resource = by.definition.resource
        whole = by.definition.whole_ranges
        together = by.definition.eval_batch_size if whole or resource == NETWORK else None
        return ItemNode(role, items, items.by or cell.model, node, resource, together)

    def _open(self, judge: str) -> OpenedModel:
        opened = self.opener.model(judge)
        if isinstance(opened, str):
            raise TestbedError(f"the judge {judge} is not available: {opened}")
        return opened


def _read(model: ModelDefinition, opened: OpenedSetting) -> OpenedSetting:
    """A setting with its classes read as outputs of the model, where they are matched by name.

    Raises:
        UnsupportedError: If that is not possible, or the members of a model have other outputs for them.
    """
    setting, names = opened.setting, opened.dataset.class_names
    found = [reading(network, setting, names) for network in _networks(model)]
    first = next((class_reading for class_reading in found if class_reading is not None), None)
    seen = {None if class_reading is None else class_reading.known.vocabulary.ids for class_reading in found}
    if len(seen) > 1 and not setting.among_present:
        raise UnsupportedError(
            f"the members of {model.name} have different outputs for the classes of {setting.name}; combine them among"
            f" the present classes: {setting.name}{PRESENT}"
        )
    return opened if first is None else replace(opened, read=first)


def _networks(model: ModelDefinition) -> list[ModelDefinition]:
    """The models whose outputs a model combines, or itself."""
    if not isinstance(model, DerivedModel):
        return [model]
    return [network for member in model.members for network in _networks(member)]


def _model(model: OpenedModel) -> dict[str, Any]:
    return {"spec": model.description, "weights": model.weights.id if model.weights else None}


def _network(model: OpenedModel) -> dict[str, Any]:
    """Returns the content of a loaded network's identity, to compare it with another one; None for others."""
    if model.weights is None or model.weights.state is None:
        return {}
    return {"network": {"state": model.weights.state, "structure": model.weights.structure}}


def view_of(setting: EvalSetting, files: set[str] | None = None) -> dict[str, Any]:
    """Describes what determines metrics besides stored values; adds the files of a user's code to ``files``."""
    task = get_task(setting.task)
    view = describe_fields(task.view_spec(setting), files)
    return {**view, "task": describe(type(task), files)} if own_code.is_own_class(type(task)) else view


def others(rows: Rows) -> dict[str, OutputsOf]:
    """The embeddings that rows are computed from, besides those of the cell's own images."""
    return {role: outputs_of for role, outputs_of in rows.inputs.items() if role != IMAGES and outputs_of.node}


def image_fingerprint(setting: EvalSetting, seed: int) -> str:
    """The digest of what determines the embeddings of a setting's images, besides model and images."""
    return digest(describe_fields(embedding_spec(setting, seed)))

"""From cells to passes: what is read together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import testbed
from testbed.data.decode import decoder
from testbed.errors import IdentityError
from testbed.graph.cells import Cell, ItemNode, OpenedModel, OpenedSetting
from testbed.graph.nodes import Reads, Rows
from testbed.graph.options import RunOptions
from testbed.graph.passes import ROUNDS, Pass, PassCell, chunk_size
from testbed.identity.describe import describe, digest
from testbed.models.base.capability import NETWORK
from testbed.provenance.libraries import NUMERIC
from testbed.provenance.manifest import LIBRARY, Today

_PACKAGE = Path(testbed.__file__).resolve().parent

MIN_CHUNK = 256  # samples whose outputs are stored together, at least: databases like few and large values
GENERATED_CHUNK = 32  # the same for generated text, which takes its time and is shared out among workers
EMBEDDED_CHUNK = 8192  # the same for outputs computed from stored embeddings
TEXT_CHUNK = 512  # texts that a worker embeds at a time
MAX_PASS_CELLS = 256  # bounds the memory of the outputs that wait to be stored
# Models are put into one pass as long as their weights together take no more than this. One that is larger has a pass
# to itself, which costs nothing compared with running it.
MAX_PASS_WEIGHTS = 2 << 30


@dataclass(frozen=True)
class Member:
    """A cell whose outputs are computed.

    Attributes:
        cell: The cell.
        evaluation_id: Its evaluation.
        inputs: As `PassCell` has them.
        given: As `PassCell` has them.
        lacks_artifacts: Whether a head or a probe must be made for it.
    """

    cell: Cell
    evaluation_id: int
    inputs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    given: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    lacks_artifacts: bool = False

    @property
    def rows(self) -> Rows:
        """Returns the rows that are computed."""
        assert self.cell.rows is not None
        return self.cell.rows

    @property
    def opened(self) -> OpenedSetting:
        """The setting."""
        assert self.cell.opened_setting is not None
        return self.cell.opened_setting

    @property
    def model(self) -> OpenedModel:
        """The model."""
        assert self.cell.opened_model is not None
        return self.cell.opened_model


def make_passes(members: Sequence[Member], scored: Sequence[Cell], options: RunOptions) -> list[Pass]:
    """All passes of a run, in the order to begin: over samples, then over the items that cells are scored with."""
    seeing = [member for member in members if member.rows.reads is Reads.IMAGES]
    passes = group(seeing, options.batch_size, options.share_passes, options.decoded_cache > 0)
    for each in members:
        if each.rows.reads is Reads.MESSAGES:
            passes.append(generation_pass(len(passes), each, options.batch_size))
    for each in members:
        if each.rows.reads in (Reads.ROWS, Reads.OUTPUTS):
            passes.append(embedded_pass(len(passes), each))
    # By node: another name of the same model has the same items.
    nodes: dict[str, list[tuple[Cell, ItemNode]]] = defaultdict(list)
    for cell in scored:
        for node in cell.items:
            nodes[node.key].append((cell, node))
    return passes + [item_pass(number, each, options) for number, each in enumerate(nodes.values(), len(passes))]


def group(members: Sequence[Member], batch_size: int | None, share: bool, cached: bool = False) -> list[Pass]:
    """Groups cells that read the same pixels in batches of the same size into passes.

    Args:
        members: The cells.
        batch_size: Images at once; None takes each model's own number.
        share: Whether to group at all; else each cell gets a pass to itself.
        cached: Whether decoded images are cached.

    Returns:
        The passes, in the order of their first cells.
    """
    groups: dict[str, list[Member]] = defaultdict(list)
    for index, member in enumerate(members):
        key = _pixels(member) + f"/{_batch_size(member, batch_size)}" if share else str(index)
        groups[key].append(member)
    numbers = count()
    return [
        _image_pass(next(numbers), part, _batch_size(part[0], batch_size), cached)
        for together in groups.values()
        for part in _pack(together)
    ]


def _pixels(member: Member) -> str:
    """Equal for cells that read the same samples through the same transforms."""
    opened, transform = member.opened, member.model.definition.transform
    targets: Any = opened.dataset.fingerprint if opened.setting.full_targets else None  # perturbations may take them
    targets = targets if opened.read is None else opened.read.outputs
    positions = str(opened.positions) if isinstance(opened.positions, range) else list(opened.positions)
    return digest([opened.source_key, positions, opened.setting.transform, transform, targets])


def _targets(opened: OpenedSetting) -> Sequence[Any]:
    """The target of each sample, as perturbations take it: an output of the model."""
    given = opened.dataset.targets
    return given if opened.read is None else [_as_output(each, opened.read.outputs) for each in given]


def _as_output(target: Any, outputs: Sequence[int]) -> Any:
    return [_as_output(each, outputs) for each in target] if isinstance(target, list) else outputs[target]


def _batch_size(member: Member, override: int | None) -> int:
    """Images read at once; under attack the model's own number, of which its smaller batches are parts."""
    attacked = member.opened.setting.adversarial_attack is not None
    return member.model.definition.batch_size(adversarial=False, override=None if attacked else override)


def _pack(members: Sequence[Member]) -> list[list[Member]]:
    """Splits cells that could share a pass so that the models of each fit into memory together."""
    by_model: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        by_model[member.cell.model].append(member)
    packs: list[list[Member]] = []
    room = cells_left = 0
    for of_model in by_model.values():
        weights = of_model[0].model.weights
        size = weights.size_bytes if weights and weights.size_bytes else MAX_PASS_WEIGHTS
        if not packs or size > room or len(of_model) > cells_left:
            packs.append([])
            room, cells_left = MAX_PASS_WEIGHTS, MAX_PASS_CELLS
        for start in range(0, len(of_model), MAX_PASS_CELLS):
            if start:
                packs.append([])
                room, cells_left = MAX_PASS_WEIGHTS, MAX_PASS_CELLS
            part = of_model[start : start + MAX_PASS_CELLS]
            packs[-1] += part
            room, cells_left = room - size, cells_left - len(part)
    return packs


def _pass_cell(member: Member) -> PassCell:
    cell = member.cell
    return PassCell(
        member.evaluation_id, cell.model, cell.setting, cell.model_identity, member.inputs, given=member.given
    )


def _image_pass(number: int, members: Sequence[Member], batch_size: int, cached: bool) -> Pass:
    opened = members[0].opened
    pixels = pixels_key(members[0].model.definition.transform, opened.setting.transform) if cached else None
    return Pass(
        id=number,
        cells=tuple(_pass_cell(member) for member in members),
        source=opened.source,
        positions=opened.positions,
        targets=_targets(opened),
        batch_size=batch_size,
        chunk=chunk_size(batch_size, MIN_CHUNK),
        alone=any(member.lacks_artifacts for member in members),
        pixels=pixels or "",
        digests=[sample.digest for sample in opened.dataset.samples] if pixels else (),
    )


def embedded_pass(number: int, member: Member) -> Pass:
    """The pass of a cell that takes stored rows instead of images: one for each, in ranges of many samples."""
    return Pass(
        id=number,
        cells=(_pass_cell(member),),
        source=None,
        positions=range(member.cell.size),
        targets=(),
        batch_size=EMBEDDED_CHUNK,
        chunk=EMBEDDED_CHUNK,
        reads=member.rows.reads,
        alone=member.lacks_artifacts,
    )


def generation_pass(number: int, member: Member, batch_size: int | None) -> Pass:
    """The pass of a cell whose model answers messages, so many at once; None takes the model's own number."""
    size = _batch_size(member, batch_size)
    return Pass(
        id=number,
        cells=(_pass_cell(member),),
        source=member.opened.source,
        positions=member.opened.positions,
        targets=(),
        batch_size=size,
        chunk=chunk_size(size, GENERATED_CHUNK) * _rounds(member.model.definition.resource),
        reads=Reads.MESSAGES,
        resource=member.model.definition.resource,
    )


def item_pass(number: int, members: Sequence[tuple[Cell, ItemNode]], options: RunOptions) -> Pass:
    """The pass of a model over the requests of some cells whose values are not stored yet.

    Args:
        number: Its id.
        members: The cells. They get evaluations when what their requests are made from is stored.
    """
    node = members[0][1]
    op = node.items.op
    size = TEXT_CHUNK if op.reads is Reads.TEXTS else node.together or GENERATED_CHUNK
    size = min(size, options.clear_cache_interval or size)
    chunk = size * _rounds(node.resource)
    whole = node.together is not None and node.resource != NETWORK
    return Pass(
        id=number,
        cells=tuple(PassCell(0, item_node.model, cell.setting, item_node.node) for cell, item_node in members),
        source=None,
        positions=(),
        targets=(),
        batch_size=size if whole else options.batch_size or size,
        chunk=chunk,
        reads=op.reads,
        op=op,
        node=node.key,
        resource=node.resource,
    )


def _rounds(resource: str) -> int:
    """Returns how many batches of messages a model takes at once."""
    return ROUNDS if resource == NETWORK else 1


def pixels_key(transform: Any, setting_transform: Any) -> str | None:
    """A name for the pixels that a model's transform makes of images, which outlasts this run.

    It changes with the versions of libraries and with testbed's own code.

    Args:
        transform: The model's.
        setting_transform: The setting's, which comes first; or None.

    Returns:
        The name; None where users' own code takes part, which may depend on more than its text.
    """
    files: set[str] = set()
    try:
        described = describe([transform, setting_transform], files)
    except IdentityError:
        return None
    if not all(Path(file).is_relative_to(_PACKAGE) for file in files):
        return None
    return digest([decoder(), described, _surroundings()])


@cache
def _surroundings() -> Any:
    return Today().record_of((LIBRARY, name) for name in NUMERIC)[LIBRARY]

"""From cells to passes: what is read together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count

from testbed.graph.passes import Pass, PassCell, Reads, chunk_size
from testbed.identity import digest
from testbed.runner.cells import Cell
from testbed.runner.options import RunOptions

MIN_CHUNK = 256  # samples whose outputs are stored together, at least: databases like few and large values
GENERATED_CHUNK = 32  # the same, for what models say: that takes its time, and is to be shared out
EMBEDDED_CHUNK = 8192  # the same, for outputs that are made from stored embeddings
TEXT_CHUNK = 512  # texts that a worker embeds at a time
MAX_PASS_CELLS = 256  # bounds the memory of the outputs that wait to be stored
# Models are put into one pass as long as their weights together take no more than this. One that is larger has a pass
# to itself, which costs nothing compared with running it.
MAX_PASS_WEIGHTS = 2 << 30


Given = Mapping[int, Mapping[int, tuple[int, int]]]
NOTHING: Given = {}


def make_passes(
    cells: Sequence[tuple[Cell, int]],
    judged: Sequence[Cell],
    needs: Mapping[int, Mapping[str, tuple[int, int]]],
    given: Given,
    options: RunOptions,
) -> list[Pass]:
    """All passes of a run, in the order in which they should be begun.

    Args:
        cells: The cells that must be run, each with the id of its evaluation.
        judged: The cells that are scored with embeddings of texts.
        needs: Evaluation id → what `PassCell` has of that name, of cells that take stored embeddings.
        given: Evaluation id → what `PassCell` has of that name.
        options: The run's.
    """
    seeing = [each for each in cells if not each[0].needs and not each[0].generates]
    passes = group(seeing, options.batch_size, options.share_passes, given)
    for cell, evaluation_id in cells:
        if cell.generates:
            passes.append(generation_pass(len(passes), cell, evaluation_id, options.batch_size, given))
    for cell, evaluation_id in cells:
        if cell.needs:
            passes.append(embedded_pass(len(passes), cell, evaluation_id, needs[evaluation_id]))
    # By node: another name of the same model has the same embeddings.
    members: dict[str, list[Cell]] = defaultdict(list)
    for cell in judged:
        assert cell.encoder is not None
        members[cell.encoder.key].append(cell)
    chunk = min(TEXT_CHUNK, options.clear_cache_interval or TEXT_CHUNK)
    return passes + [text_pass(number, each, chunk) for number, each in enumerate(members.values(), len(passes))]


def group(cells: Sequence[tuple[Cell, int]], batch_size: int | None, share: bool, given: Given = NOTHING) -> list[Pass]:
    """Groups cells that read the same pixels in batches of the same size into passes.

    Args:
        cells: The cells that must be run, each with the id of its evaluation.
        batch_size: Images at once; None takes each model's own number.
        share: Whether to group at all; else each cell gets a pass to itself.
        given: As in `make_passes`.

    Returns:
        The passes, in the order of their first cells.
    """
    groups: dict[str, list[tuple[Cell, int]]] = defaultdict(list)
    for place, (cell, evaluation_id) in enumerate(cells):
        key = _pixels(cell) + f"/{_batch_size(cell, batch_size)}" if share else str(place)
        groups[key].append((cell, evaluation_id))
    numbers = count()
    return [
        _pass(next(numbers), part, _batch_size(part[0][0], batch_size), given)
        for members in groups.values()
        for part in _pack(members)
    ]


def _pixels(cell: Cell) -> str:
    """Equal for cells that read the same samples through the same transforms."""
    assert cell.opened_model is not None
    assert cell.opened_setting is not None
    opened = cell.opened_setting
    return digest(
        [opened.source_key, list(opened.positions), opened.setting.transform, cell.opened_model.definition.transform]
    )


def _batch_size(cell: Cell, override: int | None) -> int:
    """Images read at once; under attack the model's own number, of which its smaller batches are parts."""
    assert cell.opened_model is not None
    assert cell.opened_setting is not None
    attacked = cell.opened_setting.setting.adversarial_attack is not None
    return cell.opened_model.definition.batch_size(adversarial=False, override=None if attacked else override)


def _pack(members: Sequence[tuple[Cell, int]]) -> list[list[tuple[Cell, int]]]:
    """Splits cells that could share a pass so that the models of each fit into memory together."""
    by_model: dict[str, list[tuple[Cell, int]]] = defaultdict(list)
    for member in members:
        by_model[member[0].model].append(member)
    packs: list[list[tuple[Cell, int]]] = []
    room = cells_left = 0
    for of_model in by_model.values():
        weights = of_model[0][0].opened_model.weights if of_model[0][0].opened_model else None
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


def _pass(number: int, members: Sequence[tuple[Cell, int]], batch_size: int, given: Given) -> Pass:
    opened = members[0][0].opened_setting
    assert opened is not None
    return Pass(
        id=number,
        cells=tuple(
            PassCell(each, cell.model, cell.setting, cell.model_identity, given=given.get(each, {}))
            for cell, each in members
        ),
        source=opened.source,
        positions=opened.positions,
        targets=[sample.target for sample in opened.dataset.samples],
        batch_size=batch_size,
        chunk=chunk_size(batch_size, MIN_CHUNK),
    )


def embedded_pass(number: int, cell: Cell, evaluation_id: int, needs: Mapping[str, tuple[int, int]]) -> Pass:
    """The pass of a cell that takes stored embeddings instead of images: one for each, in ranges of many samples.

    Args:
        number: Its id.
        cell: The cell.
        evaluation_id: Its evaluation.
        needs: As `PassCell` has them.
    """
    return Pass(
        id=number,
        cells=(PassCell(evaluation_id, cell.model, cell.setting, cell.model_identity, needs),),
        source=None,
        positions=range(cell.size),
        targets=(),
        batch_size=EMBEDDED_CHUNK,
        chunk=EMBEDDED_CHUNK,
        reads=Reads.ROWS,
    )


def generation_pass(
    number: int, cell: Cell, evaluation_id: int, batch_size: int | None, given: Given = NOTHING
) -> Pass:
    """The pass of a cell whose model answers messages.

    Args:
        number: Its id.
        cell: The cell.
        evaluation_id: Its evaluation.
        batch_size: Messages at once; None takes the model's own number.
        given: As in `make_passes`.
    """
    opened = cell.opened_setting
    assert opened is not None
    size = _batch_size(cell, batch_size)
    return Pass(
        id=number,
        cells=(
            PassCell(evaluation_id, cell.model, cell.setting, cell.model_identity, given=given.get(evaluation_id, {})),
        ),
        source=opened.source,
        positions=opened.positions,
        targets=(),
        batch_size=size,
        chunk=chunk_size(size, GENERATED_CHUNK),
        reads=Reads.MESSAGES,
    )


def text_pass(number: int, cells: Sequence[Cell], chunk: int = TEXT_CHUNK) -> Pass:
    """The pass of a model over the texts that some cells need and that are not embedded yet.

    Args:
        number: Its id.
        cells: The cells. They get evaluations when what they are scored from is stored.
        chunk: Texts at a time.
    """
    encoder = cells[0].encoder
    assert encoder is not None
    return Pass(
        id=number,
        cells=tuple(PassCell(0, encoder.model, cell.setting, encoder.node) for cell in cells),
        source=None,
        positions=(),
        targets=(),
        batch_size=chunk,
        chunk=chunk,
        reads=Reads.TEXTS,
        node=encoder.key,
        language=encoder.language,
    )

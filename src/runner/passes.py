"""From cells to passes and tasks: what is read together, and in which pieces it is handed out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from testbed.identity import digest
from testbed.runner.cells import Cell, Pass, PassCell, PassKind, Task

MIN_CHUNK = 256  # samples whose outputs are stored together, at least: databases like few and large values
GENERATED_CHUNK = 32  # the same, for what models say: that takes its time, and is to be shared out
EMBEDDED_CHUNK = 8192  # the same, for outputs that are made from stored embeddings
TEXT_CHUNK = 512  # texts that a worker embeds at a time
MAX_PASS_CELLS = 256  # bounds the memory of the outputs that wait to be stored
# Models are put into one pass as long as their weights together take no more than this. One that is larger has a pass
# to itself, which costs nothing compared with running it.
MAX_PASS_WEIGHTS = 2 << 30


def chunk_size(batch_size: int, least: int = MIN_CHUNK) -> int:
    """The smallest multiple of the batch size that is at least ``least``."""
    return batch_size * math.ceil(least / batch_size)


def group(cells: Sequence[tuple[Cell, int]], batch_size: int | None, share: bool) -> list[Pass]:
    """Groups cells that read the same pixels in batches of the same size into passes.

    Args:
        cells: The cells that must be run, each with the id of its evaluation.
        batch_size: Images at once; None takes each model's own number.
        share: Whether to group at all; else each cell gets a pass to itself.

    Returns:
        The passes, in the order of their first cells.
    """
    groups: dict[str, list[tuple[Cell, int]]] = defaultdict(list)
    for place, (cell, evaluation_id) in enumerate(cells):
        key = _pixels(cell) + f"/{_batch_size(cell, batch_size)}" if share else str(place)
        groups[key].append((cell, evaluation_id))
    numbers = count()
    return [
        _pass(next(numbers), part, _batch_size(part[0][0], batch_size))
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


def _pass(number: int, members: Sequence[tuple[Cell, int]], batch_size: int) -> Pass:
    opened = members[0][0].opened_setting
    assert opened is not None
    return Pass(
        id=number,
        cells=tuple(
            PassCell(evaluation_id, cell.model, cell.setting, cell.model_identity) for cell, evaluation_id in members
        ),
        source=opened.source,
        positions=opened.positions,
        targets=[sample.target for sample in opened.dataset.samples],
        batch_size=batch_size,
        chunk=chunk_size(batch_size),
    )


def embedded_pass(
    number: int, cell: Cell, evaluation_id: int, needs: Mapping[str, tuple[int, int]], outputs: bool
) -> Pass:
    """The pass of a cell that takes stored embeddings instead of images: one for each, in ranges of many samples.

    Args:
        number: Its id.
        cell: The cell.
        evaluation_id: Its evaluation.
        needs: As `PassCell` has them.
        outputs: Whether it makes outputs out of the embeddings; else something is prepared, and that is all.
    """
    return Pass(
        id=number,
        cells=(PassCell(evaluation_id, cell.model, cell.setting, cell.model_identity, needs),),
        source=None,
        positions=range(cell.size),
        targets=(),
        batch_size=EMBEDDED_CHUNK,
        chunk=EMBEDDED_CHUNK,
        kind=PassKind.EMBEDDINGS,
        outputs=outputs,
    )


def generation_pass(number: int, cell: Cell, evaluation_id: int, batch_size: int | None) -> Pass:
    """The pass of a cell whose model answers messages.

    Args:
        number: Its id.
        cell: The cell.
        evaluation_id: Its evaluation.
        batch_size: Messages at once; None takes the model's own number.
    """
    opened = cell.opened_setting
    assert opened is not None
    size = _batch_size(cell, batch_size)
    return Pass(
        id=number,
        cells=(PassCell(evaluation_id, cell.model, cell.setting, cell.model_identity),),
        source=opened.source,
        positions=opened.positions,
        targets=(),
        batch_size=size,
        chunk=chunk_size(size, GENERATED_CHUNK),
        kind=PassKind.MESSAGES,
    )


def text_pass(
    number: int,
    scorer: str,
    cells: Sequence[tuple[Cell, int]],
    texts: Sequence[str],
    encoder: str,
    language: str,
    chunk: int = TEXT_CHUNK,
) -> Pass:
    """The pass of a scorer over the texts that some cells need and that are not embedded yet.

    Args:
        number: Its id.
        scorer: The name of the model.
        cells: The cells, each with the id of its evaluation.
        texts: The texts, each once.
        encoder: The name under which their embeddings are stored.
        language: Their language.
        chunk: Texts at a time.
    """
    return Pass(
        id=number,
        cells=tuple(PassCell(evaluation_id, scorer, cell.setting, encoder) for cell, evaluation_id in cells),
        source=None,
        positions=range(len(texts)),
        targets=(),
        batch_size=chunk,
        chunk=chunk,
        kind=PassKind.TEXTS,
        outputs=False,
        # Long ones first: what does not fit into memory does not fit at once; and texts of one length need no padding.
        texts=sorted(texts, key=lambda text: (-len(text), text)),
        encoder=encoder,
        language=language,
    )


def missing(size: int, stored: Iterable[tuple[int, int]], chunk: int) -> list[tuple[int, int]]:
    """The ranges of 0 … size that are not stored, cut at the multiples of the chunk.

    Args:
        size: The number of samples.
        stored: Ranges (start, stop), merged and in order.
        chunk: The length of a full range.
    """
    ranges, place = [], 0
    for start, stop in [*stored, (size, size)]:
        while place < min(start, size):
            end = min((place // chunk + 1) * chunk, start, size)
            ranges.append((place, end))
            place = end
        place = max(place, stop)
    return ranges


def tasks_of(
    one_pass: Pass,
    stored: Mapping[int, Sequence[tuple[int, int]]],
    numbers: Iterable[int],
    only: set[int] | None = None,
    prepare: bool = False,
) -> list[Task]:
    """The tasks of a pass: for each range the cells that lack it.

    Args:
        one_pass: The pass.
        stored: Evaluation id → ranges whose outputs are stored.
        numbers: Ids for the tasks.
        only: Evaluation ids to make tasks for; None means all of the pass.
        prepare: Whether a pass without outputs gets its task, of no samples.
    """
    if one_pass.kind is PassKind.TEXTS and prepare:
        cells = tuple(cell.evaluation_id for cell in one_pass.cells)
        fresh = iter(numbers)
        pieces = missing(len(one_pass.texts), (), one_pass.chunk)
        return [Task(next(fresh), one_pass.id, *piece, cells) for piece in pieces]
    if not one_pass.outputs:
        cells = tuple(cell.evaluation_id for cell in one_pass.cells)
        return [Task(next(iter(numbers)), one_pass.id, 0, 0, cells)] if prepare else []
    wanting: dict[tuple[int, int], list[int]] = defaultdict(list)
    for cell in one_pass.cells:
        if only is None or cell.evaluation_id in only:
            for piece in missing(len(one_pass.positions), stored.get(cell.evaluation_id, ()), one_pass.chunk):
                wanting[piece].append(cell.evaluation_id)
    fresh = iter(numbers)
    return [Task(next(fresh), one_pass.id, *piece, tuple(wanting[piece])) for piece in sorted(wanting)]

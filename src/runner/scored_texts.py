"""Which texts scorers must embed: those of all cells that a scorer scores, each once, but for what is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from testbed.db.store import Store
from testbed.errors import StoreError, TestbedError
from testbed.runner.cells import Cell, Pass
from testbed.runner.options import RunOptions
from testbed.runner.passes import TEXT_CHUNK, text_pass
from testbed.runner.scorers import scorer_of
from testbed.tasks.scorer_base import ScorerTask
from testbed.tasks.task_base import get_task


def text_passes(
    store: Store, cells: Sequence[tuple[Cell, int]], options: RunOptions, give_up: Callable[[int, str], None]
) -> list[Pass]:
    """A pass for each scorer, over the texts that it has not embedded yet; there may be none of these.

    Args:
        store: Where the captions are.
        cells: The cells to be scored, each with the id of its evaluation.
        options: The run's.
        give_up: Called with an evaluation whose texts cannot be told, and the reason.

    Raises:
        StoreError: If the store cannot be read.
    """
    members: dict[tuple[str, str, str], list[tuple[Cell, int]]] = {}
    texts: dict[tuple[str, str, str], dict[str, None]] = {}
    for cell, evaluation_id in cells:
        try:
            found = _texts(store, cell, evaluation_id)
        except StoreError:
            raise
        except TestbedError as error:
            give_up(evaluation_id, str(error))
            continue
        key = _scorer(cell)
        members.setdefault(key, []).append((cell, evaluation_id))
        texts.setdefault(key, {}).update(dict.fromkeys(found))
    passes: list[Pass] = []
    chunk = min(TEXT_CHUNK, options.clear_cache_interval or TEXT_CHUNK)
    for key, scored in members.items():
        scorer, encoder, language = key
        lacking = store.lacking_texts(encoder, texts[key])
        passes.append(text_pass(len(passes), scorer, scored, lacking, encoder, language, chunk))
    return passes


def _scorer(cell: Cell) -> tuple[str, str, str]:
    """The scorer's name, the name under which its text embeddings are stored, and the language of the texts."""
    opened, scorer = cell.opened_setting, scorer_of(cell.identity)
    assert opened is not None
    assert opened.setting.scoring is not None
    assert scorer is not None
    return opened.setting.scoring.by, scorer["encoder"], opened.setting.language


def _texts(store: Store, cell: Cell, evaluation_id: int) -> list[str]:
    opened = cell.opened_setting
    assert opened is not None
    task = get_task(opened.setting.task)
    assert isinstance(task, ScorerTask)
    values = store.read_outputs(evaluation_id, task.output_kind)
    return task.texts(opened.setting, values, opened.dataset.samples)

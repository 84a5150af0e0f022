"""Which texts scorers must embed: those of all cells that a scorer scores, each once, but for what is stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set

from testbed.db.store import Store
from testbed.errors import CorruptOutputError, StoreError, TestbedError
from testbed.runner.cells import Cell, Pass
from testbed.runner.options import RunOptions
from testbed.runner.passes import TEXT_CHUNK, text_pass
from testbed.runner.scorers import scorer_of
from testbed.tasks.scorer_base import ScorerTask
from testbed.tasks.task_base import get_task

log = logging.getLogger("testbed")


def text_passes(
    store: Store,
    cells: Sequence[tuple[Cell, int]],
    options: RunOptions,
    anew: Set[str],
    give_up: Callable[[int, str], None],
) -> list[Pass]:
    """A pass for each scorer, over the texts that it has not embedded yet; there may be none of these.

    Args:
        store: Where the captions are.
        cells: The cells to be scored, each with the id of its evaluation.
        options: The run's.
        anew: Scorers that embed all texts, also those whose embeddings are stored.
        give_up: Called with an evaluation whose texts cannot be told, and the reason.

    Raises:
        StoreError: If the store cannot be read.
    """
    # By encoder and language: another name of the same scorer has the same embeddings.
    members: dict[tuple[str, str], list[tuple[Cell, int]]] = {}
    texts: dict[tuple[str, str], dict[str, None]] = {}
    for cell, evaluation_id in cells:
        reason = ""
        try:
            found = _texts(store, cell, evaluation_id)
        except CorruptOutputError as error:
            reason = str(error)
        except StoreError:
            raise
        except TestbedError as error:
            reason = str(error)
        except Exception as error:  # what cuts texts into sentences is a library's code
            log.debug("the texts of %s cannot be told", cell.name, exc_info=True)
            first = (str(error).strip().splitlines() or [""])[0]
            reason = f"its texts cannot be told: {type(error).__name__}: {first}"
        if reason:
            give_up(evaluation_id, reason)
            continue
        key = _encoder(cell)
        members.setdefault(key, []).append((cell, evaluation_id))
        texts.setdefault(key, {}).update(dict.fromkeys(found))
    passes: list[Pass] = []
    chunk = min(TEXT_CHUNK, options.clear_cache_interval or TEXT_CHUNK)
    for (encoder, language), scored in members.items():
        wanted = texts[encoder, language]
        scorer = _scorer(scored[0][0])
        lacking = list(wanted) if scorer in anew else store.lacking_texts(encoder, wanted)
        passes.append(text_pass(len(passes), scorer, scored, lacking, encoder, language, chunk))
    return passes


def _encoder(cell: Cell) -> tuple[str, str]:
    """The name under which the scorer's text embeddings are stored, and the language of the texts."""
    opened, scorer = cell.opened_setting, scorer_of(cell.identity)
    assert opened is not None
    assert scorer is not None
    return scorer["encoder"], opened.setting.language


def _scorer(cell: Cell) -> str:
    """The scorer's name."""
    assert cell.opened_setting is not None
    assert cell.opened_setting.setting.scoring is not None
    return cell.opened_setting.setting.scoring.by


def _texts(store: Store, cell: Cell, evaluation_id: int) -> list[str]:
    opened = cell.opened_setting
    assert opened is not None
    task = get_task(opened.setting.task)
    assert isinstance(task, ScorerTask)
    values = store.read_outputs(evaluation_id, task.output_kind)
    return task.texts(opened.setting, values, opened.dataset.samples)

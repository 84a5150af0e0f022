"""The texts that models embed for scoring: those of all cells, each once, except for what is stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence, Set

from testbed.calls import reason_of
from testbed.db.store import Store
from testbed.errors import CorruptOutputError, StoreError, TestbedError
from testbed.graph.passes import Pass, Reads, Shard, shards_of_texts
from testbed.runner.cells import Cell
from testbed.tasks.task_base import get_task

log = logging.getLogger("testbed")

Member = tuple[Cell, int]


class JudgedTexts:
    """Cells that wait for the embeddings of their texts.

    A model takes up the texts of all cells that are waiting for it at once. Those that come meanwhile wait until these
    are stored, so that a text which several cells share is embedded once.

    Args:
        store: Has the outputs that the texts are in.
        passes: The run's.
        anew: Models that embed all texts again, also those whose embeddings are stored.
        give_up: Called with an evaluation whose texts cannot be listed, and the reason.
    """

    def __init__(
        self, store: Store, passes: Sequence[Pass], anew: Set[str], give_up: Callable[[int, str], None]
    ) -> None:
        self.store = store
        self.anew = anew
        self.give_up = give_up
        self._passes = {each.node: each for each in passes if each.reads is Reads.TEXTS}
        self._waiting: dict[str, list[Member]] = {key: [] for key in self._passes}
        self._under_way: dict[str, set[int]] = {key: set() for key in self._passes}
        self._made: dict[str, set[str]] = {}  # node → the texts that this run had embedded

    def add(self, cell: Cell, evaluation_id: int) -> None:
        """Adds a cell whose texts can be listed now."""
        assert cell.encoder is not None
        self._waiting[cell.encoder.key].append((cell, evaluation_id))

    def ended(self, evaluation_id: int) -> None:
        """Notes that the texts of a cell are embedded, or that it has failed."""
        for cells in self._under_way.values():
            cells.discard(evaluation_id)

    def next(self, numbers: Iterable[int]) -> tuple[list[Shard], list[int]]:
        """What models that embed nothing now should embed next.

        Args:
            numbers: Ids for the shards.

        Returns:
            The shards, and the evaluations that lack no text.
        """
        shards: list[Shard] = []
        complete: list[int] = []
        for key, one_pass in self._passes.items():
            if self._under_way[key] or not self._waiting[key]:
                continue
            members, self._waiting[key] = self._waiting[key], []
            cells, texts = self._texts(members)
            groups: dict[tuple[int, ...], list[str]] = {}  # by the cells that need them: what fails, fails for these
            for text in self._lacking(one_pass, list(texts)):
                groups.setdefault(tuple(texts[text]), []).append(text)
            made = [shard for who, group in groups.items() for shard in shards_of_texts(one_pass, group, who, numbers)]
            shards += made
            self._under_way[key] = {evaluation_id for shard in made for evaluation_id in shard.cells}
            complete += [each for each in cells if each not in self._under_way[key]]
        return shards, complete

    def _texts(self, members: Sequence[Member]) -> tuple[list[int], dict[str, list[int]]]:
        """The cells whose texts can be listed, and each of these texts with the cells that need it."""
        cells: list[int] = []
        texts: dict[str, list[int]] = {}
        for cell, evaluation_id in members:
            try:
                found = texts_of(self.store, cell, evaluation_id)
            except CorruptOutputError as error:
                self.give_up(evaluation_id, str(error))
            except StoreError:
                raise
            except TestbedError as error:
                self.give_up(evaluation_id, str(error))
            except Exception as error:  # what cuts texts into sentences is a library's code
                log.debug("the texts of %s cannot be listed", cell.name, exc_info=True)
                self.give_up(evaluation_id, f"its texts cannot be listed: {reason_of(error)}")
            else:
                cells.append(evaluation_id)
                for text in dict.fromkeys(found):
                    texts.setdefault(text, []).append(evaluation_id)
        return cells, texts

    def _lacking(self, one_pass: Pass, texts: Sequence[str]) -> list[str]:
        made = self._made.setdefault(one_pass.node, set())
        if one_pass.models[0] in self.anew:
            lacking = [text for text in texts if text not in made]
        else:
            lacking = self.store.lacking_texts(one_pass.node, texts)
        made.update(lacking)
        return lacking


def texts_of(store: Store, cell: Cell, evaluation_id: int) -> list[str]:
    """The texts whose embeddings a cell is scored with; some are in the outputs of an evaluation."""
    opened = cell.opened_setting
    assert opened is not None
    task = get_task(opened.setting.task)
    return task.texts(
        opened.setting, opened.dataset.samples, lambda: store.read_outputs(evaluation_id, task.output_kind)
    )

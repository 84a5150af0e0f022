"""The items that cells are scored with: the requests of all cells, each computed once, except for what is stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from testbed.calls import catchable, reason_of
from testbed.db.store import Store
from testbed.errors import CorruptOutputError, StoreError, TestbedError
from testbed.graph.cells import Cell, ItemNode
from testbed.graph.passes import Pass, Shard, shards_of_items
from testbed.graph.requests import request_text
from testbed.graph.stored import EvaluationValues, LateValues

log = logging.getLogger("testbed")


@dataclass
class ItemMember:
    """A cell that waits for its items.

    Attributes:
        left: The items that it lacks, in order: their requests may be made from the values before.
    """

    cell: Cell
    evaluation_id: int
    left: list[ItemNode]


class LateItems:
    """Cells that wait for items whose requests are known only now, since they are made from stored outputs.

    A model takes up the requests of all cells that are waiting for it at once. Those that come meanwhile wait until
    these are stored, so that a request which several cells share is computed once.

    Args:
        store: Has the outputs that the requests are made from.
        passes: The run's.
        anew: Models that compute all requests again, also those whose values are stored.
        give_up: Called with an evaluation whose requests cannot be listed, and the reason.
    """

    def __init__(
        self, store: Store, passes: Sequence[Pass], anew: Set[str], give_up: Callable[[int, str], None]
    ) -> None:
        self.store = store
        self.anew = anew
        self.give_up = give_up
        self._passes = {one_pass.node: one_pass for one_pass in passes if one_pass.of_items}
        self._members: dict[int, ItemMember] = {}  # evaluation id → the cell
        self._waiting: dict[str, list[ItemMember]] = {key: [] for key in self._passes}
        self._under_way: dict[str, set[int]] = {key: set() for key in self._passes}
        self._made: dict[str, set[str]] = {}  # node → the requests that this run had computed

    def add(self, cell: Cell, evaluation_id: int) -> None:
        """Adds a cell whose outputs are stored and that is scored with items."""
        member = self._members[evaluation_id] = ItemMember(cell, evaluation_id, list(cell.items))
        self._waiting[member.left[0].key].append(member)

    def holds(self, evaluation_id: int) -> bool:
        """Returns whether a cell waits for items."""
        return evaluation_id in self._members

    def ended(self, evaluation_id: int, failed: bool = False) -> bool:
        """Notes that the requests under way of a cell are computed, or that it has failed.

        Returns:
            Whether it waits for more items now.
        """
        for cells in self._under_way.values():
            cells.discard(evaluation_id)
        member = self._members.get(evaluation_id)
        if member is None:
            return False
        del member.left[0]
        if failed or not member.left:
            del self._members[evaluation_id]
            return False
        self._waiting[member.left[0].key].append(member)
        return True

    def next(self, numbers: Iterable[int]) -> tuple[list[Shard], list[int]]:
        """Returns the shards for models that compute no items at the moment, and the cells that are complete.

        Returns:
            The shards, and the evaluations that lack nothing any more.
        """
        shards: list[Shard] = []
        complete: list[int] = []
        while keys := [key for key, cells in self._waiting.items() if cells and not self._under_way[key]]:
            for key in keys:
                members, self._waiting[key] = self._waiting[key], []
                made, idle = self._take_up(self._passes[key], members, numbers)
                shards += made
                self._under_way[key] = {evaluation_id for shard in made for evaluation_id in shard.cells}
                complete += [each for each in idle if not self.ended(each)]
        return shards, complete

    def _take_up(
        self, one_pass: Pass, members: Sequence[ItemMember], numbers: Iterable[int]
    ) -> tuple[list[Shard], list[int]]:
        """The shards for some cells, and the cells that lack no value."""
        cells, requests = self._requests(members)
        groups: dict[tuple[int, ...], list[str]] = {}  # by the cells that need them: what fails, fails for these
        for request in self._lacking(one_pass, list(requests)):
            groups.setdefault(tuple(requests[request]), []).append(request)
        made = [shard for who, group in groups.items() for shard in shards_of_items(one_pass, group, who, numbers)]
        busy = {evaluation_id for shard in made for evaluation_id in shard.cells}
        return made, [cell for cell in cells if cell not in busy]

    def _requests(self, members: Sequence[ItemMember]) -> tuple[list[int], dict[str, list[int]]]:
        """The cells whose requests can be listed, and each of these requests with the cells that make it."""
        cells: list[int] = []
        requests: dict[str, list[int]] = {}
        for member in members:
            try:
                with catchable():
                    found = requests_of(self.store, member.cell, member.evaluation_id, member.left[0])
            except CorruptOutputError as error:
                self._give_up(member, str(error))
            except StoreError:
                raise
            except TestbedError as error:
                self._give_up(member, str(error))
            except Exception as error:  # a task may be a plug-in's, and libraries cut texts into sentences
                log.debug("the requests of %s cannot be listed", member.cell.name, exc_info=True)
                self._give_up(member, f"its {member.left[0].role} cannot be listed: {reason_of(error)}")
            else:
                cells.append(member.evaluation_id)
                for request in dict.fromkeys(found):
                    requests.setdefault(request, []).append(member.evaluation_id)
        return cells, requests

    def _give_up(self, member: ItemMember, reason: str) -> None:
        del self._members[member.evaluation_id]
        self.give_up(member.evaluation_id, reason)

    def _lacking(self, one_pass: Pass, requests: Sequence[str]) -> list[str]:
        made = self._made.setdefault(one_pass.node, set())
        if one_pass.models[0] in self.anew:
            lacking = [request for request in requests if request not in made]
        else:
            lacking = self.store.items.lacking(one_pass.node, requests)
        made.update(lacking)
        return lacking


def requests_of(store: Store, cell: Cell, evaluation_id: int, node: ItemNode) -> list[str]:
    """The requests that a cell is scored with the values of; some are made from the outputs of an evaluation."""
    assert cell.opened_setting is not None
    setting = cell.opened_setting.setting
    values = EvaluationValues(store, store.evaluations.get(evaluation_id))
    return [request_text(request) for request in node.items.requests(setting, values)]


def requests_from(cell: Cell, node: ItemNode, read: Callable[[], object] = lambda: None) -> list[str]:
    """The same for a cell that has no evaluation yet."""
    assert cell.opened_setting is not None
    opened = cell.opened_setting
    values = LateValues(read, opened.dataset.samples, class_names=opened.dataset.class_names)
    return [request_text(request) for request in node.items.requests(opened.setting, values)]

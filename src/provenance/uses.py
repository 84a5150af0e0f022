"""Finds what code depends on among all reads, sorted by owner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.provenance.manifest import Use, is_definition_file, is_standing_in
from testbed.tracing import access_log
from testbed.tracing.access_log import FILE, SHARED
from testbed.tracing.named_files import named_files


class Uses:
    """Finds what definitions depend on.

    Args:
        plugins: The definition files that are loaded.
        declared: True to include files whose content is a part of identities.
    """

    def __init__(self, plugins: Sequence[str], declared: bool = False) -> None:
        self._plugins = frozenset(plugins)
        self._declared = declared
        self._reads = (-1, -1)  # `access_log.counted` when what follows was sorted
        self._owned: dict[str, set[Use]] = {}
        self._shared: set[Use] = set()

    def of(self, files: Iterable[str], owners: Iterable[str]) -> set[Use]:
        """Returns the reads of some definitions, and the files that their code names.

        Args:
            files: The source files of the definitions.
            owners: Further owners of reads; see `testbed.tracing.access_log`.
        """
        self._refresh()
        whole = set(files)
        uses = {use for owner in (*owners, *map(access_log.code, whole)) for use in self._owned.get(owner, ())}
        return self._shared | _with_named_files(uses | {(FILE, file) for file in whole})

    def _refresh(self) -> None:
        """Sorts the reads by owner. Those of a module that is not a plug-in belong to all; a plug-in's own to none."""
        if (counted := access_log.counted()) == self._reads:
            return
        owned: dict[str, set[Use]] = {SHARED: set()}
        code = access_log.code("")
        for owner, kind, what, _ in access_log.noted(self._declared):
            file = owner.removeprefix(code)
            own = file == owner or file in self._plugins or is_definition_file(file)
            owned.setdefault(owner if own else SHARED, set()).add((kind, what))
        shared = owned.pop(SHARED) - {(FILE, plugin) for plugin in self._plugins}
        self._owned, self._shared, self._reads = owned, _with_named_files(shared), counted


def _with_named_files(uses: set[Use]) -> set[Use]:
    """Returns uses, and the files that source files among them name."""
    places = [access_log.place_of(name) for kind, name in uses if kind == FILE and name.endswith(".py")]
    sources = [place for place in places if not is_standing_in(place)]
    return uses.union(*({(FILE, file) for file in named_files(source)} for source in sources))

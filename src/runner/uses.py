"""What code depends on, of all that was read: sorted by whom it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed import reading
from testbed.named_files import named_files
from testbed.reading import FILE, SHARED
from testbed.record import Use, is_definition_file


class Uses:
    """Finds what definitions depend on.

    Args:
        plugins: The definition files that are loaded.
        declared: Whether files whose content is a part of identities count, too.
    """

    def __init__(self, plugins: Sequence[str], declared: bool = False) -> None:
        self._plugins = frozenset(plugins)
        self._declared = declared
        self._reads = -1  # the number of noted reads when `_owned` was computed
        self._owned: dict[str, set[Use]] = {}

    def of(self, files: Iterable[str], owners: Iterable[str]) -> set[Use]:
        """What was read for some definitions, and the files that their code names.

        Args:
            files: The source files of the definitions.
            owners: For whom else something was read; see `testbed.reading`.
        """
        self._refresh()
        whole = set(files)
        found = {use for owner in (SHARED, *owners, *map(reading.code, whole)) for use in self._owned.get(owner, ())}
        whole |= {name for kind, name in found if kind == FILE}
        whole |= {name for file in whole if file.endswith(".py") for name in named_files(reading.place_of(file))}
        return found | {(FILE, file) for file in whole}

    def _refresh(self) -> None:
        """Sorts what was read. What a module that is no plug-in reads belongs to all; a plug-in itself to none."""
        noted = reading.noted(self._declared)
        if len(noted) == self._reads:
            return
        owned: dict[str, set[Use]] = {SHARED: set()}
        code = reading.code("")
        for owner, kind, what in noted:
            file = owner.removeprefix(code)
            own = file == owner or file in self._plugins or is_definition_file(file)
            owned.setdefault(owner if own else SHARED, set()).add((kind, what))
        owned[SHARED] -= {(FILE, plugin) for plugin in self._plugins}
        self._owned, self._reads = owned, len(noted)

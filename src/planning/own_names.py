"""Gives models in files of the user's own short names, and finds again what they stand for."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from testbed.data.content import remembered_digest
from testbed.errors import DefinitionError, StoreError
from testbed.inputs import Inputs, OwnName, using
from testbed.models.made.names import looks_made
from testbed.registry.catalog import Catalog
from testbed.registry.own_files import own_path, short_names
from testbed.registry.table import check_name


def own_names_of(url: str | None) -> tuple[OwnName, ...]:
    """The short names that a store has; none if there is no such store, or it cannot be read."""
    from testbed.db.store import Store  # takes longer than the help of a command

    try:
        with Store.open(url) as store:
            return store.names.own()
    except StoreError:
        return ()


def with_short_names(
    catalog: Catalog, models: Sequence[str], inputs: Inputs, url: str | None, wanted: str | None = None
) -> tuple[list[str], Inputs, list[str]]:
    """Gives models in files their short names: those that the store has, else their stems, made unique.

    Args:
        models: Canonical names.
        inputs: The inputs of the run, with the short names of the store.
        wanted: The name of the only model in a file, if the user chose one.

    Returns:
        The names by which the models are evaluated, the inputs that include them, and lines for the user.

    Raises:
        DefinitionError: If the chosen name is taken, or there is not one model that it could belong to.
    """
    namer = _Namer(catalog, inputs, url)
    asked = [namer.reference(name) for name in models]
    own = [each for each in asked if isinstance(each, OwnName)]
    if wanted is not None and len(own) != 1:
        raise DefinitionError(f"the name {wanted!r} is for one model in a file; there are {len(own)} here")
    same = Counter(short_names(_path(each))[0] for each in own)
    names = []
    for each, name in zip(asked, models, strict=True):
        if not isinstance(each, OwnName):
            names.append(name)
        elif wanted is not None:
            names.append(namer.choose(each, wanted))
        else:
            names.append(namer.name(each, alone=same[short_names(_path(each))[0]] == 1))
    return names, replace(inputs, own_names=tuple(namer.known.values())), namer.said


class _Namer:
    """Names given so far.

    Args:
        catalog: As of `with_short_names`.
        inputs: Likewise.
        url: Likewise.
    """

    def __init__(self, catalog: Catalog, inputs: Inputs, url: str | None) -> None:
        self.catalog = catalog
        self.inputs = inputs
        self.url = url
        self.known = {own_name.name: own_name for own_name in inputs.own_names}
        self.said: list[str] = []
        self._stored: set[str] | None = None

    def reference(self, name: str) -> OwnName | str:
        """A model in a file as it is asked for, still without a name; any other model's name."""
        given = self.inputs.preprocessing
        before = self.known.get(name)
        if before is not None:
            return replace(
                before,
                name="",
                preprocessing=given.or_else(before.preprocessing),
                class_order=self.inputs.class_order or before.class_order,
                weights_entry=self.inputs.weights_entry or before.weights_entry,
                match_by_order=self.inputs.match_by_order or before.match_by_order,
            )
        if looks_made(name) or own_path(name) is None or self.catalog.models.defines(name):
            return name
        found = OwnName(
            "",
            name,
            given,
            self.inputs.class_order,
            weights_entry=self.inputs.weights_entry,
            match_by_order=self.inputs.match_by_order,
        )
        path = _path(found)
        return replace(found, content=remembered_digest(path) if path.is_file() else "")

    def name(self, own: OwnName, alone: bool) -> str:
        """The name of a model in a file: the one that it has, else a new one."""
        for own_name in self.known.values():
            if own_name.reference == own.reference:
                return self._keep(own, own_name.name)
        if own.reference in self.stored:  # from before there were short names
            return own.reference
        path = _path(own)
        moved = next((own_name for own_name in self.known.values() if _has_moved(own_name, own)), None)
        if moved is not None:
            self.said.append(f"{moved.name}: the file has moved from {_path(moved)} to {path}")
            return self._keep(own, moved.name)
        stem, *longer = short_names(path)
        first = [stem] if alone and not stem.isdecimal() else []  # a number would be an evaluation's
        candidates = [*first, *longer, *(f"{stem}-{number}" for number in range(2, 1000))]
        found = next(candidate for candidate in candidates if not self._taken(candidate))
        if found != stem:
            self.said.append(f"{path} is named {found}; {self._why(stem, own)}")
        return self._keep(own, found)

    def choose(self, own: OwnName, wanted: str) -> str:
        """The name that the user chose; raises DefinitionError if it is another model's."""
        check_name("model", wanted, "--as")
        before = self.known.get(wanted)
        if before is not None and _before(before) == _before(own) and before.reference == own.reference:
            return self._keep(own, wanted)
        former = next((own_name.name for own_name in self.known.values() if own_name.reference == own.reference), None)
        if former is None and own.reference in self.stored:
            former = own.reference
        if self._taken(wanted):
            stands = f" ({before.reference})" if before is not None else ""
            raise DefinitionError(f"the name {wanted!r} is another model's{stands}; choose another one")
        if former is not None:
            from testbed.db.store import Store

            with Store.open(self.url, "write") as store:
                store.names.rename("model", former, wanted)
            self.known.pop(former, None)
            self.said.append(f"{former} is now named {wanted}, also what is stored of it")
        return self._keep(own, wanted)

    def _keep(self, own: OwnName, name: str) -> str:
        self.known[name] = replace(own, name=name)
        return name

    @property
    def stored(self) -> set[str]:
        """The names of all models in the store."""
        if self._stored is None:
            from testbed.db.store import Store

            try:
                with Store.open(self.url) as store:
                    self._stored = store.names.taken("model")
            except StoreError:
                self._stored = set()
        return self._stored

    def _taken(self, name: str) -> bool:
        if name in self.known or name in self.stored or name in self.catalog.model_collections:
            return True
        with using(self.inputs):
            return name in self.catalog.models

    def _why(self, stem: str, own: OwnName) -> str:
        before = self.known.get(stem)
        if before is None:
            return f"{stem} is another model's name, or several files here have it"
        return f"{stem} is {before.reference}"


def _path(own: OwnName) -> Path:
    found = own_path(own.reference)
    return Path(own.reference) if found is None else found[1]


def _before(own: OwnName) -> str:
    found = own_path(own.reference)
    return "" if found is None else found[0]


def _has_moved(before: OwnName, own: OwnName) -> bool:
    """Checks whether a file is the one that a name stands for, if its former place is empty now."""
    same = before.content != "" and before.content == own.content and _before(before) == _before(own)
    return same and not os.path.exists(_path(before))

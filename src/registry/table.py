"""A generic table of named definitions and the places where they are written."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from testbed.errors import DefinitionError, DuplicateNameError, TestbedError, UnknownNameError, unknown_name
from testbed.inputs import Inputs, active

T = TypeVar("T")
log = logging.getLogger("testbed")
T_co = TypeVar("T_co", covariant=True)


class Family(Protocol[T_co]):
    """Many definitions that follow one rule, built on demand.

    An explicit definition takes precedence over a family's definition of the same name.
    """

    name: str

    def names(self) -> Iterable[str]:
        """The names to list. Must not build definitions or import heavy libraries."""
        ...

    def canonical(self, name: str) -> str | None:
        """Returns this family's canonical form of ``name``, or None if it does not belong to the family."""
        ...

    def build(self, name: str) -> T_co:
        """Builds the definition of a canonical name."""
        ...


@dataclass(frozen=True)
class DefinitionSource:
    """The place where a definition is written.

    Attributes:
        main: True if that is the program itself (``__main__``), such as a script or the cells of a notebook.
    """

    file: str
    line: int
    main: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


def natural_key(name: str) -> list[tuple[int, int | str]]:
    """Sorts ``a2`` before ``a10``, and ignores case (deterministically)."""
    parts: list[tuple[int, int | str]] = [
        (0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name.lower()) if part
    ]
    return [*parts, (-1, name)]


def caller_source(skip: Callable[[str], bool]) -> DefinitionSource:
    """The nearest place on the call stack outside of skipped modules."""
    frame = sys._getframe(1)
    while frame.f_back is not None and skip(str(frame.f_globals.get("__name__", ""))):
        frame = frame.f_back
    return DefinitionSource(frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__") == "__main__")


_THROUGH = ("testbed.registry", "testbed.api")  # what definitions are registered through


class Registry(Generic[T]):
    """Named definitions of one kind, such as models.

    Args:
        noun: The word for a definition in messages, such as ``"model"``.
        listing: The command that lists the names, for messages.
    """

    def __init__(self, noun: str, listing: str = "names()") -> None:
        self.noun = noun
        self.listing = listing
        self._items: dict[str, Callable[[], T]] = {}
        self._sources: dict[str, DefinitionSource] = {}
        self._families: dict[str, Family[T]] = {}
        self._built: dict[tuple[str, Inputs], T] = {}
        self.faults: Mapping[str, str] = {}  # definition files that could not be loaded → why
        self.disputed: dict[str, str] = {}  # names that two definition files define → where
        self.allows_disputes = False  # while definition files are loaded

    def add(self, name: str, item: T, source: DefinitionSource | None = None) -> T:
        """Registers one definition. One from a notebook cell replaces an earlier one of that name, as cells run again.

        Raises:
            DefinitionError: If the name is not valid.
            DuplicateNameError: If another explicit definition has the name; the message names both places.
        """
        self._add(name, lambda: item, source or caller_source(lambda module: module.startswith(_THROUGH)))
        return item

    def add_made(self, name: str, make: Callable[[], T], source: DefinitionSource, instead_of: str = "") -> None:
        """Registers one definition that depends on the active `Inputs`.

        Args:
            make: Returns the definition on each request; see `testbed.inputs.once_for_inputs`.
            source: The place where it was written.
            instead_of: A file whose definition of that name, if there is one, is replaced.

        Raises:
            DuplicateNameError: As `add`.
        """
        if name in self._items and self._sources[name].file == instead_of:
            del self._items[name], self._sources[name]
        self._add(name, make, source)

    def _add(self, name: str, item: Callable[[], T], source: DefinitionSource) -> None:
        check_name(self.noun, name, source)
        if name in self._items and not (source.main and self._sources[name].main):
            where = f"one at {self._sources[name]}, another at {source}; rename one"
            message = f"two {self.noun}s are named {name!r}: {where}"
            if not self.allows_disputes:
                raise DuplicateNameError(message)
            self.disputed.setdefault(name, message)
            return
        self._items[name] = item
        self._sources[name] = source

    def add_family(self, family: Family[T]) -> Family[T]:
        """Registers a family of definitions, without building them."""
        if family.name in self._families:
            raise DuplicateNameError(
                f"two families of {self.noun}s are named {family.name!r}: {type(self._families[family.name])} and"
                f" {type(family)}"
            )
        self._families[family.name] = family
        return family

    def canonical(self, name: str) -> str | None:
        """The canonical form of ``name``, or None if it is unknown. Builds nothing."""
        return self.plain(name)

    def plain(self, name: str) -> str | None:
        """The canonical form of a name that is defined, or one of a family."""
        if name in self._items:
            return name
        claims = self._claims(name)
        if len(claims) > 1:
            families = " and ".join(family.name for family, _ in claims)
            raise DuplicateNameError(
                f"the {self.noun} {name!r} is claimed by the families {families}; put the library before it, as in"
                f" torchvision/{name} or open_clip/{name}"
            )
        return claims[0][1] if claims else None

    def _claims(self, name: str) -> list[tuple[Family[T], str]]:
        """The families that accept a name, with its canonical form; of those that change others' names, these alone."""
        claims = [(family, known) for family in self._families.values() if (known := family.canonical(name))]
        return [claim for claim in claims if getattr(claim[0], "changes_others", False)] or claims

    def get(self, name: str) -> T:
        """The definition with this name; builds definitions of families.

        Raises:
            UnknownNameError: If there is none; the message suggests the nearest names.
            DuplicateNameError: If two definition files define it.
        """
        if name in self.disputed:
            raise DuplicateNameError(self.disputed[name])
        if name in self._items:
            return self._items[name]()
        canonical = self.canonical(name)
        if canonical is None:
            raise self.unknown(name)
        if canonical in self._items:
            return self._items[canonical]()
        key = (canonical, active())  # a family may have to read the data to build a definition
        if key not in self._built:
            family = next(family for family, known in self._claims(name) if known == canonical)
            if getattr(family, "reads_files", False):  # which may change while this program runs, as in a notebook
                return family.build(canonical)
            self._built[key] = family.build(canonical)
        return self._built[key]

    def find(self, name: str) -> T | None:
        """The definition with this name; None if there is none, or if it cannot be built here."""
        try:
            return None if self.canonical(name) is None else self.get(name)  # no nearest names are looked for
        except TestbedError as error:
            log.debug("%s", error)
            return None

    def explain(self, name: str) -> str | None:
        """Explains why a family does not accept a name that looks like one of its own; None without a reason."""
        for family in self._families.values():
            explain = getattr(family, "explain", None)
            if explain is not None and (reason := explain(name)) is not None:
                return str(reason)
        return None

    def unknown(self, name: str, others: Iterable[str] = ()) -> UnknownNameError:
        """The error for an unknown name: a family's explanation, else the nearest names, ``others`` among them."""
        reason = self.explain(name)
        if reason is not None:
            return UnknownNameError(f"{self.noun} {name!r}: {reason}")
        error = unknown_name(self.noun, name, [*self.names(), *others], "the registry", self.listing)
        failed = "".join(f"; {why}" for why in self.faults.values())
        return UnknownNameError(f"{error}{failed}") if failed else error

    def names(self) -> list[str]:
        """Lists all names, in natural order."""
        names = set(self._items)
        for family in self._families.values():
            names.update(family.names())
        return sorted(names, key=natural_key)

    def keys(self) -> list[str]:
        """Lists all names: the registry as a mapping, like ImageNet-testbed's."""
        return self.names()

    def values(self) -> Iterator[T]:
        """Yields all listed definitions; each is built when its turn comes."""
        return (self.get(name) for name in self.names())

    def items(self) -> Iterator[tuple[str, T]]:
        """Yields all listed names with their definitions; each is built when its turn comes."""
        return ((name, self.get(name)) for name in self.names())

    def defines(self, name: str) -> bool:
        """Checks whether there is an explicit definition of a name."""
        return name in self._items

    def replaces(self, name: str) -> bool:
        """Checks whether an explicit definition replaces a family's of the same name."""
        return name in self._items and any(family.canonical(name) == name for family in self._families.values())

    def source(self, name: str) -> str:
        """The place of a definition: ``file:line``, or the family's name."""
        canonical = self.canonical(name)
        if canonical in self._sources:
            return str(self._sources[canonical])
        for family in self._families.values():
            if canonical is not None and family.canonical(name) == canonical:
                return f"family {family.name}"
        raise unknown_name(self.noun, name, self.names(), "the registry", self.listing)

    def in_main(self) -> set[str]:
        """Returns the names of the definitions that the program itself has registered; other processes lack them."""
        return {name for name, source in self._sources.items() if source.main}

    def origin(self, name: str) -> str | None:
        """The file of a definition, or of its family; None if it has none."""
        canonical = self.canonical(name)
        if canonical in self._sources:
            return self._sources[canonical].file
        for family in self._families.values():
            if canonical is not None and family.canonical(name) == canonical:
                return getattr(sys.modules.get(type(family).__module__), "__file__", None)
        return None

    def snapshot(self) -> tuple[Mapping[str, Any], ...]:
        """Returns the registered definitions, for `restore`."""
        return dict(self._items), dict(self._sources), dict(self._families), dict(self.disputed)

    def restore(self, snapshot: tuple[Mapping[str, Any], ...]) -> None:
        """Forgets what was registered since a snapshot."""
        self._items, self._sources, self._families, self.disputed = (dict(part) for part in snapshot)
        self._built.clear()

    def __getitem__(self, name: str) -> T:
        return self.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.canonical(name) is not None

    def __len__(self) -> int:
        return len(self.names())


def check_name(noun: str, name: object, source: DefinitionSource | Path | str) -> None:
    """Refuses names that cannot be used on a command line, in a file of names or in a pattern."""
    if not isinstance(name, str) or not name:
        raise DefinitionError(f"a {noun} at {source} has the name {name!r}; a name is a non-empty string")
    if any(character.isspace() or not character.isprintable() for character in name):
        raise DefinitionError(f"the {noun} name {name!r} at {source} contains white space; names are single words")
    if any(character in "*?[" for character in name) or name.startswith(("-", "#")):
        raise DefinitionError(
            f"the {noun} name {name!r} at {source} would be read as a pattern, an option or a comment;"
            " leave out '*', '?', '[' and a leading '-' or '#'"
        )

"""The errors that testbed raises on purpose.

All of them derive from `TestbedError`; the command line prints their message without a traceback. A message states what
was found, what was expected, and what to do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from testbed.redaction import redacted

LONGEST = 2000  # characters of a message
_HALF = re.compile("[\ud800-\udfff]")


class TestbedError(Exception):
    """Base of every error that a user can cause or repair.

    The URLs in its message show no passwords; of a long message `str` gives the beginning and the end.
    """

    report: Any = None  # the progress of the run that it ended
    __test__ = False  # pytest would otherwise try to collect a class whose name begins with Test

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(redacted(argument) if isinstance(argument, str) else argument for argument in arguments))

    def __str__(self) -> str:
        return within(super().__str__())


class DefinitionError(TestbedError):
    """A model, setting or collection is defined wrongly."""


class DuplicateNameError(DefinitionError):
    """Two definitions claim one name."""


class PluginError(DefinitionError):
    """A plug-in or a definition file could not be loaded."""


class ExtensionError(TestbedError):
    """An installed extension is missing or could not be loaded."""


class IdentityError(DefinitionError):
    """A definition holds something whose content could change without being noticed."""


class UnknownNameError(TestbedError, LookupError):
    """A name is neither registered nor stored.

    Not a `KeyError`: its `str()` would be a repr of the message.
    """


class DataError(TestbedError):
    """A data set is missing, incomplete or not in the expected form."""


class SampleError(DataError):
    """One sample cannot be read; the rest of the data set can."""


class WeightsError(TestbedError):
    """A model's weights are missing or do not fit its architecture."""


class UnreachedError(TestbedError):
    """A question did not get through to a served model, or the model could not take it just now; asking again may help.

    Generators raise it, or put it in place of an answer; what has no answer is asked again by the next run.
    """


class RefusedError(TestbedError):
    """A served model has no answer to a question, and asking again would not help: it is stored as an error."""


class UnsupportedError(TestbedError):
    """A model does not have what a setting needs."""


class RunError(TestbedError):
    """A run cannot start or cannot go on."""


class MissingExtraError(TestbedError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package}: pip install -e '.[{extra}]'")
        self.package = package
        self.extra = extra


class StoreError(TestbedError):
    """The results store cannot do what was asked."""


class SchemaError(StoreError):
    """The database has another schema version than this testbed."""


class MissingStoreError(SchemaError):
    """There is no results store at a place, or a database without one."""


class ReadOnlyStoreError(StoreError):
    """The database cannot be written."""


class StoreUnreachableError(StoreError):
    """The database does not answer; it may later."""


class StoreDamagedError(StoreError):
    """The database itself reports that a part of it is corrupt.

    Attributes:
        what: The damage, without the advice that follows it in the message.
    """

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what}; {advice}" if advice else what)
        self.what = what


class StoreConflictError(StoreError):
    """Another program changed the same rows at the same moment; the same operation may succeed now."""


class StoreFullError(StoreError):
    """The disk of the database is full."""


class CorruptOutputError(StoreError):
    """A stored payload differs from its checksum."""


class UnreadOutputError(CorruptOutputError):
    """A stored payload cannot be read now; its bytes may be intact.

    Attributes:
        silent: The URL of the place, if the place does not answer, so that no other file there can be read either.
    """

    silent: str = ""


class LostOutputError(UnreadOutputError):
    """There is no file where a payload was stored."""


class LackingEmbeddingsError(StoreError):
    """Embeddings of a scorer that a cell needs are not in the store."""


def within(text: str, longest: int = LONGEST) -> str:
    """A text of at most so many characters: of a longer one the beginning and the end."""
    if len(text) <= longest:
        return text
    gap = f" … ({len(text):,} characters) … "
    kept = longest - len(gap)
    return f"{text[: kept - kept // 3]}{gap}{text[-(kept // 3) :]}"


def well_formed(text: str) -> str:
    """A text with U+FFFD in place of halves of surrogate pairs, which no file in UTF-8 can hold."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def message_of(error: BaseException) -> str:
    """The message of any error, at most `LONGEST` characters; empty if it has none or cannot give it.

    Errors of users' code may raise when they are asked for their message, or return something else than a string.
    """
    try:
        return within(str(error))
    except Exception:
        return ""


def shortened(text: str, longest: int = 60) -> str:
    """The repr of a text, for messages; of a long text its beginning."""
    return repr(text) if len(text) <= longest else f"{text[:longest]!r}… ({len(text):,} characters)"


def unknown_name(noun: str, name: str, known: Sequence[str], where: str, command: str) -> UnknownNameError:
    """Builds the error for an unknown name: the nearest names, then what there is.

    Args:
        noun: The supposed kind of the name, such as ``"model"``.
        name: The name as it was given.
        known: Every name there is.
        where: The place of the search, such as ``"the registry"``.
        command: The command that lists them all.
    """
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if not near and len(name) > 2:
        near = [candidate for candidate in known if name.lower() in candidate.lower()][:3]
    message = f"unknown {noun} {name!r} in {where}"
    if near:
        message += "; did you mean " + " or ".join(repr(candidate) for candidate in near) + "?"
    if not known:
        return UnknownNameError(f"{message}; none are registered ({command} lists them)")
    if len(known) <= 12:
        return UnknownNameError(f"{message}; there are: {', '.join(known)}")
    return UnknownNameError(f"{message}; there are {len(known)}, which {command} lists")

"""Cutting texts into sentences.

NLTK's punkt needs data that do not come with the package; they are never downloaded here. Where they are not, sentencex
takes its place: rules for many languages, all in the package.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Protocol

from testbed.errors import DataError, MissingExtraError, unknown_name

METHODS = ("auto", "nltk", "sentencex", "pysbd")

log = logging.getLogger("testbed")

_SURROGATE = re.compile("[\ud800-\udfff]")
_NLTK_LANGUAGES = {  # of punkt_tab, by ISO 639-1
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "fi": "finnish",
    "fr": "french",
    "it": "italian",
    "ml": "malayalam",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
    "sl": "slovene",
    "sv": "swedish",
    "tr": "turkish",
}


class Splitter(Protocol):
    """Cuts texts into sentences.

    Attributes:
        id: All that the sentences depend on: package, version, data and language, such as ``"sentencex 1.0.32 en"``.
    """

    @property
    def id(self) -> str:
        """All that the sentences depend on."""
        ...

    def split(self, text: str) -> list[str]:
        """The sentences of a text in their order, stripped, none of them empty; a blank text has none."""
        ...


class SentenceSplitter:
    """A splitter from any function that cuts a text.

    Args:
        id: All that the sentences depend on.
        cut: Takes a text that is neither blank nor has white space at its ends, and gives its pieces.
    """

    def __init__(self, id: str, cut: Callable[[str], Iterable[str]]) -> None:
        self.id = id
        self.cut = cut

    def split(self, text: str) -> list[str]:
        """The sentences of a text; what is not blank has at least one."""
        stripped = plain(text)
        if not stripped:
            return []
        return [piece for piece in (each.strip() for each in self.cut(stripped)) if piece] or [stripped]


def plain(text: str) -> str:
    """A text without white space at its ends, lone surrogates (which UTF-8 cannot write) replaced by U+FFFD."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).strip()


def get_splitter(method: str = "auto", language: str = "en") -> Splitter:
    """A way to cut texts into sentences.

    Args:
        method: ``"nltk"`` or ``"auto"``: punkt of NLTK where its data (punkt_tab) lie in a folder of NLTK, else
            sentencex, which is logged once. ``"sentencex"``. ``"pysbd"``, of the extra ``sentences``.
        language: ISO 639-1, such as ``"en"``.

    Raises:
        UnknownNameError: If there is no such method.
        DataError: If the method does not know the language.
        MissingExtraError: If its package is not installed.
    """
    if method not in METHODS:
        raise unknown_name("way to cut sentences", method, METHODS, "the known ones", "the documentation")
    if method in ("auto", "nltk"):
        return _nltk(language) or _sentencex(language)
    return _sentencex(language) if method == "sentencex" else _pysbd(language)


def _nltk(language: str) -> Splitter | None:
    """Punkt; None where it has no data for the language."""
    name = _NLTK_LANGUAGES.get(language)
    if name is not None:
        try:
            return _punkt(name, tuple(importlib.import_module("nltk.data").path))
        except LookupError:
            pass
    _say_once(f"there are no punkt data of NLTK for the language {language!r}: sentencex cuts texts into sentences")
    return None


@lru_cache
def _punkt(name: str, folders: tuple[str, ...]) -> Splitter:
    """Punkt for a language, read once; what is not there is looked for again each time.

    Args:
        name: NLTK's name of the language.
        folders: Where NLTK looks for data.

    Raises:
        LookupError: If the data are in none of them, or not whole.
    """
    tokenizer = importlib.import_module("nltk.tokenize.punkt").PunktTokenizer(name)
    described = f"nltk {version('nltk')} punkt_tab {name} {_digest(tokenizer)}"
    return SentenceSplitter(described, tokenizer.sentences_from_text)


def _digest(tokenizer: Any) -> str:
    """Eight digits of what punkt has learned: the data have no version."""
    learned = tokenizer._params
    parts = [
        sorted(learned.collocations),
        sorted(learned.sent_starters),
        sorted(learned.abbrev_types),
        sorted(learned.ortho_context.items()),
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


@lru_cache
def _say_once(message: str) -> None:
    log.warning(message)


def _sentencex(language: str) -> Splitter:
    segment = importlib.import_module("sentencex").segment
    return SentenceSplitter(f"sentencex {version('sentencex')} {language}", lambda text: segment(language, text))


def _pysbd(language: str) -> Splitter:
    try:
        package = importlib.import_module("pysbd")
        found = version("pysbd")
    except ImportError:
        raise MissingExtraError("pysbd", "sentences", "cutting texts into sentences by pysbd") from None
    known = importlib.import_module("pysbd.languages").LANGUAGE_CODES
    if language not in known:
        raise DataError(f"pysbd does not know the language {language!r}, it knows: {', '.join(sorted(known))}")
    segmenter = package.Segmenter(language=language, clean=False)
    return SentenceSplitter(f"pysbd {found} {language}", segmenter.segment)

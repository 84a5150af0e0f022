"""Splits texts into sentences.

NLTK's punkt needs data that the package does not include, and that are never downloaded here. Without them, sentencex
is used: rules for many languages, included in the package.
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
    """Splits texts into sentences.

    Attributes:
        id: Everything that the sentences depend on: package, version, data, language (``"sentencex 1.0.32 en"``).
    """

    @property
    def id(self) -> str:
        """Everything that the sentences depend on."""
        ...

    def split(self, text: str) -> list[str]:
        """The sentences of a text in order, stripped and not empty; a blank text has none."""
        ...


class SentenceSplitter:
    """A splitter from any function that splits a text.

    Args:
        id: Everything that the sentences depend on.
        cut: Takes a stripped text that is not blank, and returns its pieces.
    """

    def __init__(self, id: str, cut: Callable[[str], Iterable[str]]) -> None:
        self.id = id
        self.cut = cut

    def split(self, text: str) -> list[str]:
        """The sentences of a text; a text that is not blank has at least one."""
        stripped = plain(text)
        if not stripped:
            return []
        return [piece for piece in (sentence.strip() for sentence in self.cut(stripped)) if piece] or [stripped]


def plain(text: str) -> str:
    """A stripped text, with unpaired surrogates (which UTF-8 cannot encode) replaced by U+FFFD."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).strip()


def get_splitter(method: str = "auto", language: str = "en") -> Splitter:
    """A sentence splitter.

    Args:
        method: ``"nltk"`` or ``"auto"``: NLTK's punkt if its data (punkt_tab) are in one of NLTK's folders, else
            sentencex, which is logged once. ``"sentencex"``. ``"pysbd"``, from the extra ``sentences``.
        language: The language (ISO 639-1), such as ``"en"``.

    Raises:
        UnknownNameError: If there is no such method.
        DataError: If the method does not support the language.
        MissingExtraError: If its package is not installed.
    """
    if method not in METHODS:
        raise unknown_name("way to cut sentences", method, METHODS, "the known ones", "the documentation")
    if method in ("auto", "nltk"):
        return _nltk(language) or _sentencex(language)
    return _sentencex(language) if method == "sentencex" else _pysbd(language)


def _nltk(language: str) -> Splitter | None:
    """Returns Punkt; None if it has no data for the language."""
    name = _NLTK_LANGUAGES.get(language)
    if name is not None:
        try:
            return _punkt(name, tuple(importlib.import_module("nltk.data").path))
        except LookupError:
            pass
    _say_once(f"NLTK has no punkt data for the language {language!r}; using sentencex to split sentences")
    return None


@lru_cache
def _punkt(name: str, folders: tuple[str, ...]) -> Splitter:
    """Returns Punkt for a language, cached once found; raises LookupError if the data are missing or incomplete."""
    tokenizer = importlib.import_module("nltk.tokenize.punkt").PunktTokenizer(name)
    described = f"nltk {version('nltk')} punkt_tab {name} {_digest(tokenizer)}"
    return SentenceSplitter(described, tokenizer.sentences_from_text)


def _digest(tokenizer: Any) -> str:
    """An eight-digit digest of punkt's parameters, since the data have no version."""
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
        release = version("pysbd")
    except ImportError:
        raise MissingExtraError("pysbd", "sentences", "splitting sentences with pysbd") from None
    known = importlib.import_module("pysbd.languages").LANGUAGE_CODES
    if language not in known:
        raise DataError(f"pysbd does not support the language {language!r}; it supports: {', '.join(sorted(known))}")
    segmenter = package.Segmenter(language=language, clean=False)
    return SentenceSplitter(f"pysbd {release} {language}", segmenter.segment)

"""Class names in words, and templates, for folders of images whose names are all that is known of the classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from testbed.data.language.class_vocabulary import imagenet, openai_names, wordnet_names
from testbed.errors import DataError

TEMPLATE = "a photo of a {c}."
_WORDNET_ID = re.compile(r"(?<![a-z0-9])n\d{8}(?![a-z0-9])", re.IGNORECASE)
_NUMBER = re.compile(r"\d+[\s._-]+(?=[^\W\d])")  # "001.Black_footed_Albatross"


@dataclass(frozen=True)
class ClassWords:
    """The names of class folders in prompts.

    Attributes:
        folders: The names of the folders.
        names: The name of each class in words.
        imagenet: True if all of them are classes of ImageNet-1k, whose names these then are.
    """

    folders: tuple[str, ...]
    names: tuple[str, ...]
    imagenet: bool

    @property
    def changed(self) -> dict[str, str]:
        """Folder → name, where these differ."""
        pairs = zip(self.folders, self.names, strict=True)
        return {folder: name for folder, name in pairs if folder != name}

    def templates(self) -> list[str]:
        """Returns OpenAI's 80 templates for classes of ImageNet, else ``a photo of a {c}.``."""
        if not self.imagenet:
            return [TEMPLATE]
        from testbed.data.sets.imagenet import templates

        return templates()


@lru_cache(maxsize=64)
def words_of(folders: tuple[str, ...]) -> ClassWords:
    """Returns the names of classes in words, derived from their folders' names.

    A WordNet id, alone or with more beside it, gives ImageNet's name (OpenAI's), or WordNet's first word for it. Names
    that are all ImageNet's, each of another class, also become ImageNet's. Otherwise underscores become spaces, and a
    number in front of a name is dropped (``001.Black_footed_Albatross``). Names that are only numbers stay: their
    meaning is unknown.
    """
    known = _in_imagenet(folders)
    if known is not None:
        return ClassWords(folders, tuple(map(_openai_name, known)), imagenet=True)
    return ClassWords(folders, tuple(map(_in_words, folders)), imagenet=False)


def _in_imagenet(folders: Sequence[str]) -> list[int] | None:
    """Finds the ImageNet classes of the folders; None if one has none, or two have the same."""
    try:
        vocabulary = imagenet()
    except DataError:  # timm, which has the tables, is not installed
        return None
    choices: list[tuple[int, ...]] = [
        () if folder.strip().isdigit() else vocabulary.candidates(folder) for folder in folders
    ]
    indices = [candidates[0] for candidates in choices if len(candidates) == 1]
    return indices if folders and len(set(indices)) == len(folders) else None


def _openai_name(index: int) -> str:
    names = openai_names()
    return names[index] if index < len(names) else imagenet().display(index)


def _in_words(folder: str) -> str:
    ids = _WORDNET_ID.findall(folder)
    name = _of_wordnet(ids[0].lower()) if len(ids) == 1 else None
    if name is not None:
        return name
    words = " ".join(folder.replace("_", " ").split())
    return _NUMBER.sub("", words, count=1) if _NUMBER.match(words) else words or folder


def _of_wordnet(wnid: str) -> str | None:
    """The name of a WordNet id, if it is known."""
    try:
        vocabulary = imagenet()
    except DataError:
        return None
    if wnid in vocabulary.ids:
        return _openai_name(vocabulary.ids.index(wnid))
    names = wordnet_names([wnid])
    return None if names is None else names[0]

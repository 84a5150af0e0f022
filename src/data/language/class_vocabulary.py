"""The classes of a network's outputs by their names: WordNet ids, ImageNet's names and synonyms, numbers.

Names come from the tables of installed libraries, which are read as files: timm's WordNet ids and lemmas, open_clip's
names (OpenAI's) and torchvision's categories. Nothing is imported and nothing is copied.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from testbed.data.sets.imagenet import information

IMAGENET_1K = "ImageNet-1k"
# timm's file of WordNet ids of each published set of classes, in the order of the logits.
SUBSETS = {
    IMAGENET_1K: "imagenet_synsets.txt",
    "ImageNet-12k": "imagenet12k_synsets.txt",
    "ImageNet-21k (Google)": "imagenet21k_goog_synsets.txt",
    "ImageNet-21k-P (MIIL)": "imagenet21k_miil_synsets.txt",
    "ImageNet-22k": "imagenet22k_synsets.txt",
    "ImageNet-22k (Microsoft)": "imagenet22k_ms_synsets.txt",
}
READ_AS = "read_as"  # in what determines metrics: what outputs are, and whether all of them count
_WORDNET_ID = re.compile(r"(?<![a-z0-9])n\d{8}(?![a-z0-9])", re.IGNORECASE)
_NUMBERED = re.compile(r"\d+[\s._-]+(?=\D)")  # "022.bald_eagle"
_NEAR = 0.75


class ClassVocabulary:
    """The class of each output of a network, and its names.

    Args:
        title: The title of the set of classes, for messages.
        ids: A unique name of each class, such as its WordNet id: what is stored.
        names: The names of each class that come first, the one to show first.
        synonyms: Further names of each class; they give way to other classes' first names.
        numbered: True if a number stands for the class at that place.
    """

    def __init__(
        self,
        title: str,
        ids: Sequence[str],
        names: Sequence[Sequence[str]],
        synonyms: Sequence[Sequence[str]] = (),
        numbered: bool = True,
    ) -> None:
        self.title = title
        self.ids = tuple(ids)
        self._names = tuple(tuple(name) for name in names)
        self._synonyms = tuple(tuple(synonym) for synonym in synonyms) or ((),) * len(self.ids)
        self._numbered = numbered

    @property
    def published(self) -> bool:
        """True if it is one of `SUBSETS`, which its title names."""
        return self.title in SUBSETS

    def __len__(self) -> int:
        """The number of classes."""
        return len(self.ids)

    def wnid(self, index: int) -> str:
        """The id of a class, which is its WordNet id if it is one of ImageNet's."""
        return self.ids[index]

    def display(self, index: int) -> str:
        """The name of a class for people; two classes never share one."""
        return self.displayed[index]

    def names(self, index: int) -> list[str]:
        """Returns all names of a class besides its id."""
        return list(dict.fromkeys((*self._names[index], *self._synonyms[index])))

    def resolve(self, name: str) -> int | tuple[int, ...]:
        """The class that a name stands for.

        Args:
            name: A WordNet id, alone or with more beside it (``n01614925-bald_eagle``); a name or synonym in any case,
                with spaces, underscores, hyphens or apostrophes or without; a class number (``22``, ``0022``).

        Returns:
            The index of the class; or the indices of all that it may stand for: several, or none.
        """
        candidates = self.candidates(name)
        return candidates[0] if len(candidates) == 1 else candidates

    def candidates(self, name: str) -> tuple[int, ...]:
        """Returns all classes that a name may stand for, ascending: none, one or several."""
        exact = self._by_id.get(_composed(name))
        if exact is not None:
            return (exact,)
        told = {wordnet_id.lower() for wordnet_id in _WORDNET_ID.findall(name)}
        if told:
            ids = [{self._by_id[name]} if name in self._by_id else self._by_synonym.get(name, set()) for name in told]
            return tuple(sorted(set().union(*ids)))
        for text in (name, _NUMBERED.sub("", name.strip(), count=1)):
            for table in (self._by_name, self._by_synonym):
                if indices := table.get(plain(text)):
                    return tuple(sorted(indices))
        return self._of_all_synonyms(name) or self._of_number(name)

    def nearest(self, name: str, most: int = 3) -> list[str]:
        """The names of classes that resemble an unknown one, the nearest first."""
        key = plain(name)
        known = {**self._by_synonym, **self._by_name}
        near = difflib.get_close_matches(key, known, n=most, cutoff=_NEAR)
        near += [name for name in known if len(key) > 3 and key in name and name not in near]
        return list(dict.fromkeys(self.display(min(known[name])) for name in near))[:most]

    @cached_property
    def displayed(self) -> tuple[str, ...]:
        """The name of each class for people."""
        return tuple(_distinct(self._names, self.ids))

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {_composed(class_id): index for index, class_id in enumerate(self.ids)}

    @cached_property
    def _by_name(self) -> dict[str, set[int]]:
        return _index(zip(self.ids, strict=True), self._names)

    @cached_property
    def _by_synonym(self) -> dict[str, set[int]]:
        return _index(self._synonyms)

    def _of_all_synonyms(self, name: str) -> tuple[int, ...]:
        """The class of a list such as ``tench, Tinca tinca``: the one that has all of these names."""
        parts = [plain(part) for part in name.split(",") if plain(part)]
        if len(parts) < 2:
            return ()
        candidates = [self._by_name.get(part, set()) | self._by_synonym.get(part, set()) for part in parts]
        return tuple(sorted(set.intersection(*candidates)))

    def _of_number(self, name: str) -> tuple[int, ...]:
        text = name.strip()
        if not self._numbered or not (text.isascii() and text.isdigit()):
            return ()
        return (int(text),) if int(text) < len(self) else ()


@lru_cache(maxsize=8)
def imagenet(subset: str = IMAGENET_1K) -> ClassVocabulary:
    """The classes of one of `SUBSETS`; raises DataError if timm, which has the tables, is not installed."""
    ids = (information() / SUBSETS[subset]).read_text(encoding="utf-8").split()
    lemmas = [_lemmas().get(class_id, "") for class_id in ids]
    synonyms = [[part.strip() for part in lemma.split(",") if part.strip()] for lemma in lemmas]
    first: list[list[str]] = [synonym[:1] for synonym in synonyms]
    if subset == IMAGENET_1K:
        ours, theirs = openai_names(), torchvision_names()
        lists = [names for names in (ours, theirs) if len(names) == len(ids)]
        first = [[names[index] for names in lists] + first[index] for index in range(len(ids))]
    return ClassVocabulary(subset, ids, first, synonyms)


def names_read(view: Mapping[str, Any]) -> list[str] | None:
    """The names of the outputs in a view of logits, for people; None if classes were not matched by name."""
    read = view.get(READ_AS)
    if read is None:
        return None
    outputs = read["outputs"]
    known = imagenet(outputs) if isinstance(outputs, str) else vocabulary_of(tuple(outputs))
    return [known.display(index) for index in view["class_sublist"]]


def subset_of(classes: int | None) -> str | None:
    """The published set of ImageNet's classes that has so many; None if there is none."""
    return _sizes().get(classes) if classes is not None else None


@lru_cache(maxsize=64)
def vocabulary_of(names: tuple[str, ...]) -> ClassVocabulary:
    """The vocabulary of a list of names: ImageNet's own where it is ImageNet's, class by class, in whatever spelling.

    A listed class is also found by what else ImageNet's lists call it.
    """
    subset = subset_of(len(names))
    if subset is not None and all(index in imagenet(subset).candidates(name) for index, name in enumerate(names)):
        return imagenet(subset)
    known = imagenet()
    places = [known.candidates(name) for name in names]
    others = [[known.wnid(place[0]), *known.names(place[0])] if len(place) == 1 else [] for place in places]
    numbered = not any(name.strip().isdigit() for name in names)
    return ClassVocabulary("the listed classes", names, [(name,) for name in names], others, numbered)


@lru_cache(maxsize=1)
def _sizes() -> dict[int, str]:
    return {len((information() / file).read_text(encoding="utf-8").split()): name for name, file in SUBSETS.items()}


@lru_cache(maxsize=1)
def _lemmas() -> dict[str, str]:
    """The WordNet lemmas of each id, with commas between them."""
    lines = (information() / "imagenet_synset_to_lemma.txt").read_text(encoding="utf-8").splitlines()
    return {key: lemmas.strip('"') for key, _, lemmas in (line.partition("\t") for line in lines)}


def openai_names() -> tuple[str, ...]:
    """Returns OpenAI's names of the 1,000 classes, from open_clip's file; empty if it is not installed."""
    return _constant("open_clip", "zero_shot_metadata.py", "IMAGENET_CLASSNAMES")


def torchvision_names() -> tuple[str, ...]:
    """Returns torchvision's categories of its published weights; empty if it is not installed."""
    return _constant("torchvision", "models/_meta.py", "_IMAGENET_CATEGORIES")


@lru_cache(maxsize=4)
def _constant(package: str, file: str, name: str) -> tuple[str, ...]:
    """A list of texts that a module assigns, without importing it: that would take seconds."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ()
    try:
        tree = ast.parse((Path(spec.origin).parent / file).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [name]:
                return tuple(str(word) for word in ast.literal_eval(node.value))
    except (OSError, SyntaxError, ValueError):
        return ()
    return ()


def plain(name: str) -> str:
    """A name as it compares equal: letters and digits alone, without accents and case."""
    return "".join(char for char in unicodedata.normalize("NFKD", name).casefold() if char.isalnum())


def wordnet_names(ids: Sequence[str]) -> list[str] | None:
    """Returns names for people in place of WordNet ids; None if some of these are something else."""
    if not ids or not all(_WORDNET_ID.fullmatch(class_id) for class_id in ids):
        return None
    known = imagenet()
    place = {class_id: index for index, class_id in enumerate(known.ids)}
    names = [
        known.display(place[wnid]) if wnid in place else _lemmas().get(wnid, "").partition(",")[0].strip()
        for wnid in (id.lower() for id in ids)
    ]
    return list(_distinct([(name,) for name in names], ids)) if all(names) else None


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _index(*names: Iterable[Sequence[str]]) -> dict[str, set[int]]:
    places: dict[str, set[int]] = {}
    for lists in names:
        for index, names_of_class in enumerate(lists):
            for name in names_of_class:
                if key := plain(name):
                    places.setdefault(key, set()).add(index)
    return places


def _distinct(names: Sequence[Sequence[str]], ids: Sequence[str]) -> list[str]:
    """Returns one name for each class: its first; where classes share it, its last one, else with the id behind it."""
    shown = [synonyms[0] if synonyms else id for synonyms, id in zip(names, ids, strict=True)]
    shared = _more_than_once(shown)
    shown = [names[index][-1] if label in shared else label for index, label in enumerate(shown)]
    shared = _more_than_once(shown)
    return [f"{label} ({ids[index]})" if label in shared else label for index, label in enumerate(shown)]


def _more_than_once(names: Sequence[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]

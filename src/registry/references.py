"""The names of settings: one grammar, which parses and builds them.

    NAME[.vlmevalkit][.part][.among-present][+CORRUPTION][.anchors:FILE.json|.random-K][[.WORD…]@JUDGE[&JUDGE…]][.NODE]

NAME is registered: a definition, or one of a family, whose own words (``cifar10.linear_probe.k5``) belong to it. The
rest derives a setting from it: other rules for the answers, the part of a data set that is there, only the classes of
the data to choose from, perturbed images, some of the samples (those that a file chooses, or the first K in random
order), a judge, a node of its graph.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError, DefinitionError, unknown_name
from testbed.inputs import active
from testbed.paths import expanded
from testbed.registry import discovery
from testbed.registry.table import DefinitionSource, Registry

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

PART = ".part"  # those of a data set's samples that are there
PRESENT = ".among-present"  # a classifier chooses from the classes of the data alone
RULES, PLUS, RANDOM, JUDGED, AND = ".vlmevalkit", "+", ".random-", "@", "&"
LABELS = "labels:"  # in place of a judge, before the path of a file of labels
ANCHORS = ".anchors:"  # before the path of a file of samples
IN_MEMORY = "_in-memory"  # may be left out of a corruption
# What a judge is to compare, in the order in which it is written.
CLIP_SCORE, PREFIX, PAIRS = "clip_score", "prefix", "pairs"
WORDS = (
    *(CLIP_SCORE, PREFIX),
    *("coarse", "sentencex", "pysbd", "idf", "mean", "uncombined", "baseline", "zero"),
    PAIRS,
)
# Nodes of the graph of a setting that are computed and stored for themselves.
IMAGE_EMBEDDINGS, DISTINCT = "image_embeddings", "distinct"
NODES = (IMAGE_EMBEDDINGS, DISTINCT)
_DRAWN = re.compile(rf"(.+){re.escape(RANDOM)}([1-9]\d{{0,9}})")
_FILE = re.compile(r"[a-z]+:.+?\.(?:csv|jsonl?|tsv)(?![^.@+])")  # a name that is a path, which may have any characters
_ANCHORS = re.compile(r"\.anchors:(\S+?\.json)(?=$|[.@])")


@dataclass(frozen=True)
class SettingReference:
    """The name of a setting in its parts.

    Attributes:
        name: The registered name.
        rules: True if VLMEvalKit's published rules read the answers.
        part: True for the available part of an incomplete data set.
        present: True if a classifier chooses only among the classes in the data, not among all its classes.
        corruption: The setting whose perturbation changes the images; empty for none.
        words: The judge's way of scoring, in the order of `WORDS`.
        judge: The model that scores captions or answers, or several with ``&`` between them; empty for none.
        node: One of `NODES`; empty for the setting itself.
        anchors: The path of a file that chooses some of the samples; empty for all.
        first: The number of samples in its random order; 0 for all. See `testbed.data.random_order`.
    """

    name: str
    rules: bool = False
    corruption: str = ""
    words: tuple[str, ...] = ()
    judge: str = ""
    node: str = ""
    first: int = 0
    anchors: str = ""
    present: bool = False
    part: bool = False

    def __str__(self) -> str:
        made = (
            self.name + (RULES if self.rules else "") + (PART if self.part else "") + (PRESENT if self.present else "")
        )
        made += PLUS + self.corruption if self.corruption else ""
        made += ANCHORS + self.anchors if self.anchors else ""
        made += f"{RANDOM}{self.first}" if self.first else ""
        if self.judge:
            made = ".".join([made, *self.words]) + JUDGED + self.judge
        return f"{made}.{self.node}" if self.node else made

    @property
    def setting(self) -> SettingReference:
        """The setting of a node."""
        return replace(self, node="") if self.node else self

    @property
    def is_part(self) -> bool:
        """True if this is a subset of the samples of a setting."""
        return self.first > 0 or self.anchors != ""

    @property
    def scored(self) -> SettingReference:
        """The setting whose captions or answers the judge scores."""
        return replace(self, words=(), judge="", node="")

    @property
    def question(self) -> str:
        """Everything but the judge: settings with equal ones are scored by different judges in the same way."""
        return ".".join([str(self.scored), *self.words])

    @classmethod
    def parse(cls, name: str) -> SettingReference:
        """Parses a name in its canonical spelling, such as one in a store, by the grammar alone.

        Where a name has a mark of the grammar in a place of its own, only `Settings.reference` is certain.
        """
        if some := _ANCHORS.search(name):
            reference = replace(cls.parse(name[: some.start()] + name[some.end() :]), anchors=some[1])
            return reference if str(reference) == name else cls(name)
        if node := next((node for node in NODES if name.endswith(f".{node}")), ""):
            name = name.removesuffix(f".{node}")
        path = _FILE.match(name)
        start = path.end() if path else 0
        before, _, judge = name[start:].partition(JUDGED)
        words: list[str] = []
        while judge and (word := before.rpartition(".")[2]) in WORDS and word != before:
            words.insert(0, word)
            before = before.removesuffix(f".{word}")
        drawn = _DRAWN.fullmatch(before)
        before, first = (drawn[1], int(drawn[2])) if drawn else (before, 0)
        before, _, corruption = before.partition(PLUS)
        before, present = before.removesuffix(PRESENT), before.endswith(PRESENT)
        before, part = before.removesuffix(PART), before.endswith(PART)
        rules = before.endswith(RULES)
        own = name[:start] + before.removesuffix(RULES)
        reference = cls(own, rules, corruption, tuple(words), judge, node, first, present=present, part=part)
        return reference if str(reference.setting) == name else cls(name, node=node)


def is_part(name: str) -> bool:
    """Checks whether a name in its canonical spelling, such as one in a store, is a subset of a setting's samples."""
    return says_parts(name) and SettingReference.parse(name).is_part


def says_parts(pattern: str) -> bool:
    """Checks whether a pattern, or a name, refers to subsets of settings."""
    return RANDOM in pattern or ANCHORS in pattern


def anchored(name: str, path: Path) -> str:
    """The name of those samples of a setting that an anchor file chooses."""
    return str(replace(SettingReference.parse(name), anchors=str(expanded(path).absolute())))


def among_present(settings: Settings, names: Sequence[str]) -> list[str]:
    """The names of settings in which a classifier chooses from the classes of the data alone.

    Raises:
        DefinitionError: If a setting has no such view.
    """
    references = [replace(settings.reference(name) or SettingReference(name), present=True) for name in names]
    for name in references:
        with contextlib.suppress(DataError):  # which the run reports
            settings.get(str(name))
    return list(dict.fromkeys(map(str, references)))


class Settings(Registry["EvalSetting"]):
    """The registry of eval settings, with those derived from registered ones; judges are among the models."""

    def __init__(self, models: Registry[ModelDefinition]) -> None:
        super().__init__("eval setting", "testbed list settings")
        self._models = models

    def _add(self, name: str, item: Callable[[], EvalSetting], source: DefinitionSource) -> None:
        if isinstance(name, str) and (node := SettingReference.parse(name).node):
            raise DefinitionError(
                f"the eval setting {name!r} at {source} has the name of a node, the {node} of the setting before it;"
                " choose another ending"
            )
        super()._add(name, item, source)

    def reference(self, name: str) -> SettingReference | None:
        """Parses a name in its canonical spelling; None if it is unknown. Builds nothing."""
        if (some := _ANCHORS.search(name)) and not self.defines(name):
            of = self.reference(name[: some.start()] + name[some.end() :])
            return (
                None if of is None or of.anchors or of.first else replace(of, anchors=str(expanded(some[1]).absolute()))
            )
        for node in NODES:
            if name.endswith(f".{node}"):
                reference = self._judged(name.removesuffix(f".{node}"))
                return None if reference is None else replace(reference, node=node)
        return self._judged(name)

    def canonical(self, name: str) -> str | None:
        """Returns the canonical spelling of a name, or None if it is unknown. Builds nothing."""
        reference = self.reference(name)
        return None if reference is None else str(reference)

    def get(self, name: str) -> EvalSetting:
        """The setting with this name.

        Raises:
            UnknownNameError: If there is none; the message suggests the nearest names.
            DefinitionError: If its parts do not go together.
        """
        reference = self.reference(name)
        if reference is None:
            raise self.unknown(name)
        if reference == SettingReference(reference.name):
            return super().get(reference.name)
        key = (str(reference), active())
        if key not in self._built:
            self._built[key] = discovery.named(discovery.MADE)(reference, self)
        return self._built[key]

    def corruption(self, name: str) -> str | None:
        """The setting that the name of a corruption means."""
        return self.plain(name) or self.plain(name + IN_MEMORY)

    def source(self, name: str) -> str:
        """The place of the definition that a setting derives from."""
        reference = self.reference(name)
        return super().source(name if reference is None else reference.name)

    def explain(self, name: str) -> str | None:
        """Explains an unknown name whose setting is known: its judge or its anchor file is not."""
        if ANCHORS in name and self.reference(name.partition(ANCHORS)[0]) is not None:
            return f"after {ANCHORS} comes the path of a file that testbed anchors choose wrote, which ends in .json"
        for _, judge in self._cuts(name):
            known = self._models.names()
            return str(unknown_name("model", judge, known, "the registry", self._models.listing))
        return super().explain(name)

    # The grammar, from the last part to the first; what is registered as a whole is not taken apart ------------------

    def _judged(self, text: str) -> SettingReference | None:
        for scored, judge in self._cuts(text):
            judges = [part if part.startswith(LABELS) else self._models.canonical(part) for part in judge.split(AND)]
            if None not in judges:
                return replace(scored, judge=AND.join(map(str, judges)))
        return self._drawn(text)

    def _cuts(self, text: str) -> Iterator[tuple[SettingReference, str]]:
        """The settings (with words) that may stand before an ``@``, and what stands after it."""
        for cut in [] if self.defines(text) else [index for index, mark in enumerate(text) if mark == JUDGED]:
            reference = self._worded(text[:cut])
            if reference is not None and text[cut + 1 :]:
                yield reference, text[cut + 1 :]

    def _worded(self, text: str) -> SettingReference | None:
        words = set[str]()
        while (known := self._drawn(text)) is None:
            text, dot, word = text.rpartition(".")
            if not dot or word not in WORDS or word in words:
                return None
            words.add(word)
        return replace(known, words=tuple(sorted(words, key=WORDS.index)))

    def _drawn(self, text: str) -> SettingReference | None:
        drawn = None if self.defines(text) else _DRAWN.fullmatch(text)
        if drawn is not None and (known := self._perturbed(drawn[1])) is not None:
            return replace(known, first=int(drawn[2]))
        return self._perturbed(text)

    def _perturbed(self, text: str) -> SettingReference | None:
        base, plus, other = text.rpartition(PLUS)
        if base and plus and other and PLUS not in base and not self.defines(text):
            known, by = self._with_rules(base), self.corruption(other)
            if known is not None and by is not None:
                return replace(known, corruption=by.removesuffix(IN_MEMORY))
        return self._with_rules(text)

    def _with_rules(self, text: str) -> SettingReference | None:
        for mark, field in ((PRESENT, "present"), (PART, "part")):
            if text.endswith(mark) and not self.defines(text):
                reference = self._with_rules(text.removesuffix(mark))
                if reference is None or reference.present or getattr(reference, field):
                    return None
                given: dict[str, Any] = {field: True}
                return replace(reference, **given)
        rules = text.endswith(RULES) and not self.defines(text)
        known = self.plain(text.removesuffix(RULES) if rules else text)
        return None if known is None else SettingReference(known, rules)

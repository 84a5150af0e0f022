"""The caption metrics of COCO's evaluation (pycocoevalcap): BLEU-1 to BLEU-4, ROUGE-L and CIDEr-D.

They are those that CLIP benchmark prints for its task ``captioning``. METEOR and SPICE are left to
their authors' Java programs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from testbed.arrays import Array
from testbed.canonical_text import canonical
from testbed.errors import DefinitionError
from testbed.metrics.captions.meteor import meteor
from testbed.metrics.captions.ptb import caption_words
from testbed.metrics.captions.spice import spice
from testbed.metrics.inference.statistics import mean_and_stderr

Phrases: TypeAlias = list[Counter[tuple[str, ...]]]  # the counts of phrases of one word, of two, …

PTB, NONE = "ptb", "none"
ORDERS = 4  # phrases have one to four words
# So that BLEU is defined without any match: pycocoevalcap's constants.
SMALL, TINY = 1e-9, 1e-15
BETA = 1.2  # how much more recall counts than precision in ROUGE-L
SIGMA = 6.0  # CIDEr-D's tolerance of differing lengths, in words


@dataclass(frozen=True)
class Overlap:
    """Scores of captions.

    Attributes:
        bleu: BLEU-1 to BLEU-4 of all scored captions together; None if there are none.
        meteor: METEOR of all scored captions together; None if it was not asked for, or there are none.
        spice: The mean SPICE; None likewise.
        scores: ``Bleu_4``, ``ROUGE_L`` and ``CIDEr`` of each sample, float64 arrays [n]; NaN where there is no
            caption, or no reference.
    """

    bleu: list[float] | None
    scores: dict[str, Array]
    meteor: float | None = None
    spice: float | None = None

    @property
    def metrics(self) -> dict[str, float | None]:
        """Each metric by the name that pycocoevalcap and CLIP benchmark give it; None if nothing is scored."""
        summary: dict[str, float | None] = {
            f"Bleu_{order}": None if self.bleu is None else self.bleu[order - 1] for order in range(1, ORDERS + 1)
        }
        for name in ("ROUGE_L", "CIDEr"):
            values = self.scores[name]
            summary[name] = mean_and_stderr(values[~np.isnan(values)])[0]
        by_programs = {"METEOR": self.meteor, "SPICE": self.spice}
        return summary | {name: value for name, value in by_programs.items() if name in self.scores}


def caption_overlap(
    captions: Sequence[str | None],
    references: Sequence[Sequence[str]],
    tokenizer: str = PTB,
    with_meteor: bool = False,
    with_spice: bool = False,
) -> Overlap:
    """Computes BLEU, ROUGE-L and CIDEr-D of captions, as pycocoevalcap does.

    Args:
        captions: One for each sample; None if there is none, which is not scored. A blank one scores 0.
        references: The reference captions of each sample; samples without any are not scored.
        tokenizer: ``"ptb"``: the Penn Treebank's, which drops punctuation and lowers case, as COCO's evaluation does,
            of canonical texts (see `testbed.canonical_text`); ``"none"``: words are what is between white space, as in
            VLMEvalKit.
        with_meteor: Also computes METEOR, by its Java program.
        with_spice: Also computes SPICE, by its Java program.

    Raises:
        DefinitionError: If the tokenizer is unknown.
        ValueError: If there are not as many captions as lists of references.
        MissingExtraError: If METEOR is asked for without pycocoevalcap.
        TestbedError: If METEOR is asked for without Java, or SPICE without what it needs.
    """
    check_tokenizer(tokenizer)
    if len(captions) != len(references):
        raise ValueError(f"{len(captions)} captions have {len(references)} lists of references; one for each expected")
    cut = _words if tokenizer == PTB else str
    others = [[cut(text) for text in several] for several in references]
    scored = [place for place, text in enumerate(captions) if text is not None and others[place]]
    own = [cut(captions[place] or "") for place in scored]
    theirs = [others[place] for place in scored]
    names = ["Bleu_4", "ROUGE_L", "CIDEr", *(["METEOR"] if with_meteor else []), *(["SPICE"] if with_spice else [])]
    scores = {name: np.full(len(captions), np.nan) for name in names}
    if not scored:
        return Overlap(None, scores)
    together, single = bleu(own, theirs)
    scores["Bleu_4"][scored] = single[:, -1]
    scores["ROUGE_L"][scored] = [rouge_l(text, several) for text, several in zip(own, theirs, strict=True)]
    scores["CIDEr"][scored] = cider_d(own, theirs, [several for several in others if several])
    total = mean = None
    if with_meteor:
        total, scores["METEOR"][scored] = meteor(own, theirs)
    if with_spice:
        mean, scores["SPICE"][scored] = spice(own, theirs)
    return Overlap(together, scores, total, mean)


def _words(text: str) -> str:
    return caption_words(canonical(text))


def check_tokenizer(name: str) -> None:
    """Checks that there is such a tokenizer.

    Raises:
        DefinitionError: If there is not.
    """
    if name not in (PTB, NONE):
        raise DefinitionError(f"the tokenizer of captions is {PTB!r} or {NONE!r}, not {name!r}")


def phrases(text: str) -> Phrases:
    """The counts of a text's phrases of one to four words."""
    words = text.split()
    return [
        Counter(tuple(words[index : index + order]) for index in range(len(words) - order + 1))
        for order in range(1, ORDERS + 1)
    ]


# BLEU -------------------------------------------------------------------------------------------------------------


def bleu(captions: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[list[float], Array]:
    """Computes BLEU-1 to BLEU-4 (Papineni et al. 2002), with the reference closest in length, the shorter on ties.

    Args:
        captions: Words, with spaces between them; at least one caption.
        references: At least one for each.

    Returns:
        The four values of all captions together, and those of each caption, float64 array [n, 4].
    """
    counts = np.array([_matches(text, several) for text, several in zip(captions, references, strict=True)])
    together = _bleu(counts.sum(axis=0)[None])[0]
    return [float(value) for value in together], _bleu(counts)


def _matches(text: str, references: Sequence[str]) -> list[int]:
    """The phrases that match, for each order; all phrases; the words, and those of the reference closest in length."""
    own, others = phrases(text), [phrases(reference) for reference in references]
    length = sum(own[0].values())
    closest = min((abs(sum(other[0].values()) - length), sum(other[0].values())) for other in others)[1]
    matched = [
        sum(min(count, max(other[order][phrase] for other in others)) for phrase, count in own[order].items())
        for order in range(ORDERS)
    ]
    return [*matched, *(max(0, length - order) for order in range(ORDERS)), length, closest]


def _bleu(counts: Array) -> Array:
    """Computes BLEU-1 to BLEU-4 [n, 4] of rows of `_matches`, int array [n, 10]."""
    matched, all_of, length, closest = counts[:, :ORDERS], counts[:, ORDERS : 2 * ORDERS], counts[:, -2], counts[:, -1]
    precision = np.cumprod((matched + TINY) / (all_of + SMALL), axis=1) ** (1 / np.arange(1, ORDERS + 1))
    ratio = (length + TINY) / (closest + SMALL)
    penalty = np.where(ratio < 1, np.exp(1 - 1 / np.minimum(ratio, 1)), 1)
    scores: Array = precision * penalty[:, None]
    return scores


# ROUGE-L ----------------------------------------------------------------------------------------------------------


def rouge_l(text: str, references: Sequence[str]) -> float:
    """Computes ROUGE-L (Lin 2004): the F-measure of the longest common subsequence, by best precision and recall."""
    own, others = text.split(" "), [reference.split(" ") for reference in references]
    common = [_longest_common(own, other) for other in others]
    precision = max(length / len(own) for length in common)
    recall = max(length / len(other) for length, other in zip(common, others, strict=True))
    if precision == 0 or recall == 0:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def _longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence, with a column of the table in the bits of a number (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for index, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << index
    everything = (1 << len(one)) - 1
    column = everything
    for word in other:
        hits = column & places.get(word, 0)
        column = ((column + hits) | (column - hits)) & everything
    return len(one) - column.bit_count()


# CIDEr-D ----------------------------------------------------------------------------------------------------------


def cider_d(
    captions: Sequence[str], references: Sequence[Sequence[str]], documents: Sequence[Sequence[str]]
) -> list[float]:
    """Computes CIDEr-D of each caption (Vedantam et al. 2015), between 0 and 10.

    Args:
        captions: Words, with spaces between them.
        references: At least one for each.
        documents: The references of all samples of the data set: a phrase counts less if more samples have it. With
            one sample, every phrase counts nothing, and CIDEr is 0.
    """
    frequency: Counter[tuple[str, ...]] = Counter()
    for several in documents:
        frequency.update({phrase for text in several for counts in phrases(text) for phrase in counts})
    most = math.log(len(documents))
    rarity = {phrase: most - math.log(count) for phrase, count in frequency.items()}
    scores = []
    for text, several in zip(captions, references, strict=True):
        own = _PhraseWeights(text, rarity, most)
        scores.append(
            10
            * math.fsum(own.similarity(_PhraseWeights(reference, rarity, most)) for reference in several)
            / len(several)
        )
    return scores


class _PhraseWeights:
    """A text's phrases, with their counts times their rarity."""

    def __init__(self, text: str, rarity: dict[tuple[str, ...], float], most: float) -> None:
        counts = phrases(text)
        # As in pycocoevalcap, whose length of a text is its number of phrases of two words.
        self.length = sum(counts[1].values())
        self.weights = [{phrase: count * rarity.get(phrase, most) for phrase, count in of.items()} for of in counts]
        self.norms = [math.sqrt(math.fsum(weight**2 for weight in of.values())) for of in self.weights]

    def similarity(self, reference: _PhraseWeights) -> float:
        """The mean over phrases of one to four words of the clipped cosine, less for a differing length."""
        total = 0.0
        for own, others, norm, other_norm in zip(
            self.weights, reference.weights, self.norms, reference.norms, strict=True
        ):
            if norm and other_norm:
                shared = math.fsum(
                    min(own[phrase], others[phrase]) * others[phrase] for phrase in own if phrase in others
                )
                total += shared / (norm * other_norm)
        return total / ORDERS * math.exp(-((self.length - reference.length) ** 2) / (2 * SIGMA**2))

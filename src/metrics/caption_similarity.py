"""Similarity of captions to reference captions, by embeddings of the whole texts and of their sentences.

Coarse similarity is the cosine of the whole texts; precision and recall match sentences greedily (`greedy_match`);
hm_cf joins the coarse similarity and F1. On the unit scale, that of CLIP-CC-Bench's documentation, the coarse
similarity, precision and recall become n(x) = (x + 1) / 2, and F1 and hm_cf follow from these. On the raw scale, that
of its published leaderboard, cosines stay as they are (names with ``_raw``). An F1 or hm_cf of one scale does not
follow from that of the other. A harmonic mean is 0 unless both values are positive.

By hand: precision 0.7234 and recall 0.7456 give F1 0.7343; with a coarse similarity of 0.7654 hm_cf is 0.7495. Another
row of CLIP-CC-Bench's documentation, 0.8234, 0.7891 and 0.8012, stands there with an hm_cf of 0.8088; from the formula
it is 0.8090.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.data.language.sentences import METHODS, Splitter, plain
from testbed.entities import FRACTION, Metric, Score
from testbed.errors import DataError, DefinitionError
from testbed.metric_specs import HIGHER, MAIN, NEITHER, MetricSpec
from testbed.metrics.greedy_match import greedy_match, match_rows
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.metrics.scorers.caption_status import EMPTY, ERROR, MISSING, SCORED, STATUS, shares

__all__ = [
    "FINE",
    "METRICS",
    "SCORER",
    "SimilarityOptions",
    "SimilarityScores",
    "combined",
    "greedy_match",
    "harmonic",
    "score_captions",
    "similarity_metrics",
    "texts_of",
    "unit",
]


SCORER = "caption_similarity@2"
FINE = ("fine_precision", "fine_recall", "fine_f1")
METRICS = ("coarse_similarity", *FINE, "hm_cf")

_RAW = "_raw"
_MAIN = {"hm_cf": MAIN + 1, "coarse_similarity": MAIN}
_COUNTS = ("sentences", "reference_sentences")
# The unit scale is that of shares, the raw one that of cosines.
SPECS = {
    **{name: MetricSpec(name, FRACTION, HIGHER, 0, 1, _MAIN.get(name, 0)) for name in METRICS},
    **{name + _RAW: MetricSpec(name + _RAW, "cosine", HIGHER, -1, 1, _MAIN.get(name, 5) - 5) for name in METRICS},
    **{name: MetricSpec(name, "sentences", NEITHER, lowest=0) for name in _COUNTS},
    STATUS.name: STATUS,
}
_CHOICES = {
    "chunking": METHODS,
    "weights": ("uniform", "idf"),
    "combine": ("harmonic", "mean", "none"),
    "rescale": ("none", "baseline"),
    "missing": ("skip", "zero"),
}


@dataclass(frozen=True)
class SimilarityOptions:
    """Options for scoring captions.

    Attributes:
        fine: True to match sentences; else only the coarse similarity is computed.
        chunking: The method that cuts texts into sentences, as of `testbed.data.language.sentences.get_splitter`.
        weights: The weights of sentences: ``"uniform"``; or ``"idf"``, log((N + 1) / (c + 1)) of a sentence that c of
            all N reference captions have, as BERTScore weighs tokens. Where all weights of a text are 0 they are
            uniform.
        combine: The combination of the coarse similarity C and F1 into hm_cf: the ``"harmonic"`` mean, the ``"mean"``
            as of EMScore, or ``"none"``.
        rescale: ``"baseline"`` turns each value x into (x − b) / (1 − b) as BERTScore does, b being the mean of the
            same metric over random pairs of a caption and a reference of another sample.
        missing: ``"skip"`` leaves out missing captions and errors; ``"zero"`` scores them 0.
        baseline_pairs: The number of random pairs.
        seed: The seed of the random pairs.

    Raises:
        DefinitionError: If a value is not one of the known ones.
    """

    fine: bool = True
    chunking: str = "auto"
    weights: str = "uniform"
    combine: str = "harmonic"
    rescale: str = "none"
    missing: str = "skip"
    baseline_pairs: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise DefinitionError(
                    f"caption similarity: {name} is {getattr(self, name)!r}, it can be {', '.join(map(repr, known))}"
                )
        if not isinstance(self.fine, bool):
            raise DefinitionError(f"caption similarity: fine is {self.fine!r}, it can be True or False")
        for name, least in (("baseline_pairs", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise DefinitionError(f"caption similarity: {name} is {value!r}, expected a whole number ≥ {least}")

    def spec(self) -> dict[str, Any]:
        """Returns what determines the numbers, as plain values, except the splitter, which has an ``id``."""
        described: dict[str, Any] = {"fine": self.fine, "missing": self.missing, "rescale": self.rescale}
        if self.fine:
            described |= {"weights": self.weights, "combine": self.combine}
        if self.rescale == "baseline":
            described |= {"baseline_pairs": self.baseline_pairs, "seed": self.seed}
        return described

    def metrics(self) -> tuple[str, ...]:
        """The names of what is computed, of the unit scale and then raw."""
        names = METRICS[:1] if not self.fine else METRICS[:-1] if self.combine == "none" else METRICS
        return (*names, *(name + _RAW for name in names))


@dataclass(frozen=True)
class SimilarityScores:
    """The scores of all samples.

    Attributes:
        scores: The scores by name, float64 arrays [n], NaN where a sample is not scored: those that
            `SimilarityOptions.metrics` names; with sentences also ``sentences`` and ``reference_sentences``, their
            numbers (NaN without a caption; the sentences of several references are added up). Then ``status``: 0
            scored, 1 missing, 2 empty, 3 error, also where an embedding is not finite.
        baselines: The mean of random pairs by name, where scores are rescaled.
        splitter: The id of the sentence splitter; empty where none was used.
        coverage: The share of samples with a caption that is neither missing nor an error; None without samples.
        empty: The share of samples whose caption is blank.
    """

    scores: dict[str, Array]
    baselines: dict[str, float] = field(default_factory=dict)
    splitter: str = ""
    coverage: float | None = None
    empty: float | None = None

    def rows(self) -> list[Score]:
        """The scores as the store takes them."""
        return [self.spec(name).score(values, SCORER) for name, values in self.scores.items()]

    def spec(self, name: str) -> MetricSpec:
        """Returns a score's declaration; values that are rescaled by a baseline may lie below the range."""
        return replace(SPECS[name], lowest=None) if name in self.baselines else SPECS[name]


def unit(values: Array) -> Array:
    """Maps cosines from [−1, 1] to [0, 1]: (x + 1) / 2."""
    scaled: Array = (np.asarray(values, dtype=np.float64) + 1) / 2
    return scaled


def harmonic(one: Array, other: Array) -> Array:
    """The harmonic means of float arrays [...] of one shape, 0 unless both are positive; NaN where one is NaN."""
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    both = (one > 0) & (other > 0)
    known = np.where(np.isnan(one) | np.isnan(other), np.nan, 0.0)
    mean: Array = np.divide(2 * one * other, one + other, out=known, where=both)
    return mean


def combined(coarse: Array, fine_f1: Array, combine: str = "harmonic") -> Array:
    """The coarse similarity and F1, float arrays [n], in one value each: their harmonic mean, or their ``"mean"``."""
    return harmonic(coarse, fine_f1) if combine == "harmonic" else (np.asarray(coarse) + np.asarray(fine_f1)) / 2


def texts_of(
    captions: Sequence[str | None],
    references: Sequence[Sequence[str]],
    splitter: Splitter | None,
    options: SimilarityOptions,
    ids: Sequence[str] | None = None,
) -> list[str]:
    """Returns the texts to embed for scoring captions: each different text once, in order.

    Texts are without white space at their ends. A text of one sentence is one text, not two.

    Args:
        captions: The captions of n samples; None where there is none.
        references: The reference captions of each sample, at least one, none blank.
        splitter: Cuts texts into sentences; may be None where ``options.fine`` is False.
        options: The scoring options.
        ids: The ids of the samples, for messages.

    Raises:
        DataError: If a sample has no reference or a blank one.
    """
    given = _Texts(captions, references, splitter, options, ids)
    whole = chain.from_iterable([*given.captions_of(row), *given.references[row]] for row in range(len(captions)))
    return list(dict.fromkeys(chain.from_iterable((text, *given.sentences(text)) for text in whole)))


def score_captions(
    captions: Sequence[str | None],
    references: Sequence[Sequence[str]],
    rows: Mapping[str, int],
    embeddings: Array,
    splitter: Splitter | None,
    options: SimilarityOptions,
    errors: Sequence[bool] | None = None,
    ids: Sequence[str] | None = None,
) -> SimilarityScores:
    """Scores captions by the embeddings of their texts.

    With several references the largest value counts, of each metric for itself, as in BERTScore. Blank captions score 0
    in all metrics, on both scales. A sample whose score needs an embedding that is not finite is an error and has no
    scores. A baseline is that of pairs of scored samples. A sample's scores do not depend on other samples, unless
    sentences are weighed by IDF or scores rescaled.

    Args:
        captions: The captions of n samples; None where there is none.
        references: The reference captions of each sample, at least one, none blank.
        rows: The row of each text of `texts_of` among the embeddings.
        embeddings: Float array [R, D] of any scale.
        splitter: Cuts texts into sentences; may be None where ``options.fine`` is False.
        options: The scoring options.
        errors: Booleans [n]: where there is no caption because of an error.
        ids: The ids of the samples, for messages.

    Raises:
        DataError: If a sample has no reference or a blank one, a text has no embedding, or scores cannot be rescaled.
    """
    given = _Texts(captions, references, splitter, options, ids)
    failed = np.zeros(len(captions), dtype=bool) if errors is None else np.asarray(errors, dtype=bool)
    if failed.shape != (len(captions),):
        raise ValueError(f"expected a boolean for each of {len(captions)} captions, got {failed.shape}")
    present = [None if no else text for no, text in zip(failed, given.captions, strict=True)]
    status = np.array([MISSING if text is None else SCORED if text else EMPTY for text in present], dtype=np.float64)
    status[failed] = ERROR
    zero = (status == EMPTY) | ((status != SCORED) & (options.missing == "zero"))
    pairs = _Pairs(given, rows, embeddings, options)
    values = {name: np.where(zero, 0.0, np.nan) for name in options.metrics()}
    scored = np.flatnonzero(status == SCORED)
    if len(scored):
        compared = [(given.captions[row] or "", text) for row in scored for text in given.references[row]]
        counts = np.array([len(given.references[row]) for row in scored])
        best = {
            name: np.maximum.reduceat(found, np.cumsum(counts) - counts)
            for name, found in pairs.score(compared).items()
        }
        unknown = np.any([np.isnan(found) for found in best.values()], axis=0)
        status[scored[unknown]] = ERROR
        for name, found in best.items():
            values[name][scored[~unknown]] = found[~unknown]
    baselines = {}
    if options.rescale == "baseline":
        kept = np.flatnonzero(status == SCORED)
        baselines = _baselines(pairs, given, kept, options)
        for name, base in baselines.items():
            values[name][kept] = (values[name][kept] - base) / (1 - base)
    if options.fine:
        values |= given.counts(present)
    known = float(np.mean(np.isin(status, (SCORED, EMPTY)))) if len(status) else None
    empty = float(np.mean(status == EMPTY)) if len(status) else None
    used = splitter.id if options.fine and splitter is not None else ""
    return SimilarityScores({**values, "status": status}, baselines, used, known, empty)


def similarity_metrics(scores: SimilarityScores) -> list[Metric]:
    """The means of all scores over the samples that have one, ``coverage`` and ``empty`` over all samples."""
    metrics = []
    for name, values in scores.scores.items():
        if name.removesuffix(_RAW) in METRICS:
            scored = values[~np.isnan(values)]
            mean, stderr = mean_and_stderr(scored)
            metrics.append(scores.spec(name).metric(mean, len(scored), stderr, scorer=SCORER))
    return [*metrics, *shares(scores.scores["status"], SCORER)]


class _Texts:
    """Captions and references without white space at their ends, and their sentences, cut once."""

    def __init__(
        self,
        captions: Sequence[str | None],
        references: Sequence[Sequence[str]],
        splitter: Splitter | None,
        options: SimilarityOptions,
        ids: Sequence[str] | None,
    ) -> None:
        if len(captions) != len(references):
            raise DataError(f"there are {len(captions)} captions, but references of {len(references)} samples")
        if options.fine and splitter is None:
            raise ValueError("a splitter is needed where sentences are matched")
        self.captions = [None if caption is None else plain(caption) for caption in captions]
        self.references = [[plain(text) for text in several] for several in references]
        for row, several in enumerate(self.references):
            if not several or not all(several):
                who = f"sample {ids[row]!r}" if ids is not None else f"sample number {row + 1}"
                problem = "a blank reference caption" if several else "no reference caption"
                raise DataError(f"{who} has {problem}; at least one is expected, none of them blank")
        self.splitter = splitter if options.fine else None
        self._sentences: dict[str, list[str]] = {}

    def captions_of(self, row: int) -> list[str]:
        """The caption of a sample, where there is one to embed."""
        caption = self.captions[row]
        return [caption] if caption else []

    def sentences(self, text: str) -> list[str]:
        """The sentences of a text; none where sentences are not matched."""
        if self.splitter is None:
            return []
        if text not in self._sentences:
            self._sentences[text] = self.splitter.split(text)
        return self._sentences[text]

    def counts(self, captions: Sequence[str | None]) -> dict[str, Array]:
        """Counts the sentences of each caption, and of all references of its sample: float64 [n]; NaN if none."""
        own = [np.nan if text is None else len(self.sentences(text)) for text in captions]
        others = [
            np.nan if text is None else sum(len(self.sentences(text)) for text in several)
            for text, several in zip(captions, self.references, strict=True)
        ]
        return {"sentences": np.array(own, np.float64), "reference_sentences": np.array(others, np.float64)}


class _Pairs:
    """Scores pairs of a caption and a reference."""

    def __init__(self, texts: _Texts, rows: Mapping[str, int], embeddings: Array, options: SimilarityOptions) -> None:
        self.texts, self.rows, self.embeddings, self.options = texts, rows, embeddings, options
        every = list(chain.from_iterable(texts.references))
        self.references = len(every)
        idf = options.fine and options.weights == "idf"
        self.having = Counter(chain.from_iterable(set(texts.sentences(text)) for text in every)) if idf else None

    def score(self, pairs: Sequence[tuple[str, str]]) -> dict[str, Array]:
        """Computes all metrics of pairs of texts that are not blank: float64 arrays [pairs]."""
        captions, references = zip(*pairs, strict=True)
        whole, truth = ([self._rows([text]) for text in side] for side in (captions, references))
        raw = {"coarse_similarity": match_rows(self.embeddings, whole, truth)[0]}
        if self.options.fine:
            parts, others = ([self.texts.sentences(text) for text in side] for side in (captions, references))
            raw["fine_precision"], raw["fine_recall"] = match_rows(
                self.embeddings,
                [self._rows(part) for part in parts],
                [self._rows(other) for other in others],
                self._weights(parts),
                self._weights(others),
            )
        scaled = {name: unit(values) for name, values in raw.items()}
        scores = self._complete(scaled) | {name + _RAW: values for name, values in self._complete(raw).items()}
        return {name: scores[name] for name in self.options.metrics()}

    def _complete(self, values: dict[str, Array]) -> dict[str, Array]:
        """Adds F1 and hm_cf, which follow from the others."""
        if not self.options.fine:
            return values
        f1 = harmonic(values["fine_precision"], values["fine_recall"])
        return {**values, "fine_f1": f1, "hm_cf": combined(values["coarse_similarity"], f1, self.options.combine)}

    def _rows(self, texts: Sequence[str]) -> Array:
        try:
            return np.array([self.rows[text] for text in texts], dtype=np.int64)
        except KeyError as error:
            raise DataError(f"there is no embedding of the text {error.args[0]!r}") from None

    def _weights(self, parts: Sequence[Sequence[str]]) -> list[Array] | None:
        if self.having is None:
            return None
        return [np.log((self.references + 1) / (np.array([self.having[row] for row in part]) + 1)) for part in parts]


def _baselines(pairs: _Pairs, texts: _Texts, kept: Array, options: SimilarityOptions) -> dict[str, float]:
    """The mean of each metric over random pairs of a caption and a reference of another sample."""
    if len(kept) < 2:
        raise DataError(
            f"a baseline needs captions of at least two samples, there are {len(kept)}; omit rescale='baseline'"
        )
    rng = np.random.Generator(np.random.Philox(options.seed))
    first = rng.integers(len(kept), size=options.baseline_pairs)
    other = (first + rng.integers(1, len(kept), size=options.baseline_pairs)) % len(kept)
    chosen = []
    for row, apart, share in zip(kept[first], kept[other], rng.random(options.baseline_pairs), strict=True):
        several = texts.references[apart]
        chosen.append((texts.captions[row] or "", several[int(share * len(several))]))
    baselines = {name: float(np.mean(values)) for name, values in pairs.score(chosen).items()}
    for name, base in baselines.items():
        if not base < 1:
            raise DataError(
                f"random pairs have a mean {name} of {base:g}, so that nothing can be better than a baseline"
            )
    return baselines

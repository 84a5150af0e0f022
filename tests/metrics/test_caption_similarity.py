"""Caption similarity: against the loops of CLIP-CC-Bench's documentation, by hand, and whatever the blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tables import cases

from testbed.data.language.sentences import SentenceSplitter
from testbed.errors import DataError, DefinitionError
from testbed.metrics import greedy_match as kernel
from testbed.metrics.caption_similarity import (
    METRICS,
    SimilarityOptions,
    combined,
    greedy_match,
    harmonic,
    score_captions,
    similarity_metrics,
    texts_of,
    unit,
)

BLOCKS = [1, 20_000, 2**30]  # a tile at a time; some; all at once
RAW = tuple(f"{name}_raw" for name in METRICS)
SPLITTER = SentenceSplitter("at full stops", lambda text: text.split("."))
PLAIN = SimilarityOptions()


def cosine(one, other):
    length = np.linalg.norm(one) * np.linalg.norm(other)
    return float(one @ other / length) if length else 0.0


def mean_of_products(one, other):
    return 2 * one * other / (one + other) if one > 0 and other > 0 else 0.0


def loop(predicted, truth, n=lambda x: (x + 1) / 2):
    """Precision and recall of a pair as CLIP-CC-Bench's documentation describes them; n is its normalization."""
    precision = [n(max(cosine(sentence, other) for other in truth)) for sentence in predicted]
    recall = [n(max(cosine(sentence, other) for other in predicted)) for sentence in truth]
    return sum(precision) / len(precision), sum(recall) / len(recall)


def some_pairs(seed, pairs=60, width=24, largest=9, shift=0.0):
    rng = np.random.default_rng(seed)
    centre = shift * rng.normal(size=width)
    return [
        [rng.normal(size=(count, width)) * rng.lognormal(size=(count, 1)) + centre for count in counts]
        for counts in rng.integers(1, largest + 1, size=(2, pairs))
    ]


class Embeddings:
    """Random embeddings, one for each text that is asked for."""

    def __init__(self, seed=0, width=16):
        self.rng, self.width, self.known = np.random.default_rng(seed), width, {}

    def __getitem__(self, text):
        if text not in self.known:
            self.known[text] = self.rng.normal(size=self.width)
        return self.known[text]

    def of(self, texts):
        return {text: row for row, text in enumerate(texts)}, np.array([self[text] for text in texts])


def scored(captions, references, options=PLAIN, embeddings=None, **more):
    texts = texts_of(captions, references, SPLITTER, options)
    table = (embeddings or Embeddings()).of(texts)
    return score_captions(captions, references, *table, SPLITTER, options, **more)


def by_loop(caption, reference, embeddings, n=lambda x: x):
    """All five metrics of a pair."""
    parts = [[embeddings[part.strip()] for part in text.split(".") if part.strip()] for text in (caption, reference)]
    coarse, (precision, recall) = n(cosine(embeddings[caption], embeddings[reference])), loop(*parts, n)
    f1 = mean_of_products(precision, recall)
    return coarse, precision, recall, f1, mean_of_products(coarse, f1)


def random_captions(seed, count=40):
    """Captions of one to six of 30 sentences, and one to three references each."""
    rng = np.random.default_rng(seed)

    def text():
        return ". ".join(f"sentence {number}" for number in rng.integers(30, size=rng.integers(1, 7)))

    return [text() for _ in range(count)], [[text() for _ in range(rng.integers(1, 4))] for _ in range(count)]


# Greedy matching ----------------------------------------------------------------------------------------------------


@cases(
    ("seed", "options"),
    [
        *((seed, {"shift": shift}) for seed in range(3) for shift in (0.0, 3.0)),
        *((width, {"pairs": 4, "width": width, "largest": 3}) for width in (1, 2, 7, 384, 4096, 20_000)),
    ],
)
def test_matching_is_the_double_loop(seed, options):
    candidates, references = some_pairs(seed, **options)
    found = greedy_match(candidates, references)
    expected = [loop(*pair, n=float) for pair in zip(candidates, references, strict=True)]
    np.testing.assert_allclose(np.transpose(found), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_blocks_do_not_change_a_bit(block_bytes, monkeypatch):
    candidates, references = some_pairs(5)
    expected = greedy_match(candidates, references)
    for side in (1, 2, 5, 256):
        monkeypatch.setattr(kernel, "_SIDE", side)
        np.testing.assert_array_equal(greedy_match(candidates, references, block_bytes=block_bytes), expected)


def test_the_other_pairs_do_not_change_a_bit():
    candidates, references = some_pairs(6, width=100)
    expected = np.array(greedy_match(candidates, references))
    order = np.random.default_rng(0).permutation(len(candidates))
    found = greedy_match([candidates[row] for row in order], [references[row] for row in order])
    np.testing.assert_array_equal(found, expected[:, order])
    for row, pair in enumerate(zip(candidates, references, strict=True)):
        np.testing.assert_array_equal(np.ravel(greedy_match(*([each] for each in pair))), expected[:, row])


@pytest.mark.parametrize("width", [3, 384, 4096, 2**15])
def test_sums_are_exact(width):
    """Whatever the order of the dimensions; also for embeddings that are all but equal, whose sums are the largest."""
    rng = np.random.default_rng(width)
    for noise in (1.0, 1e-3, 1e-9):
        rows = 1 + noise * rng.normal(size=(6, width))
        one, other = kernel._Vectors(rows[:3], 1), kernel._Vectors(rows[3:], 1)
        expected = kernel._cosines(one, other)
        whole = [
            [int(high) * 2**20 + int(low) for high, low in zip(v.high[0, 0], v.low[0, 0], strict=True)]
            for v in (one, other)
        ]
        dot, *squares = (sum(map(int.__mul__, *pair)) for pair in (whole, whole[:1] * 2, whole[1:] * 2))
        assert expected[0, 0, 0] == pytest.approx(dot / math.sqrt(math.prod(squares)), rel=2**-51, abs=0)
        order = rng.permutation(width)
        for each in (one, other):
            each.high, each.low = each.high[:, :, order], each.low[:, :, order]
        np.testing.assert_array_equal(kernel._cosines(one, other), expected)


def test_swapping_the_sides_swaps_precision_and_recall():
    candidates, references = some_pairs(7)
    found = greedy_match(candidates, references)
    np.testing.assert_array_equal(greedy_match(references, candidates), found[::-1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_equal_sets_match_fully(dtype):
    candidates, _ = some_pairs(8, width=384)
    candidates = [each.astype(dtype) for each in candidates]
    np.testing.assert_array_equal(greedy_match(candidates, [each[::-1] for each in candidates]), 1.0)


def test_scale_does_not_count():
    candidates, references = some_pairs(9)
    expected = greedy_match(candidates, references)
    for scale in (2.0**-900, 2.0**900):
        np.testing.assert_array_equal(greedy_match([each * scale for each in candidates], references), expected)
    tiny = greedy_match([np.full((1, 4), 5e-324)], [np.full((1, 4), 1e308)])
    np.testing.assert_array_equal(tiny, 1.0)


def test_a_pad_is_never_the_best_match():
    """All cosines are negative; the first pair is padded to the second one's size."""
    candidates = [np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.0], [2.0, 0.0]])]
    references = [np.array([[-1.0, 0.5]]), np.array([[-1.0, 0.0]] * 5)]
    precision, recall = greedy_match(candidates, references)
    assert precision[0] == recall[0] == pytest.approx(-1 / math.sqrt(1.25))
    assert precision[1] == pytest.approx((-3 - 1 / math.sqrt(1.01) - 1 / math.sqrt(1.04)) / 5)
    assert recall[1] == pytest.approx(-1 / math.sqrt(1.04))


def test_zeros_have_cosine_zero():
    some, zeros = np.array([[1.0, -2.0], [3.0, 1.0]]), np.zeros((2, 2))
    np.testing.assert_array_equal(greedy_match([zeros, some, zeros], [some, zeros, zeros]), 0.0)
    precision, recall = greedy_match([np.array([[1.0, 0.0], [0.0, 0.0]])], [np.array([[-1.0, 0.0]])])
    assert (precision[0], recall[0]) == (-0.5, 0.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_not_finite_makes_its_own_pair_nan(value, side):
    pairs = some_pairs(10, pairs=5, largest=4)
    expected = np.array(greedy_match(*pairs))
    pairs[side][2][0, 3] = value
    expected[:, 2] = np.nan
    np.testing.assert_array_equal(greedy_match(*pairs), expected)


def test_an_empty_side_matches_nothing():
    some, none = np.ones((2, 3)), np.ones((0, 3))
    np.testing.assert_array_equal(greedy_match([none, some, none, some], [some, none, none, some]), [[0, 0, 0, 1]] * 2)
    assert [len(each) for each in greedy_match([], [])] == [0, 0]


def test_hundreds_of_sentences(monkeypatch):
    rng = np.random.default_rng(11)
    pair = rng.normal(size=(400, 12)), rng.normal(size=(300, 12))
    found = greedy_match([pair[0]], [pair[1]])
    unit_length = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in pair]
    table = unit_length[0] @ unit_length[1].T
    expected = table.max(axis=1).mean(), table.max(axis=0).mean()
    np.testing.assert_allclose(np.ravel(found), expected, rtol=0, atol=1e-12)


def test_weights():
    candidates = [np.array([[1.0, 0.0], [0.0, 1.0]])] * 2
    references = [np.array([[1.0, 0.0]])] * 2
    precision, recall = greedy_match(candidates, references, [[3.0, 1.0], [0.0, 0.0]], [[0.0], [5.0]])
    assert precision.tolist() == [0.75, 0.5]  # weights that sum to 0 are uniform
    assert recall.tolist() == [1.0, 1.0]


def test_memory_is_bounded(monkeypatch):
    """No block is larger than what was allowed, but for one of a single tile."""
    sizes = []
    monkeypatch.setattr(
        kernel, "_cosines", lambda left, right, do=kernel._cosines: sizes.append(left.high.nbytes) or do(left, right)
    )
    candidates, references = some_pairs(12, pairs=500, width=64)
    greedy_match(candidates, references, block_bytes=100_000)
    assert len(sizes) > 20
    assert max(sizes) < 100_000 / 2


def test_matching_says_what_does_not_fit():
    one = np.ones((2, 3))
    with pytest.raises(ValueError, match="as many candidates as references, got 2 and 1"):
        greedy_match([one, one], [one])
    with pytest.raises(ValueError, match="of one D"):
        greedy_match([one], [np.ones((2, 4))])
    with pytest.raises(ValueError, match="of one D"):
        greedy_match([np.ones(3)], [np.ones(3)])
    with pytest.raises(ValueError, match="a weight for each"):
        greedy_match([one], [one], [[1.0]])
    for wrong in (-1.0, np.nan):
        with pytest.raises(ValueError, match="finite and not negative"):
            greedy_match([one], [one], [[1.0, wrong]])


# Formulas -----------------------------------------------------------------------------------------------------------


def test_the_documented_examples():
    f1 = harmonic(0.7234, 0.7456)
    assert round(float(f1), 4) == 0.7343
    assert round(float(combined(0.7654, f1)), 4) == 0.7495
    f1 = harmonic(0.7891, 0.8012)
    assert round(float(f1), 4) == 0.7951
    assert round(float(combined(0.8234, f1)), 4) == 0.8090  # 0.8088 there, which does not follow from the formula
    assert float(combined(0.5, 0.25, "mean")) == 0.375
    assert unit([-1.0, 0.0, 1.0]).tolist() == [0.0, 0.5, 1.0]


def test_harmonic_means():
    one, other = [0.5, 0.0, 0.0, -0.5, -0.5, 1.0, np.nan], [0.25, 0.0, 1.0, 0.5, -0.5, 1.0, -1.0]
    np.testing.assert_array_equal(harmonic(one, other), [1 / 3, 0, 0, 0, 0, 1, np.nan])


# Captions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_all_metrics_are_those_of_the_loop(seed):
    captions, references = random_captions(seed)
    embeddings = Embeddings(seed)
    found = scored(captions, references, embeddings=embeddings).scores
    for names, n in ((RAW, float), (METRICS, lambda x: (x + 1) / 2)):
        for row, caption in enumerate(captions):
            each = [by_loop(caption, reference, embeddings, n) for reference in references[row]]
            largest = [max(values) for values in zip(*each, strict=True)]
            np.testing.assert_allclose([found[name][row] for name in names], largest, rtol=0, atol=1e-12)
            assert found["reference_sentences"][row] == sum(len(text.split(".")) for text in references[row])


def test_a_sample_does_not_depend_on_the_others():
    captions, references = random_captions(4)
    embeddings = Embeddings()
    expected = scored(captions, references, embeddings=embeddings).scores
    order = np.random.default_rng(1).permutation(len(captions))
    found = scored([captions[row] for row in order], [references[row] for row in order], embeddings=embeddings).scores
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values[order])
    for row in range(5):
        alone = scored([captions[row]], [references[row]], embeddings=embeddings).scores
        assert {name: values[0] for name, values in alone.items()} == {
            name: values[row] for name, values in expected.items()
        }


def test_names_of_scores_and_of_metrics():
    found = scored(["a. b", "c"], [["a"], ["c. d"]])
    assert tuple(found.scores) == (*METRICS, *RAW, "sentences", "reference_sentences", "status")
    assert all(values.dtype == np.float64 and values.shape == (2,) for values in found.scores.values())
    assert [score.name for score in found.rows()] == list(found.scores)
    metrics = similarity_metrics(found)
    assert [(metric.name, metric.unit, metric.n, metric.scorer) for metric in metrics] == [
        *((name, "fraction", 2, "caption_similarity@2") for name in METRICS),
        *((name, "cosine", 2, "caption_similarity@2") for name in RAW),
        *((name, "fraction", 2, "caption_similarity@2") for name in ("coverage", "empty")),
    ]
    assert found.splitter == "at full stops"


def test_captions_that_are_missing_empty_or_errors():
    captions = ["a. b", None, " \n", None, "c"]
    references = [["a"], ["b"], ["c. d"], ["d"], ["e"]]
    found = scored(captions, references, errors=[False, False, False, True, False])
    assert found.scores["status"].tolist() == [0, 1, 2, 3, 0]
    for name in (*METRICS, *RAW):
        assert found.scores[name][2] == 0  # on both scales; not 0.5, a cosine of 0
        assert np.isnan(found.scores[name]).tolist() == [False, True, False, True, False]
    np.testing.assert_array_equal(found.scores["sentences"], [2, np.nan, 0, np.nan, 1])
    np.testing.assert_array_equal(found.scores["reference_sentences"], [1, np.nan, 2, np.nan, 1])
    assert (found.coverage, found.empty) == (0.6, 0.2)
    metrics = {metric.name: metric for metric in similarity_metrics(found)}
    values = found.scores["hm_cf"][[0, 2, 4]]
    assert metrics["hm_cf"].value == pytest.approx(values.mean())
    assert metrics["hm_cf"].stderr == pytest.approx(values.std(ddof=1) / math.sqrt(3))
    assert (metrics["hm_cf"].n, metrics["coverage"].n, metrics["empty"].n) == (3, 5, 5)
    assert (metrics["coverage"].value, metrics["empty"].value) == (0.6, 0.2)


def test_missing_captions_can_score_zero():
    captions, references = ["a", None, "", None], [["a"], ["b"], ["c"], ["d"]]
    found = scored(captions, references, SimilarityOptions(missing="zero"), errors=[False, False, False, True])
    assert found.scores["status"].tolist() == [0, 1, 2, 3]
    for name in (*METRICS, *RAW):
        assert found.scores[name].tolist() == [1, 0, 0, 0]
    assert found.coverage == 0.5


@pytest.mark.parametrize("missing", ["skip", "zero"])
def test_an_embedding_that_is_not_finite_is_an_error_and_no_score(missing):
    embeddings = Embeddings()
    embeddings["b"][0] = np.nan
    options = SimilarityOptions(missing=missing)
    found = scored(["a. b", "a", "a"], [["a"], ["b", "a"], ["c"]], options, embeddings)
    assert found.scores["status"].tolist() == [3, 3, 0]
    assert np.isnan(found.scores["hm_cf"]).tolist() == [True, True, False]
    assert found.coverage == pytest.approx(1 / 3)


def test_no_samples_and_no_captions():
    none = scored([], [])
    assert (none.coverage, none.empty) == (None, None)
    assert {metric.value for metric in similarity_metrics(none)} == {None}
    missing = scored([None, None], [["a"], ["b"]])
    assert {metric.name: metric.value for metric in similarity_metrics(missing)}["hm_cf"] is None
    assert missing.coverage == 0


def test_white_space_at_the_ends_does_not_count():
    found = scored([" a. b \n"], [["\ta. b"]])
    assert {found.scores[name][0] for name in METRICS} == {1.0}


@pytest.mark.parametrize(
    ("references", "found"),
    [([["a"], []], "no reference caption"), ([["a"], ["b", " "]], "a blank reference caption")],
)
def test_a_sample_needs_references(references, found):
    for score in (texts_of, lambda *given: score_captions(*given[:2], {}, np.zeros((0, 1)), *given[2:])):
        with pytest.raises(DataError, match=f"sample number 2 has {found}"):
            score(["a", None], references, SPLITTER, PLAIN)
    with pytest.raises(DataError, match=f"sample 'video 2' has {found}"):
        texts_of(["a", None], references, SPLITTER, PLAIN, ids=["video 1", "video 2"])


def test_every_text_is_needed_once():
    captions = ["a. b. a", "a", None, " "]
    references = [["a. b. a"], ["c. a", "d"], ["e. f"], ["g"]]
    assert texts_of(captions, references, SPLITTER, PLAIN) == "a. b. a|a|b|c. a|c|d|e. f|e|f|g".split("|")
    coarse = SimilarityOptions(fine=False)
    assert texts_of(captions, references, None, coarse) == ["a. b. a", "a", "c. a", "d", "e. f", "g"]


def test_a_text_without_embedding_is_named():
    with pytest.raises(DataError, match="no embedding of the text 'b'"):
        score_captions(["a"], [["b"]], {"a": 0}, np.ones((1, 2)), SPLITTER, PLAIN)


def test_lengths_must_fit():
    with pytest.raises(DataError, match="2 captions, but references of 1 samples"):
        texts_of(["a", "b"], [["a"]], SPLITTER, PLAIN)
    with pytest.raises(ValueError, match="a boolean for each of 1 captions"):
        scored(["a"], [["a"]], errors=[True, False])
    with pytest.raises(ValueError, match="a splitter is needed"):
        texts_of(["a"], [["a"]], None, PLAIN)


def test_coarse_only():
    captions, references = random_captions(5)
    embeddings = Embeddings()
    every = scored(captions, references, embeddings=embeddings).scores
    found = scored(captions, references, SimilarityOptions(fine=False), embeddings)
    assert list(found.scores) == ["coarse_similarity", "coarse_similarity_raw", "status"]
    np.testing.assert_array_equal(found.scores["coarse_similarity"], every["coarse_similarity"])
    assert found.splitter == ""


def test_ways_to_combine():
    captions, references = random_captions(6)
    references = [several[:1] for several in references]
    found = scored(captions, references, SimilarityOptions(combine="mean")).scores
    np.testing.assert_allclose(found["hm_cf"], (found["coarse_similarity"] + found["fine_f1"]) / 2, atol=1e-15)
    assert "hm_cf" not in scored(captions, references, SimilarityOptions(combine="none")).scores


# IDF and baselines --------------------------------------------------------------------------------------------------


def test_idf_by_hand():
    """Three references: "a" is in all of them, "b" in one, though twice; "x" in none."""
    captions, references = ["a. x", "b", "a"], [["a. b. b"], ["a. c"], ["a"]]
    embeddings = Embeddings(2)
    of = {"a": math.log(4 / 4), "b": math.log(4 / 2), "x": math.log(4 / 1)}
    found = scored(captions, references, SimilarityOptions(weights="idf"), embeddings).scores
    matches = [cosine(embeddings[one], embeddings["x"]) for one in ("a", "b")]
    assert found["fine_precision_raw"][0] == pytest.approx(max(matches), abs=1e-12)  # "a" weighs 0
    to_b = max(cosine(embeddings["b"], embeddings[one]) for one in ("a", "x"))
    assert found["fine_recall_raw"][0] == pytest.approx((0 * of["a"] + 2 * of["b"] * to_b) / (2 * of["b"]), abs=1e-12)
    to_x = max(cosine(embeddings["x"], embeddings[one]) for one in ("a", "b"))
    assert found["fine_precision_raw"][0] == pytest.approx((of["a"] * 1 + of["x"] * to_x) / of["x"], abs=1e-12)
    assert found["fine_f1"][2] == 1.0  # all weights are 0, so they are uniform


def test_idf_of_a_single_reference_is_uniform():
    captions, references = ["a. b. c"], [["a. d"]]
    uniform, idf = (scored(captions, references, SimilarityOptions(weights=each)).scores for each in ("uniform", "idf"))
    assert idf["fine_recall"] == uniform["fine_recall"]


def test_idf_does_not_depend_on_the_captions():
    captions, references = random_captions(7)
    embeddings, options = Embeddings(), SimilarityOptions(weights="idf")
    first = scored(captions, references, options, embeddings).scores["fine_f1"]
    other = scored([captions[0], *[None] * 39], references, options, embeddings).scores["fine_f1"]
    assert first[0] == other[0]


def test_a_baseline_is_the_mean_of_random_pairs():
    captions, references = ["a. b", "c", "d. e"], [["a. x"], ["c. y"], ["z"]]
    embeddings = Embeddings(4, width=64)
    options = SimilarityOptions(rescale="baseline", baseline_pairs=20_000)
    plain, found = (
        scored(captions, references, embeddings=embeddings),
        scored(captions, references, options, embeddings),
    )
    pairs = [
        by_loop(caption, several[0], embeddings)
        for row, caption in enumerate(captions)
        for other, several in enumerate(references)
        if row != other
    ]
    for name, expected in zip(RAW, np.mean(pairs, axis=0), strict=True):
        assert found.baselines[name] == pytest.approx(expected, abs=0.005)
    for name in (*METRICS, *RAW):
        base = found.baselines[name]
        np.testing.assert_allclose(found.scores[name], (plain.scores[name] - base) / (1 - base), rtol=0, atol=1e-15)
    assert found.scores["fine_f1"][2] < 0.2


def test_baselines_are_the_same_for_the_same_seed():
    captions, references = random_captions(8)
    found = [
        scored(captions, references, SimilarityOptions(rescale="baseline", seed=seed)).baselines for seed in (0, 0, 1)
    ]
    assert found[0] == found[1] != found[2]


def test_a_baseline_leaves_out_what_is_not_scored():
    captions, references = ["a", None, " ", "b"], [["a"], ["b"], ["c"], ["b"]]
    options = SimilarityOptions(rescale="baseline", missing="zero")
    embeddings = Embeddings()
    found = scored(captions, references, options, embeddings)
    assert found.scores["coarse_similarity"].tolist() == [1, 0, 0, 1]
    assert found.baselines["coarse_similarity_raw"] == pytest.approx(cosine(embeddings["a"], embeddings["b"]))


def test_a_baseline_needs_two_captions_that_differ():
    options = SimilarityOptions(rescale="baseline")
    with pytest.raises(DataError, match="at least two samples, there are 1"):
        scored(["a", None], [["a"], ["b"]], options)
    with pytest.raises(DataError, match="random pairs have a mean coarse_similarity of 1"):
        scored(["a", "a"], [["a"], ["a"]], options)


# Options ------------------------------------------------------------------------------------------------------------


@cases(
    ("name", "value"),
    [
        ("chunking", "regex"),
        ("weights", "tfidf"),
        ("combine", "geometric"),
        ("rescale", "unit"),
        ("missing", "fail"),
        ("fine", "yes"),
        ("baseline_pairs", 0),
        ("baseline_pairs", 1.5),
        ("seed", -1),
        ("seed", True),
    ],
)
def test_options_that_do_not_exist(name, value):
    with pytest.raises(DefinitionError, match=f"caption similarity: {name} is {value!r}"):
        SimilarityOptions(**{name: value})


def test_the_spec_holds_what_counts_only():
    assert SimilarityOptions(fine=False, weights="idf", seed=5).spec() == SimilarityOptions(fine=False).spec()
    assert SimilarityOptions(seed=5).spec() == PLAIN.spec()
    assert SimilarityOptions(chunking="pysbd").spec() == PLAIN.spec()  # the splitter's id tells these apart
    baseline = [SimilarityOptions(rescale="baseline", seed=seed).spec() for seed in (0, 5)]
    assert baseline[0] != baseline[1]
    for name, value in {"weights": "idf", "combine": "mean", "missing": "zero", "fine": False}.items():
        assert SimilarityOptions(**{name: value}).spec() != PLAIN.spec()

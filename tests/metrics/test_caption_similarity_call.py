"""Caption similarity in one call: scorers of all kinds, options, what it returns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy import toy_model

from testbed import registry
from testbed.errors import DataError, DefinitionError, UnknownNameError, UnsupportedError
from testbed.metrics.caption_similarity_call import caption_similarity
from testbed.models.base.definition import LoadOptions
from testbed.models.model_base import DualEncoder, StandardTransform
from testbed.registry import Catalog

CALL = {"captions": ["A dog. It runs.", None, " "], "references": ["A dog runs. It runs.", ["A cat."], ["x", "y"]]}
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
LANGUAGES = []


def of_letters(texts):
    """How many of each letter; keeps the texts of each call."""
    of_letters.calls.append(list(texts))
    return np.array([[text.lower().count(letter) for letter in ALPHABET] for text in texts])


class Towers(torch.nn.Module):
    def encode_text(self, tokens):
        return tokens.float()


def tokenizer_for(tokenizer, code):
    LANGUAGES.append(code)
    return tokenizer


@pytest.fixture(autouse=True)
def _no_calls():
    of_letters.calls = []
    LANGUAGES.clear()


@pytest.fixture
def letters():
    return DualEncoder(
        "letters",
        StandardTransform(8, 8),
        lambda: (Towers(), lambda texts: torch.from_numpy(of_letters(texts))),
        4,
        tokenizer_for=tokenizer_for,
    )


@pytest.fixture
def catalog(letters, monkeypatch):
    """What is registered."""
    known = Catalog(packages=(), entry_points=False)
    known.add_model(letters)
    known.add_model(toy_model("sees"))
    monkeypatch.setattr(registry, "registry", known)


def test_a_function_is_called_once_with_different_texts():
    found = caption_similarity(**CALL, scorer=of_letters, chunking="sentencex")
    (texts,) = of_letters.calls
    wanted = ["A dog. It runs.", "A dog.", "It runs.", "A dog runs. It runs.", "A dog runs.", "A cat.", "x", "y"]
    assert sorted(texts) == sorted(wanted)
    assert found["per_sample"]["status"].tolist() == [0, 1, 2]
    assert found["hm_cf"] == pytest.approx(np.nanmean(found["per_sample"]["hm_cf"]))
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["splitter"].startswith("sentencex ")
    assert found["baselines"] == {}


def test_tensors_of_any_precision():
    expected = caption_similarity(**CALL, scorer=of_letters)
    found = caption_similarity(
        **CALL, scorer=lambda texts: torch.tensor(of_letters(texts), dtype=torch.bfloat16, requires_grad=True)
    )
    np.testing.assert_equal(found, expected)


def test_names_definitions_and_loaded_models(letters, catalog):
    expected = caption_similarity(**CALL, scorer=of_letters)
    for scorer in ("letters", letters, letters.load(LoadOptions())):
        np.testing.assert_equal(caption_similarity(**CALL, scorer=scorer, device="cpu"), expected)
    assert set(LANGUAGES) == {"en"}


def test_the_language_reaches_splitter_and_scorer(letters):
    found = caption_similarity(**CALL, scorer=letters, device="cpu", chunking="sentencex", language="de")
    assert found["splitter"].endswith(" de")
    assert set(LANGUAGES) == {"de"}


def test_scorers_that_cannot_be(catalog):
    with pytest.raises(UnknownNameError, match="did you mean 'letters'"):
        caption_similarity(**CALL, scorer="leters")
    with pytest.raises(UnsupportedError, match="the model 'sees' embeds no texts"):
        caption_similarity(**CALL, scorer="sees")
    with pytest.raises(UnsupportedError, match="got 3"):
        caption_similarity(**CALL, scorer=3)
    for wrong in (np.zeros((2, 4)), np.zeros(8), np.array([["a"]] * 8)):
        with pytest.raises(DataError, match="was given 8 texts and returned"):
            caption_similarity(**CALL, scorer=lambda texts, wrong=wrong: wrong)


def test_options_reach_the_scores():
    found = caption_similarity(**CALL, scorer=of_letters, fine=False, missing="zero")
    assert set(found["per_sample"]) == {"coarse_similarity", "coarse_similarity_raw", "status"}
    assert found["per_sample"]["coarse_similarity"][1] == 0
    with pytest.raises(DefinitionError, match="combine is 'max'"):
        caption_similarity(**CALL, scorer=of_letters, combine="max")
    with pytest.raises(TypeError, match="combining"):
        caption_similarity(**CALL, scorer=of_letters, combining="mean")


@pytest.mark.parametrize(
    ("captions", "references", "said"),
    [
        ("ab", ["a", "b"], r"captions are a list, one for each sample, got 'ab'"),
        (["a"], "a", r"references are a list, one for each sample, got 'a'"),
        (["a", float("nan")], ["a", "b"], r"the caption of sample number 2 is nan; expected a text, or None"),
        (["a", "b"], ["a", None], r"a reference of sample number 2 is None; expected a text or a list of texts"),
        (["a"], [["a", 3]], r"a reference of sample number 1 is 3"),
    ],
)
def test_what_is_no_list_of_texts(captions, references, said):
    with pytest.raises(DataError, match=said):
        caption_similarity(captions, references, lambda texts: np.ones((len(texts), 2)))


def test_nothing_to_embed():
    found = caption_similarity([], [], of_letters)
    assert found["hm_cf"] is None
    assert of_letters.calls == []

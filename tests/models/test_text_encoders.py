"""Text embedders as models: their batches, their instruction and length, what they are."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from testbed.errors import DefinitionError, RunError
from testbed.identity.describe import digest
from testbed.models.base.capability import EMBED_TEXT, EmbedsText
from testbed.models.base.text_encoder import TextEncoder
from testbed.models.base.text_runtime import alike
from testbed.models.model_base import LoadOptions
from testbed.registry import registry

CPU = LoadOptions("cpu")
TEXTS = ["a cat", "two dogs in a park", "", "a cat", "an owl", "ünïcode"]


class Letters(torch.nn.Module):
    """Counts letters, and remembers what it was given."""

    def __init__(self, fits: int = 100):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.arange(1.0, 27.0))
        self.batches: list[list[str]] = []
        self.fits = fits
        self.max_seq_length = 1000

    def encode(self, texts):
        self.batches.append(texts)
        if len(texts) > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        rows = [[text[: self.max_seq_length].count(chr(97 + letter)) for letter in range(26)] for text in texts]
        return torch.tensor(rows) * self.scale


def test_a_definition_of_ones_own():
    model = TextEncoder("letters", Letters)
    assert model.capabilities == {EMBED_TEXT}
    assert model.transform is None
    loaded = model.load(CPU)
    assert isinstance(loaded, EmbedsText)
    embeddings = loaded.embed_text(TEXTS, "en")
    assert embeddings.shape == (6, 26)
    assert embeddings.dtype == torch.float32
    assert not embeddings.requires_grad
    assert torch.equal(embeddings, torch.cat([Letters().encode([text]) for text in TEXTS]))
    assert not loaded.encoder.training
    assert not loaded.encoder.scale.requires_grad


def test_equal_texts_are_encoded_once_and_texts_of_like_length_together():
    loaded = TextEncoder("letters", Letters, text_batch_size=2).load(CPU)
    loaded.embed_text(TEXTS)
    batches = loaded.encoder.batches
    assert batches == [["two dogs in a park", "ünïcode"], ["an owl", "a cat"], [""]]
    loaded.encoder.batches = []
    loaded.embed_text(TEXTS[::-1])
    assert loaded.encoder.batches == batches


class Counted(Letters):
    """Tells how many words a text has."""

    def lengths(self, texts):
        return [len(text.split()) for text in texts]


def test_texts_of_one_length_are_batched_together_where_the_encoder_tells_lengths():
    texts = [f"{'ab ' * words}{number}" for words in (1, 2, 3) for number in range((40, 5, 20)[words - 1])]
    loaded = TextEncoder("counted", Counted, text_batch_size=32).load(CPU)
    embeddings = loaded.embed_text(texts)
    batches = list(loaded.encoder.batches)
    assert [[len(text.split()) for text in batch] for batch in batches] == [[4] * 20, [3] * 5, [2] * 32, [2] * 8]
    assert torch.equal(embeddings, Letters().encode(texts))
    loaded.embed_text(texts[::-1])
    assert loaded.encoder.batches[4:] == batches


@pytest.mark.parametrize("told", [[1], None, 3])
def test_lengths_must_be_of_each_text(told):
    class Short(Letters):
        def lengths(self, texts):
            return told

    with pytest.raises(RunError, match=r"short: lengths returned .* for 5 texts"):
        TextEncoder("short", Short).load(CPU).embed_text(["a", "b", "c", "d", "e"])


@pytest.mark.parametrize(
    ("lengths", "least", "groups"),
    [
        ([0], 1, [(0, 1)]),
        ([5, 4, 4, 3], 1, [(0, 1), (1, 3), (3, 4)]),
        ([5, 4, 3], 16, [(0, 3)]),
        ([5] * 16 + [4], 16, [(0, 16), (16, 17)]),
        ([5] * 15 + [4] + [3], 16, [(0, 16), (16, 17)]),
        ([5] * 40 + [4] * 40, 16, [(0, 40), (40, 80)]),
    ],
)
def test_groups_of_like_length(lengths, least, groups):
    assert [(group.start, group.stop) for group in alike(lengths, least)] == groups


def test_a_batch_that_does_not_fit_is_halved_once_and_for_all(caplog):
    loaded = TextEncoder("letters", lambda: Letters(fits=2), text_batch_size=8).load(CPU)
    expected = Letters().encode(TEXTS)
    with caplog.at_level(logging.WARNING):
        assert torch.equal(loaded.embed_text(TEXTS), expected)
    assert [len(batch) for batch in loaded.encoder.batches] == [5, 2, 2, 1]
    assert caplog.messages == [
        "letters: a batch of 5 does not fit into memory; going on with 2 at a time",
    ]
    loaded.embed_text(TEXTS)
    assert [len(batch) for batch in loaded.encoder.batches[4:]] == [2, 2, 1]
    with pytest.raises(torch.OutOfMemoryError):
        TextEncoder("none fits", lambda: Letters(fits=0)).load(CPU).embed_text(["a"])


@pytest.mark.parametrize("form", [np.asarray, list, lambda rows: rows.double(), lambda rows: rows.half(), tuple])
def test_embeddings_may_come_in_other_forms(form):
    class Other:
        def encode(self, texts):
            return form(torch.tensor([[float(len(text)), 1.0] for text in texts]))

    embeddings = TextEncoder("other", Other).load(CPU).embed_text(["a", "bc"])
    assert embeddings.dtype == torch.float32
    assert embeddings.tolist() == [[1, 1], [2, 1]]


@pytest.mark.parametrize("given", [None, "no", torch.zeros(1), torch.zeros(3, 2), torch.zeros(2, 2, dtype=torch.long)])
def test_something_else_than_embeddings(given):
    class Other:
        def encode(self, texts):
            return given

    with pytest.raises(RunError, match="other: encode returned"):
        TextEncoder("other", Other).load(CPU).embed_text(["a", "b"])


def test_an_instruction_stands_in_front():
    loaded = TextEncoder("letters", Letters, instruction="Query: ").load(CPU)
    loaded.embed_text(["b", "a"])
    assert loaded.encoder.batches == [["Query: a", "Query: b"]]


def test_an_encoder_may_see_to_the_instruction_itself():
    seen = []

    class Instructed:
        def encode(self, texts, instruction):
            seen.append((texts, instruction))
            return torch.ones(len(texts), 2)

    TextEncoder("instructed", Instructed, instruction="Query: ").load(CPU).embed_text(["a"])
    assert seen == [(["a"], "Query: ")]


def test_a_length_reaches_the_encoder():
    assert TextEncoder("letters", Letters, max_length=3).load(CPU).embed_text(["aaaaa"])[0, 0] == 3
    with pytest.raises(DefinitionError, match=r"max_length=3 needs .* max_seq_length, which Bare does not have"):
        TextEncoder("bare", Bare, max_length=3).load(CPU)


class Bare:
    def encode(self, texts):
        return torch.ones(len(texts), 2)


def test_a_loader_is_given_the_options_if_it_asks_for_them():
    given = []

    def load(options):
        given.append(options)
        return Bare()

    TextEncoder("asks", load).load(LoadOptions("cpu", "bfloat16"))
    assert given == [LoadOptions("cpu", "bfloat16")]


def test_random_weights_are_the_same_for_the_same_seed():
    class Random:
        def __init__(self):
            self.row = torch.rand(2)

        def encode(self, texts):
            return self.row.expand(len(texts), 2)

    model = TextEncoder("random", Bare, random_loader=Random)
    first, again, other = (model.load(LoadOptions(random_seed=seed)).embed_text(["a"]) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert model.weights(random_seed=1).id == "random:1"


def test_what_decides_numbers_is_part_of_its_identity():
    def identity(loader=Letters, **fields):
        return digest(TextEncoder("name", loader, **fields).spec())

    plain = identity()
    assert plain == digest(TextEncoder("another", Letters, text_batch_size=7).spec())
    others = [identity(instruction="Query: "), identity(max_length=5), identity(Bare), identity(architecture={"a": 1})]
    assert len({plain, *others}) == 5
    assert TextEncoder("letters", Letters).weights() == TextEncoder("letters", Letters).weights()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"encoder_loader": None}, "encoder_loader is a function"),
        ({"text_batch_size": 0}, "eval_batch_size must be a positive integer"),
        ({"max_length": 0}, "max_length is an integer larger than 0, got 0"),
        ({"instruction": None}, "instruction is a text, got None"),
    ],
)
def test_faults_of_a_definition(fields, said):
    with pytest.raises(DefinitionError, match=said):
        TextEncoder(**{"name": "wrong", "encoder_loader": Letters, **fields})


def test_faults_of_use():
    with pytest.raises(DefinitionError, match=r"returns an object with encode\(texts\), not dict"):
        TextEncoder("wrong", dict).load(CPU)
    with pytest.raises(RunError, match="there are no texts"):
        TextEncoder("letters", Letters).load(CPU).embed_text([])


def test_the_text_tower_of_a_dual_encoder_embeds_texts_as_a_text_encoder_does():
    model = registry.get_model("digits-clip")
    assert EMBED_TEXT in model.capabilities
    loaded = model.load(LoadOptions(random_seed=0))
    assert isinstance(loaded, EmbedsText)
    texts = ["a photo of the digit two", "the number nine", "a photo of the digit two"]
    embeddings = loaded.embed_text(texts)
    assert embeddings.shape[0] == 3
    assert torch.equal(embeddings[0], embeddings[2])
    own = torch.cat([loaded.embed_text([text]) for text in texts])
    assert torch.allclose(embeddings, own, atol=1e-5)

"""The language of texts: where it reaches the tokenizer, where it is ignored, and NLLB-CLIP's codes."""

from __future__ import annotations

import re

import open_clip
import pytest
import torch

from testbed.errors import DefinitionError, RunError, UnsupportedError
from testbed.identity.describe import digest
from testbed.models.loading.flores import CODES, flores_code, nllb_tokenizer
from testbed.models.model_base import DualEncoder, LoadOptions, StandardTransform
from testbed.models.open_clip_models import OpenClipFamily

CPU = LoadOptions("cpu")
LANGUAGES = {"en": 1.0, "jp": 2.0}


class Towers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def encode_text(self, tokens):
        self.seen.append(len(tokens))
        return tokens.float()


class Tokenizer:
    """Gives the length of a text and the language; keeps the language that it was set to, as NLLB's does."""

    language = 0.0

    def __call__(self, texts):
        return torch.tensor([[len(text), self.language] for text in texts])


def for_language(tokenizer, code):
    tokenizer.language = LANGUAGES[code]
    return tokenizer


def loaded(**options):
    pair = Towers(), Tokenizer()
    return DualEncoder("d", StandardTransform(8, 8), lambda: pair, 4, **options).load(CPU)


def test_the_language_reaches_a_tokenizer_that_wants_it():
    encoder = loaded(tokenizer_for=for_language)
    assert encoder.embed_text(["abc"], "jp").tolist() == [[3, 2]]
    assert encoder.embed_text(["abc"], "en").tolist() == [[3, 1]]
    encoder.embed_text(["abc"], "jp")
    assert encoder.embed_text(["abc"]).tolist() == [[3, 1]]  # not what was left behind: English


def test_the_language_is_ignored_otherwise():
    encoder = loaded()
    assert encoder.embed_text(["abc"], "jp").tolist() == encoder.embed_text(["abc"]).tolist() == [[3, 0]]


def test_a_definition_tells_whether_the_language_matters():
    plain = loaded().definition
    assert plain.text_language("jp") is plain.text_language(None) is None
    aware = loaded(tokenizer_for=for_language).definition
    assert (aware.text_language("jp"), aware.text_language(None)) == ("jp", "en")
    coded = loaded(tokenizer_for=for_language, language_code=str.upper).definition
    assert (coded.text_language("jp"), coded.text_language(None)) == ("JP", "EN")
    assert "tokenizer_for" not in plain.spec()
    assert digest(aware.spec()) != digest(plain.spec())


def test_a_code_without_a_tokenizer_that_takes_it_is_refused():
    with pytest.raises(DefinitionError, match="language_code requires tokenizer_for"):
        loaded(language_code=str.upper)


def test_equal_texts_are_encoded_once():
    encoder = loaded(text_batch_size=2)
    texts = ["a", "bbb", "a", "cc", "bbb", "a"]
    assert encoder.embed_text(texts)[:, 0].tolist() == [1, 3, 1, 2, 3, 1]
    assert encoder.network.seen == [2, 1]


def test_no_texts_are_an_error_of_one_line():
    with pytest.raises(RunError, match="d: there are no texts to embed"):
        loaded().embed_text([])


# NLLB-CLIP --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "code"),
    [("en", "eng_Latn"), ("jp", "jpn_Jpan"), ("ja", "jpn_Jpan"), ("zh", "zho_Hant"), ("quz", "quy_Latn"),
     ("ace_Arab", "ace_Arab"), ("zho_Hans", "zho_Hans")],
)  # fmt: skip
def test_languages_have_flores_codes(language, code):
    assert flores_code(language) == code


def test_all_codes_are_of_the_flores_form():
    assert all(re.fullmatch("[a-z]{3}_[A-Z][a-z]{3}", code) for code in CODES.values())


@pytest.mark.parametrize("language", ["xx", "", "eng", "eng_latn", "eng_Latn "])
def test_a_language_without_a_code_is_unsupported(language):
    with pytest.raises(UnsupportedError, match="no FLORES-200 code is known for the language"):
        flores_code(language)


def test_the_nllb_models_of_open_clip_and_no_others_want_a_language():
    family = OpenClipFamily()
    for name in open_clip.list_models():
        if "nllb" in name:
            assert family.build(f"{name},v1").text_language("jp") == "jpn_Jpan"
    assert sum("nllb" in name for name in open_clip.list_models()) >= 4
    for name in ("ViT-B-32,openai", "xlm-roberta-base-ViT-B-32,laion5b_s13b_b90k", "ViT-B-32,/ckpts/nllb-clip.pt"):
        assert family.build(name).text_language("jp") is None


class Inner:
    unk_token_id = 3
    src_lang = "eng_Latn"

    def convert_tokens_to_ids(self, token):
        return {"eng_Latn": 10, "jpn_Jpan": 11}.get(token, self.unk_token_id)


class Outer:
    def __init__(self):
        self.tokenizer = Inner()


def test_a_language_that_the_vocabulary_lacks_is_unsupported():
    outer = Outer()
    assert nllb_tokenizer(outer, "jpn_Jpan") is outer
    assert outer.tokenizer.src_lang == "jpn_Jpan"
    with pytest.raises(UnsupportedError, match="does not support the language ace_Arab"):
        nllb_tokenizer(outer, "ace_Arab")


def test_the_tokens_of_a_text_begin_with_its_language(tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁a", -2.0), ("▁cat", -2.0)]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(words, unk_id=3))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    transformers.NllbTokenizerFast(tokenizer_object=made).save_pretrained(tmp_path)
    outer = open_clip.tokenizer.HFTokenizer(str(tmp_path), context_length=6)
    found = {}
    for code in ("eng_Latn", "jpn_Jpan", "fra_Latn", "jpn_Jpan"):
        tokens = nllb_tokenizer(outer, code)(["a cat", "cat a"])
        assert tokens[:, 0].tolist() == [outer.tokenizer.convert_tokens_to_ids(code)] * 2
        assert torch.equal(found.setdefault(code, tokens), tokens)
    assert torch.equal(found["eng_Latn"][:, 1:], found["jpn_Jpan"][:, 1:])

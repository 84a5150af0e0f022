"""Cutting texts into sentences: what holds for each way, and which way is taken."""

from __future__ import annotations

import logging
import sys

import nltk
import pytest
from nltk.tabdata import TabEncoder
from nltk.tokenize.punkt import PunktTrainer

from testbed.data.language import sentences
from testbed.data.language.sentences import METHODS, SentenceSplitter, get_splitter, plain
from testbed.errors import DataError, MissingExtraError, UnknownNameError

TAUGHT = """
The gen. spoke first. The gen. was loud. Nobody heard the gen. in the hall. Then the gen. left.
We saw gen. Miller there.
A gen. is an officer. The old gen. sat down. His gen. said no. Every gen. has a horse. One gen. came late. It rained.
"""
TEXT = "We met gen. Miller.  He waved.\n\nThen he left!"


@pytest.fixture(autouse=True)
def _nothing_said() -> None:
    sentences._say_once.cache_clear()


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """NLTK without data; the folder in which it looks for them."""
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    return tmp_path


def teach_punkt(folder, text, language="english"):
    """Data in the form of punkt_tab, learned from a text."""
    trainer = PunktTrainer()
    trainer.INCLUDE_ALL_COLLOCS = True
    trainer.train(text)
    learned, write = trainer.get_params(), TabEncoder()
    data = folder / "tokenizers" / "punkt_tab" / language
    data.mkdir(parents=True)
    (data / "collocations.tab").write_text(write.tups2tab(sorted(learned.collocations)))
    (data / "sent_starters.txt").write_text(write.set2txt(sorted(learned.sent_starters)))
    (data / "abbrev_types.txt").write_text(write.set2txt(sorted(learned.abbrev_types)))
    (data / "ortho_context.tab").write_text(write.ivdict2tab(learned.ortho_context))


@pytest.fixture(scope="module", params=["nltk", "sentencex", "pysbd"])
def splitter(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nltk")
    teach_punkt(folder, TAUGHT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nltk.data, "path", [str(folder)])
        yield get_splitter(request.param)


def test_sentences_are_stripped_and_in_order(splitter):
    assert splitter.split("  A man walks in.  He sits down!\n\nDoes he eat? ") == [
        "A man walks in.",
        "He sits down!",
        "Does he eat?",
    ]


def test_a_blank_text_has_no_sentence_and_any_other_has_at_least_one(splitter):
    for blank in ("", " ", "\n\t ", "\N{NO-BREAK SPACE}", "\u2028"):
        assert splitter.split(blank) == []
    for text in ("word", "...", "?", "no full stop", "1", "\N{SMILING FACE WITH SUNGLASSES}", "\x00"):
        assert "".join(splitter.split(text)) == text
    for text in ("A dog\ud83d. It barks.", "\udcff", "日本語。はい。", "a" * 20_000, ". " * 500 + "x"):
        found = splitter.split(text)
        assert found
        assert all(piece and piece == piece.strip() for piece in found)
        "".join(found).encode()  # UTF-8 can write it


def test_nothing_is_lost_or_added(splitter):
    text = (
        "Two men, Mr. Low and Dr. High, walk by (see fig. 2). One says: 'Go!' A dog barks... Then 3.5 seconds pass. End"
    )
    assert "".join("".join(splitter.split(text)).split()) == "".join(text.split())


def test_lone_surrogates_become_replacement_characters():
    assert plain(" a\ud800b \n") == "a\N{REPLACEMENT CHARACTER}b"


def test_pieces_that_are_blank_are_left_out():
    assert SentenceSplitter("none", lambda text: []).split(" a b ") == ["a b"]
    assert SentenceSplitter("blanks", lambda text: [" ", "", "\n"]).split("a") == ["a"]
    assert SentenceSplitter("words", str.split).split(" a  b\n") == ["a", "b"]


def test_auto_is_nltk_where_its_data_are(no_data, caplog):
    teach_punkt(no_data, TAUGHT)
    found = get_splitter()
    assert found.id.startswith(f"nltk {nltk.__version__} punkt_tab english ")
    assert found.id == get_splitter("nltk").id
    assert found.split(TEXT) == ["We met gen. Miller.", "He waved.", "Then he left!"]
    assert not caplog.records


def test_the_id_tells_data_apart(no_data, tmp_path, monkeypatch):
    teach_punkt(no_data, TAUGHT)
    first = get_splitter().id
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "other")])
    teach_punkt(tmp_path / "other", "A dog. It barks. " * 9)
    assert get_splitter().id != first
    assert get_splitter().split("We met gen. Miller.") == ["We met gen.", "Miller."]


@pytest.mark.parametrize("method", ["auto", "nltk"])
def test_without_data_sentencex_takes_the_place_which_is_logged_once(no_data, caplog, method):
    with caplog.at_level(logging.WARNING, logger="testbed"):
        found = [get_splitter(method) for _ in range(3)]
    assert {each.id for each in found} == {get_splitter("sentencex").id}
    assert [record.message for record in caplog.records] == [
        "NLTK has no punkt data for the language 'en'; using sentencex to split sentences"
    ]
    assert list(no_data.iterdir()) == []  # nothing is downloaded


def test_data_that_are_not_whole_are_none(no_data):
    teach_punkt(no_data, TAUGHT)
    (no_data / "tokenizers" / "punkt_tab" / "english" / "abbrev_types.txt").unlink()
    assert get_splitter().id.startswith("sentencex ")


def test_the_language_chooses_the_data(no_data):
    teach_punkt(no_data, TAUGHT, "german")
    assert get_splitter(language="de").id.split()[:4] == ["nltk", nltk.__version__, "punkt_tab", "german"]
    assert get_splitter(language="en").id.startswith("sentencex ")
    assert get_splitter(language="xx").id.split()[::2] == ["sentencex", "xx"]


def test_a_language_has_its_abbreviations():
    german = get_splitter("sentencex", "de")
    assert german.split("Das ist Prof. Weber. Er winkt.") == ["Das ist Prof. Weber.", "Er winkt."]


def test_pysbd_knows_some_languages_only():
    assert get_splitter("pysbd", "ja").id.endswith(" ja")
    with pytest.raises(DataError, match=r"pysbd does not support the language 'xx'; it supports: am, ar, .*"):
        get_splitter("pysbd", "xx")


def test_pysbd_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysbd", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[sentences\]'"):
        get_splitter("pysbd")


def test_an_unknown_method_names_the_known_ones():
    with pytest.raises(UnknownNameError, match=", ".join(METHODS)):
        get_splitter("regex")

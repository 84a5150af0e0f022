"""BLEU, ROUGE-L and CIDEr-D of captions, against pycocoevalcap with its Java tokenizer.

``assets/coco_caption_scores.json`` has what pycocoevalcap 1.2 found for captions made of random parts, and for odd ones
(empty, repeated words, one word, very long, other scripts), with one to five references each.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import peers
import pytest

from testbed.errors import DefinitionError, MissingExtraError
from testbed.metrics.captions.overlap import caption_overlap
from testbed.metrics.captions.ptb import PUNCTUATION, caption_words, scan

FROZEN = json.loads((Path(__file__).parent / "assets" / "coco_caption_scores.json").read_text(encoding="utf-8"))
CAPTIONS, REFERENCES = FROZEN["captions"], FROZEN["references"]


# pycocoevalcap ----------------------------------------------------------------------------------------------------


def test_words_are_those_of_the_java_tokenizer() -> None:
    assert [caption_words(text) for text in CAPTIONS] == FROZEN["words"]["captions"]
    assert [[caption_words(text) for text in each] for each in REFERENCES] == FROZEN["words"]["references"]


@pytest.mark.parametrize("tokenizer", ["ptb", "none"])
def test_metrics_and_scores_are_those_of_pycocoevalcap(tokenizer: str) -> None:
    found = caption_overlap(CAPTIONS, REFERENCES, tokenizer)
    assert found.metrics == pytest.approx(FROZEN[tokenizer]["metrics"], abs=1e-8)
    for name, values in FROZEN[tokenizer]["scores"].items():
        np.testing.assert_allclose(found.scores[name], values, rtol=0, atol=1e-8)


PEER = """
import contextlib, io, json
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
captions, references = json.loads(str(given["captions"])), json.loads(str(given["references"]))
said, truth = {place: [text] for place, text in enumerate(captions)}, dict(enumerate(references))
with contextlib.redirect_stdout(io.StringIO()):
    bleu, _ = Bleu(4).compute_score(truth, said)
    found["Bleu"] = numpy.array(bleu)
    found["ROUGE_L"], found["CIDEr"] = Rouge().compute_score(truth, said)[1], Cider().compute_score(truth, said)[1]
"""


@pytest.mark.slow
def test_any_captions_score_as_in_the_package(pycocoevalcap: Path) -> None:
    rng = random.Random(5)
    words = "a the dog cat runs sits on mat red blue".split()
    captions = [" ".join(rng.choices(words, k=rng.randint(0, 9))) for _ in range(300)]
    references = [[" ".join(rng.choices(words, k=rng.randint(1, 9))) for _ in range(1 + n % 5)] for n in range(300)]
    with peers.peer(pycocoevalcap) as run:
        theirs = run(PEER, captions=json.dumps(captions), references=json.dumps(references))
    found = caption_overlap(captions, references, "none")
    np.testing.assert_allclose(found.bleu or [], theirs["Bleu"], rtol=0, atol=1e-12)
    for name in ("ROUGE_L", "CIDEr"):
        np.testing.assert_allclose(found.scores[name], theirs[name], rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="the original tokenizer needs Java")
def test_odd_texts_are_cut_as_by_java(pycocoevalcap: Path, tmp_path: Path) -> None:
    rng = random.Random(6)
    parts = (
        "dog A man's it's dogs' don't U.S. Mr. St. Inc. 10 1/2 1,000 3.5 10:30 a.m. x-ray black-and-white \" ' ` “ ” ’"
        " – - -- ... . , ; ! ?! ( ) [ { & AT&T $5 £5 50% #1 @me and/or w/ a_b + <b> :) café ½ 5'10 '80s 1980s"
        " rock'n'roll O'Brien y'all can't cannot gonna 2nd 5-6 photo.jpg www.a.com"
        " etc. vs. e.g. D.C. Jan. 555-1234 end.The … °"
    ).split()
    texts = [
        "".join(rng.choice(parts) + rng.choice(["", " ", " ", " "]) for _ in range(8)).strip() for _ in range(2000)
    ]
    given = tmp_path / "texts.txt"
    given.write_text("\nx\n".join(texts), encoding="utf-8")  # x keeps a text from deciding what becomes of the last one
    jar = next(pycocoevalcap.glob("pycocoevalcap/tokenizer/*.jar"))
    command = ["java", "-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase"]
    done = subprocess.run([*command, str(given)], capture_output=True, check=True)
    theirs = done.stdout.decode("utf-8").split("\n")[::2]
    kept = [" ".join(token for token in line.split(" ") if token not in PUNCTUATION) for line in theirs]
    differ = [text for text, line in zip(texts, kept, strict=False) if caption_words(text) != line]
    assert len(differ) <= 2, differ


@pytest.mark.long
@pytest.mark.skipif(shutil.which("java") is None, reason="METEOR needs Java")
def test_meteor_is_that_of_its_program(pycocoevalcap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(pycocoevalcap))
    found = caption_overlap(CAPTIONS, REFERENCES, with_meteor=True)
    assert found.metrics["METEOR"] == pytest.approx(FROZEN["meteor"], abs=1e-6)
    assert not np.isnan(found.scores["METEOR"]).any()


def test_without_the_package_one_line_says_what_meteor_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.metrics.captions.meteor.PACKAGE", "no_such_package")
    with pytest.raises(MissingExtraError, match=r"METEOR needs the package .*pip install -e '\.\[captions\]'"):
        caption_overlap(["a"], [["a"]], with_meteor=True)


# Tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It's a dog's life; don't.", "it 's a dog 's life ; do n't ."),
        ('A man (with a hat) says "hi"', "a man -lrb- with a hat -rrb- says `` hi ''"),
        ("the U.S. flag, etc. at 5 p.m.", "the u.s. flag , etc. at 5 p.m."),
        ("I cannot sit -- or stand...", "i can not sit -- or stand ..."),
        ("$5.00 and 20% off 1,000", "$ 5.00 and 20 % off 1,000"),
        ("a black-and-white T-shirt", "a black-and-white t-shirt"),
        ("dog😀cat", "dog cat"),
        ("", ""),
    ],
)
def test_text_is_cut_as_in_the_penn_treebank(text: str, tokens: str) -> None:
    assert " ".join(scan(text)) == tokens


@pytest.mark.parametrize("text", ["a dog\nruns", "a dog\u2028runs", " a dog\r\nruns ", "A dog runs."])
def test_a_caption_is_one_line_without_punctuation(text: str) -> None:
    assert caption_words(text).split() == ["a", "dog", "runs"]


# Which samples are scored -----------------------------------------------------------------------------------------


def test_missing_captions_are_not_scored_and_blank_ones_score_nothing() -> None:
    found = caption_overlap(["a dog runs", None, "", "a cat"], [["a dog runs"], ["a"], ["a bird"], []])
    for values in found.scores.values():
        assert np.isnan(values).tolist() == [False, True, False, True]
        assert values[2] == pytest.approx(0, abs=1e-6)
    assert found.scores["ROUGE_L"][0] == pytest.approx(1)
    assert found.metrics["ROUGE_L"] == pytest.approx(1 / 2)
    whole, lacking = caption_overlap(CAPTIONS, REFERENCES), caption_overlap([None, *CAPTIONS[1:]], REFERENCES)
    for name, values in lacking.scores.items():  # what others score stays as it was
        np.testing.assert_array_equal(values[1:], whole.scores[name][1:])


def test_nothing_to_score_gives_no_metrics() -> None:
    assert set(caption_overlap([None, "a"], [["a"], []]).metrics.values()) == {None}


def test_a_single_sample_has_no_rare_phrases() -> None:
    found = caption_overlap(["a dog"], [["a dog"]]).metrics
    assert (found["Bleu_1"], found["ROUGE_L"], found["CIDEr"]) == (pytest.approx(1), 1, 0)


def test_bad_input_is_told() -> None:
    with pytest.raises(DefinitionError, match="tokenizer of captions is 'ptb' or 'none', not 'moses'"):
        caption_overlap(["a"], [["a"]], "moses")
    with pytest.raises(ValueError, match="1 captions have 2 lists of references"):
        caption_overlap(["a"], [["a"], ["b"]])

"""Yes or no, as the rules `default` read it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.answers import languages
from testbed.answers.columns import truth
from testbed.answers.decisions import denied, last_word, without_asides
from testbed.answers.languages import NO, YES
from testbed.answers.texts import ANSWER_IS, EDGES, final_text, marked, statements
from testbed.answers.verdict import Verdict

_MEANT = {**dict.fromkeys(YES, "Yes"), **dict.fromkeys(NO, "No"), "true": "Yes", "false": "No"}
_ANY = "|".join(re.escape(word) for word in sorted(_MEANT, key=len, reverse=True))
_PARTICLES = frozenset("da ya si tak ano ne sai oo hindi benar true false".split())  # that also begin other sentences
_OPENING = "|".join(re.escape(word) for word in sorted(_MEANT, key=len, reverse=True) if word not in _PARTICLES)
_SAID = re.compile(
    rf"(?:{ANSWER_IS}|(?:{languages.VERB_LAST})\s+)[\"'(\[]*({_ANY})(?:(?={languages.IS_AFTER})|(?![\w-]))",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\w'-])(yes|no)(?![\w'-])", re.IGNORECASE)
_EITHER = re.compile(rf"(?:{_ANY})[\"'*]*\s*(?:{languages.OR}|/|\|)\s*[\"'*]*(?:{_ANY})(?!\w)", re.IGNORECASE)
_DENIED = re.compile(
    r"(?:\b(?:can)?not|n't|\bnever|\bneither|\bnor|\b(?:any\w*|every\w*|all)\s+but|\brather than|\binstead of)"
    r"\s+(?:(?:say|be|a|to|necessarily)\s+)*[\"'*]*(?:yes|no)\b",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"\b(?:but|and|yet)\s+(?:also\s+)?(yes\b|no(?=\W*$|[,.;]))|[.…;:!?,–—-]\s*(yes|no)\W*$|[.!] +(yes|no)(?=[,.!])",
    re.IGNORECASE,
)
_TURNED = re.compile(  # "Yes … actually no, it is a wolf": a word of its own, or the beginning of a sentence
    r"[,.;:!?…–—-]\s*(?:actually|sorry|rather|or rather|i meant?|hmm+)[\s,.:;!—–-]+"
    rf"(?:(?P<word>{_ANY})(?=\s*(?:[,.;:!—–-]|\Z))|(?P<begins>yes|no)\s)",
    re.IGNORECASE,
)
_LAST_CLAUSE = re.compile(r"[.…;:!,–—]\s*([^.…;:!?,–—]+)\W*\Z")
_FIRST = re.compile(rf"({_OPENING})(?=[^\w'?-]|$)|({_ANY})(?=[\"'*]*(?:[.,!:;]|\s*$|\s*\n|\s+[–—-]\s))", re.IGNORECASE)


def yes_no(columns: Mapping[str, str], text: str) -> Verdict:
    """Returns the answer as yes or no."""
    said, method = read_yes_no(text)
    right = truth(columns).strip().lower()
    return Verdict(said, float(said is not None and said in (right.capitalize(), _MEANT.get(right))), method)


def read_yes_no(text: str) -> tuple[str | None, str]:
    """Returns Yes, No or None; and the rule that read it."""
    final, why = final_text(text)
    if final is None:
        return None, why
    sentence = denied(final, opposed=True)
    if sentence is not None and _read(sentence)[0] == "Yes":
        return None, "none"
    taken = last_word(final)
    if taken is not None:
        after, surely = taken
        reading = _read(after) if surely else _short(after)
        if reading[0] is not None or surely:
            return reading
        word, alone = turned(final) or (None, False)
        if word and (alone or word != _read(final)[0]):
            return (word, "word") if alone else (None, "none")
        last = _LAST_CLAUSE.search(final)
        if last and final[: last.start()].strip(EDGES).lower() not in _MEANT and (reading := _short(last[1]))[0]:
            return reading
    return _read(final)


def turned(text: str) -> tuple[str, bool] | None:
    """Returns Yes or No after the last turn of a text; and whether it is a word of its own: "Yes … actually no, …"."""
    turns = [*_TURNED.finditer(text)]
    return (_MEANT[(turns[-1]["word"] or turns[-1]["begins"]).lower()], bool(turns[-1]["word"])) if turns else None


def _short(text: str) -> tuple[str | None, str]:
    """Returns the marked word, or the only one."""
    for content in marked(text):
        if (word := content.strip(EDGES).lower()) in _MEANT:
            return _MEANT[word], "marked"
    whole = text.strip(EDGES).lower()
    return (_MEANT[whole], "word") if whole in _MEANT else (None, "none")


def _read(final: str) -> tuple[str | None, str]:
    short = _short(final)
    if short[0] is not None:
        return short
    final = without_asides(_EITHER.sub(" ", final))  # without the question, repeated
    stated = [match.group(1).lower() for match in statements(_SAID, final)]
    if stated:
        return _MEANT[stated[-1]], "answer is"
    lines = [line.strip(EDGES).lower() for line in final.split("\n")]
    if lines[-1] in _MEANT:
        several = len({_MEANT[line] for line in lines if line in _MEANT}) > 1
        return (None, "none") if several else (_MEANT[lines[-1]], "last line")
    first = _FIRST.match(final.lstrip(EDGES))
    if first and first.group().lower() in _MEANT:
        said = _MEANT[first.group().lower()]
        if any(_MEANT[(match[1] or match[2] or match[3]).lower()] != said for match in _BUT.finditer(final)):
            return None, "none"  # "yes, but no"
        return said, "first word"
    words = {word.lower() for word in _WORD.findall(_DENIED.sub(" ", final))}
    return (_MEANT[words.pop()], "word") if len(words) == 1 else (None, "none")

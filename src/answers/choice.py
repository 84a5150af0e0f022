"""Multiple choice, read by the rules `default`.

They try, in order: the whole answer; what is marked as the answer; the last "answer is", or "I would say"; a line that
is a letter; the only letter; the only option whose text is in a short answer; the only option that is not ruled out.
What an answer takes back ("B. Wait, that is wrong.") does not count, nor does a list of all options that it repeats. An
answer that names two options is unparsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import ascii_uppercase

from testbed.answers import languages
from testbed.answers.columns import listed, options, references, truth
from testbed.answers.decisions import approved, denied, last_word, without_list, without_suppositions, without_survey
from testbed.answers.named_options import DENIED_CLAUSE, LONGEST_ANSWER, NOT_AFTER, NOT_BEFORE, SEVERAL, Found, Options
from testbed.answers.numbers import is_another_value, sole_quantity
from testbed.answers.quantities.quantity import quantity, value_in
from testbed.answers.texts import ANSWER_IS, comparable, final_text, marked, open_answer, places, statements
from testbed.answers.verdict import UNREAD, Verdict
from testbed.answers.yes_no import turned, yes_no

_NOTHING = "nothing"  # read where it takes back what it named
_BARE = r"(?=[\"'`*_(\[]*(?:option\s+)?(?-i:[A-Z])(?![\w'])(?!\s+(?!because|since|as|is|\()[a-z]))"  # a letter follows
_STATED = re.compile(
    rf"{ANSWER_IS}"
    r"|\b(?:option|choice|selection)[*_`\"']*(?:\s+(?:is|would\s+be|should\s+be|must\s+be)\b|\s*[*_`]*[:=])\s*[*_`]*[:=]?\s*"
    r"|\b(?:choose|select|pick|go\s+with)\s+"
    r"|\b(?:say|guess|lean(?:ing)?\s+(?:to|towards?)|must\s+be|has\s+to\s+be|leaving|(?<=[sht]\s)leaves)\s+"
    r"(?:(?:that|it(?:'s|\s+is)|only|just|us\s+with|me\s+with|with)\s+)*"
    rf"|\b(?:so|thus|therefore|hence|consequently)\b[,:]?\s+(?:it(?:'s|\s+is|\s+would\s+be)\s+)?{_BARE}"
    rf"|\?\s+{_BARE}(?=\S{{1,6}}\s*$)"
    rf"|\bbut\s+it(?:'s|\s+is)\s+{_BARE}"
    r"|(?:是|为|為)\s*(?=[\"'(*]*(?-i:[A-Z])(?![A-Za-z\d]))"
    r"|(?:故选|选择|选项|选|選択肢|선택지)\s*(?:是|为)?[:]?\s*",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"(?:\b(?:not|never|to|wrong|incorrect|false|worst|unlikely|least\s+\w+)|n't)\s+$|[不别勿非没]\s*[能应该会可要太]{0,3}$",
    re.IGNORECASE,
)  # before "answer is"

# "B is the correct answer"
_REVERSED = re.compile(
    r"(?<![\w'])([A-Z])[\"'*)\]]*\s+(?:is|would be|must be|seems|appears to be)\s+(?:the\s+)?(?:most\s+|only\s+)?"
    r"(?:correct|right|best|answer|accurate|appropriate|true)\b"
)
# The same in other languages: "B ist die richtige Antwort", "Bが正解です", "B选项"
_REVERSED_ABROAD = re.compile(
    rf"(?<![\w'])([A-Z])[\"'*)\]]*\s+(?i:(?:{languages.ANY_IS})\s+(?:(?!(?:{languages.NOT_WORDS}|not|never)\s)[\w']+\s+){{0,3}}"
    rf"(?:{languages.FOREIGN_NOUNS}|{languages.CORRECT_WORDS})(?!\w))"
)
_REVERSED_WIDE = re.compile(
    rf"(?<![A-Za-z\d])([A-Z])[\"*)\]]*\s*(?:选项|項|项|番|번)?\s*(?:是|が|は|가|이|은|는)?\s*"
    rf"(?:{languages.IS_AFTER}|だ?と思|{languages.WIDE_CORRECT_WORDS}|(?<=[项項番번])\W*\Z)"
)
_JOINED_BEFORE = re.compile(rf"(?<!\w)[A-Z][\"'*)\]]*\s*(?i:{languages.OR}|and|和|と|와|과|[,/&])\s*[\"'*(\[]*$")
_LEADING = re.compile(r"[^\w\n]*([A-Z])(?:\s*[.):](?=[^\x21-\x7e])|(?=[*_\")]*,?\s+(?:because|since)\s))")
_LISTED = re.compile(r"(?:^|[\s(*])([A-Z])[.):](?=[^\x21-\x7e])")

# After an answer was taken back
_IT_IS = re.compile(
    rf"(?:so\s+|i think\s+)?(?:it(?:'s| is| must be| should be)|that(?:'s| is)|this is|{languages.IS_WORDS})"
    r"\s*(?:option\s+)?",
    re.IGNORECASE,
)
_ELEMENT = re.compile(r"<([^\W\d][\w:.-]{0,60})(?:\s[^<>]{0,200})?>(.+)</\1>\s*(\S.*)", re.DOTALL | re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?](?:\s|$)|\n|,\s")
_STANDS = re.compile(r"(?<!not )\b(?:(?:yes|indeed|confirmed|correct|right|stands)\b)(?![^.]*\bnot\b)", re.IGNORECASE)
_NEGATIVE = languages.NO | languages.INCORRECT | {"false"}
_LONGEST_STATEMENT = 20  # words in which an option's text is looked for

_TWO = dict.fromkeys("AB", "")  # options whose texts are not in columns
_DECIMALS = re.compile(r"\.(\d+)")

# Bounds for answers that repeat something without end.
_MOST = 20  # statements, and marked answers, from the last on
_SPAN = 1000  # characters after a statement


def multiple_choice(columns: Mapping[str, str], text: str) -> Verdict:
    """An answer to a question with options in the columns A to Z."""
    return _verdict(columns, text, options(columns))


def mmmu(columns: Mapping[str, str], text: str) -> Verdict:
    """MMMU: a question without option A is open, and its answers are compared as they are."""
    choices = options(columns)
    return _verdict(columns, text, choices) if "A" in choices else _open(references(columns), text)


def mme_realworld(columns: Mapping[str, str], text: str) -> Verdict:
    """MME-RealWorld: five options."""
    return _verdict(columns, text, options(columns) or dict.fromkeys("ABCDE", ""))


def among(choices: Callable[[Mapping[str, str]], Mapping[str, str]]) -> Callable[[Mapping[str, str], str], Verdict]:
    """Multiple choice with the options that a function finds in the columns."""
    return lambda columns, text: _verdict(columns, text, choices(columns))


def either(columns: Mapping[str, str], text: str) -> Verdict:
    """NaturalBench: yes or no, or two options whose texts are in the question, by the column ``type``."""
    return yes_no(columns, text) if columns.get("type") == "yes_no" else _verdict(columns, text, _TWO)


def video_mme(columns: Mapping[str, str], text: str) -> Verdict:
    """Video-MME: the options are in the columns A to D, in a list in `candidates`, or in the lines of the question."""
    lines = listed(columns.get("candidates", "")) or columns.get("question", "").split("\n")[1:]
    parts = [line.strip().partition(".") for line in lines]
    named = {name: rest.strip() for name, dot, rest in parts if dot and len(name) == 1 and name in ascii_uppercase}
    return _verdict(columns, text, options(columns) or named or dict.fromkeys("ABCD", ""))


def _verdict(columns: Mapping[str, str], text: str, choices: Mapping[str, str]) -> Verdict:
    letter, method = read_choice(text, choices)
    return Verdict(letter, float(letter is not None and letter == truth(columns).strip().upper()), method)


def read_choice(text: str, choices: Mapping[str, str]) -> Found:
    """The letter of the option that an answer names, or None; and the rule that read it.

    Args:
        text: The answer.
        choices: The letters of the options → their texts.
    """
    final, why = final_text(text)
    if final is None:
        return None, why
    named = Options(choices)
    if _differs_from_what_follows(named, final):
        return None, "none"
    option = named.whole(final) or _last_said(named, final) or _read(named, final)
    return option if option and option[0] not in (SEVERAL, _NOTHING) else (None, "none")


def _differs_from_what_follows(named: Options, final: str) -> bool:
    """Checks whether an answer opens with an element, perhaps of thoughts, that names another option than the rest."""
    element = _ELEMENT.match(final)
    if element is None or marked(final):
        return False
    inside, after = (_read(named, part) for part in element.group(2, 3))
    return inside is not None and after is not None and inside[0] != after[0]


def _read(named: Options, final: str) -> Found | None:
    """The option that a text names, wherever it does."""
    rest = without_survey(without_suppositions(without_list(final, named.texts)), named.texts)
    return (
        _first_of(named, marked(final), "marked")
        or named.whole(rest)
        or _stated(named, rest)
        or _approved(named, rest)
        or _line(named, rest)
        or named.only(rest)
    )


def _last_said(named: Options, final: str) -> Found | None:
    """Returns the rest of an answer after it took something back; `_NOTHING` if there is none; None if it did not."""
    sentence = denied(final)
    said = _read(named, sentence) if sentence else None
    agrees = said is not None and comparable(named.texts.get(said[0] or "", "")) in _NEGATIVE  # "No, it is not."
    if said is not None and not agrees and said[0] == (_read(named, final) or said)[0]:
        return _NOTHING, "none"
    taken = last_word(final)
    if taken is None:
        return None
    after, surely = taken
    if surely:
        option = _read(named, after) if after else None
        stands = option is None and (marked(final) or _STANDS.search(after))
        return None if stands else option or (_NOTHING, "none")
    word, alone = turned(final) or ("", False)
    if alone and (option := named.whole(word)):  # "Yes … actually no, …", where Yes and No are options
        return option
    first = _IT_IS.sub("", _SENTENCE.split(after, maxsplit=1)[0], count=1)
    return named.whole(first) or _first_of(named, marked(after), "marked") or _stated(named, after)


def _first_of(named: Options, spans: Sequence[str], method: str) -> Found | None:
    for span in (span[:_SPAN] for span in spans[:_MOST]):
        option = named.whole(span) or named.head(span) or named.by_text(span, _LONGEST_STATEMENT)
        if option:
            return option[0], method
    return None


def _stated(named: Options, text: str) -> Found | None:
    """The last "answer is" after which an option can be read."""
    ends = [
        (match.end(), "")
        for match in statements(_STATED, text)
        if not _REFUSED.search(text[max(0, match.start() - 24) : match.start()])
    ]
    ends += [
        (match.end(), match.group(1))
        for pattern in (_REVERSED, _REVERSED_ABROAD, _REVERSED_WIDE)
        for match in pattern.finditer(text)
        if match.group(1) in named.texts and not _is_withdrawn(text[max(0, match.start() - 40) : match.start()])
    ]
    for end, letter in sorted(ends, reverse=True)[:_MOST]:
        if letter:
            return letter, "answer is"
        option = _first_of(named, [text[end : end + _SPAN].strip().split("\n")[0]], "answer is")
        if option:
            return option
    return None


def _is_withdrawn(before: str) -> bool:
    """Checks whether the words before "B is correct" deny it, or join another option to it: "A or B is correct"."""
    return bool(_JOINED_BEFORE.search(before[-12:]) or NOT_BEFORE.search(before) or DENIED_CLAUSE.search(before))


def _approved(named: Options, text: str) -> Found | None:
    letter = approved(text, named.texts)
    return (letter, "list") if letter else None


def _line(named: Options, text: str) -> Found | None:
    """The only line that is a letter, or a letter with its option; or the letter with which the text begins."""
    if "\n" in text:
        letters = {option[0] for line in text.split("\n") if (option := named.whole(line)) and option[1] == "letter"}
        if letters:
            (letter, *others) = letters
            return (SEVERAL if others or named.ends_with_another(text, letter) else letter), "line"
    begins = _LEADING.match(text)
    if begins and NOT_AFTER.match(text[begins.end(1) :]):
        return None
    if begins and begins.group(1) in named.texts and set(_LISTED.findall(text)) <= {begins.group(1)}:
        return (SEVERAL if named.ends_with_another(text, begins.group(1)) else begins.group(1)), "letter"
    return None


def _open(answers: Sequence[str], text: str) -> Verdict:
    """An open question: equal numbers (to two decimals, or those of the right answer), equal or contained words."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    score = float(any(_same(expected, answer) for expected in answers))
    if not score and all(quantity(expected) is not None for expected in answers) and _is_unclear(answer):
        return UNREAD
    return Verdict(answer, score, method)


def _is_unclear(answer: str) -> bool:
    """Checks whether an answer may be a number that was not understood."""
    return sole_quantity(answer) is None and not is_another_value(answer)


def _same(right: str, answer: str) -> bool:
    number = quantity(right)
    if number is not None:
        said = sole_quantity(answer)
        value = None if said is None else value_in(said, number)
        decimals = max(2, len(_DECIMALS.findall(right)[-1]) if _DECIMALS.search(right) else 0)
        return value is not None and round(value, decimals) == round(number.value, decimals)
    plain, wanted = comparable(answer), comparable(right)
    if plain == wanted:
        return True
    spans = places(wanted, plain) if plain.count(" ") < LONGEST_ANSWER else []
    return any(not NOT_BEFORE.search(plain[:start]) for start, _ in spans)

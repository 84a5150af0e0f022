"""Multiple choice, as the rules `default` read it.

In order: the whole answer; what is marked as the answer; the last "answer is", or "I would say"; a line that is a
letter; the only letter; the only option whose text is in a short answer; the only option that is not ruled out. A list
of all options that an answer repeats is no part of it. Whatever names two options is unparsed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from testbed.answers import languages
from testbed.answers.columns import listed, options, references, truth
from testbed.answers.decisions import decided, last_word, without_list, without_talk_of_options
from testbed.answers.numbers import same_quantity, sole_quantity, with_plain_numbers
from testbed.answers.quantities.notation import plain_notation
from testbed.answers.quantities.phrases import phrases
from testbed.answers.quantities.quantity import Quantity, quantity, value_in
from testbed.answers.texts import ANSWER_IS, EDGES, comparable, final_text, marked, open_answer, places, statements
from testbed.answers.verdict import Verdict

Found = tuple[str | None, str]

_SEVERAL = "several"  # read where an answer names two options
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
    r"|(?:故选|应选|选择|选项|选)\s*(?:是|为)?[:]?\s*",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"(?:not|n't|\bnever|\bto)\s+$", re.IGNORECASE)
# "B is the correct answer"
_REVERSED = re.compile(
    r"(?<![\w'])([A-Z])[\"'*)\]]*\s+(?:is|would be|must be|seems|appears to be)\s+(?:the\s+)?(?:most\s+|only\s+)?"
    r"(?:correct|right|best|answer|accurate|appropriate|true)\b"
)
_LEAD = re.compile(r"(?:(?:the\s+)?(?:option|choice|letter|answer|选项)\b\s*[:]?)?[\s\"'`*_({\[<$#\\]*", re.IGNORECASE)
_HEAD = re.compile(r"([A-Za-z])(?![A-Za-z0-9_']|\s*[\^*+=<>]\s*[\w\\{(]|/\w)|([A-Z])(?='[dt][iıuü]r\b)")
_AND = re.compile(
    r"[\s\"'`*_)}\]>$]*(?:\s|,|/|&|\bor\b|\band\b|或|和)\s*(?:option\s+)?[\"'`*_({\[<$]*([A-Z])(?![A-Za-z0-9_'])"
)
_LOWER_END = re.compile(r"[\"'`*_\]}>$]*(?:[).,;:!]|\s*$|\s*\n)")
_SUFFIX = r"(?:[dt][iıuü]r|dir|dır)\b"  # Turkish "is": B'dir
_LETTER = re.compile(
    r"(?<![\w.&+^=*<>\\-])(?<![\w\\]['/{])(?<![\^_*/=<>+]\s)(?<!(?<!\w)\w\()"
    rf"([A-Z])(?![\w&+#^_]|-\w|\.\w|'(?!{_SUFFIX})\w|/\w|\s*[\^*<>+=/]\s*[\w\\{{(])"
)
_ITEM = re.compile(r"([A-Za-z])[\s.:)\]*\-–—,]+(.*)", re.DOTALL)
_LEADING = re.compile(r"[^\w\n]*([A-Z])\s*[.):](?=[^\x21-\x7e])")
_LISTED = re.compile(r"(?:^|[\s(*])([A-Z])[.):](?=[^\x21-\x7e])")

_KEYWORD = re.compile(r"(?:\b(?:option|choice|answer|is|be)|[\"'`]s|选项|答案|是)[\s:\"'*(\[]*$", re.IGNORECASE)
_NOT_BEFORE = re.compile(
    r"(?:\bnot|n't|\bno|\bnever|\bneither|\bnor|\bexcept|\beliminat\w*|\brule out|\bexclud\w*|\brather than"
    r"|\binstead of"
    r"|\bunlike|\b(?:any|every|all)\w*\s+(?:but|besides|save)|\b(?:other|apart|aside)\s+(?:than|from)|\bbesides|\bbarring|\bwithout"
    r"|\bfar from|\bopposite of|\bhardly|\bdoubt(?:\s+(?:that|it\s+is|it's))*|\bunlikely(?:\s+to\s+be)?"
    r"|不是|不选|排除|不会是|并非)"
    r"(?:\s+(?:a|an|the|any|option|choice|choose|select|pick|be))*[\s\"'*(\[]*$"
    rf"|(?:{languages.NOT_WORDS}|\bno\s+(?:es|son|ser[ií]a|era))(?:\s+\w+){{0,2}}[\s\"'*(\[]*$",
    re.IGNORECASE,
)
_NOT_AFTER = re.compile(
    r"[\"'*)\]]*\s*(?:(?:is|was|are)(?:\s*not|n't|\s+(?:wrong|incorrect|false|out))\b"
    r"|不|は違|ではな|は間違|은 아니|는 아니|이 아니|가 아니)"
    rf"|[\"'*)\]]*\s+(?:[\w']+\s+){{0,2}}(?:{languages.NOT_WORDS}|{languages.WRONG_WORDS})",
    re.IGNORECASE,
)
_NEXT_WORD = re.compile(r"['’ ]\s*([a-z]+)")
# After "A" and "I" these words show that a letter is meant, and no article or pronoun.
_AFTER_LETTER = {
    "A": frozenset("is was because since as or and would seems looks matches appears should must for based".split()),
    "I": frozenset("is because since or".split()),
}

# After an answer was taken back
_IT_IS = re.compile(
    r"(?:so\s+|i think\s+)?(?:it(?:'s| is| must be| should be)|that(?:'s| is)|this is)\s+(?:option\s+)?", re.IGNORECASE
)
_SENTENCE = re.compile(r"[.!?](?:\s|$)|\n|,\s")
_STANDS = re.compile(r"(?<!not )\b(?:(?:yes|indeed|confirmed|correct|right|stands)\b)(?![^.]*\bnot\b)", re.IGNORECASE)

_LONGEST_STATEMENT = 20  # words in which an option's text is looked for
_LONGEST_ANSWER = 40
# Bounds for answers that repeat something without end.
_MOST = 20  # statements, and marked answers, from the last on
_OPERATOR = re.compile(r"[\^+*/=\\]")
_IS_FORMULA = re.compile(r"(?=.*[\d^+*/=\\])(?!.*(?<![\\A-Za-z])[A-Za-z]{2,})")
_TERM_BEFORE, _TERM_AFTER = re.compile(r"[-+*/^(]\s*$"), re.compile(r"\s*[-+*/^=(]")
_DECIMALS = re.compile(r"\.(\d+)")
_SPAN = 1000  # characters after a statement
_LONGEST_TEXT = 4000  # characters in which a letter is looked for that no statement names


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
    found = named.whole(final) or _last_said(named, final) or _read(named, final)
    return found if found and found[0] not in (_SEVERAL, _NOTHING) else (None, "none")


def _read(named: Options, final: str) -> Found | None:
    """The option that a text names, wherever it does."""
    rest = without_list(final, named.texts)
    return (
        _first_of(named, marked(final), "marked")
        or named.whole(rest)
        or _stated(named, rest)
        or _line(named, rest)
        or named.only(rest)
    )


def _last_said(named: Options, final: str) -> Found | None:
    """What an answer says after it took something back; `_NOTHING` if it only took back; None if it did not."""
    taken = last_word(final)
    if taken is None:
        return None
    after, surely = taken
    if surely:
        found = _read(named, after) if after else None
        stands = found is None and (marked(final) or _STANDS.search(after))
        return None if stands else found or (_NOTHING, "none")
    first = _IT_IS.sub("", _SENTENCE.split(after, maxsplit=1)[0], count=1)
    return named.whole(first) or _first_of(named, marked(after), "marked") or _stated(named, after)


def _first_of(named: Options, spans: Sequence[str], method: str) -> Found | None:
    for span in (each[:_SPAN] for each in spans[:_MOST]):
        found = named.whole(span) or named.head(span) or named.by_text(span, _LONGEST_STATEMENT)
        if found:
            return found[0], method
    return None


def _stated(named: Options, text: str) -> Found | None:
    """The last "answer is" after which an option can be read."""
    ends = [
        (match.end(), "")
        for match in statements(_STATED, text)
        if not _REFUSED.search(text[max(0, match.start() - 12) : match.start()])
    ]
    ends += [(match.end(), match.group(1)) for match in _REVERSED.finditer(text) if match.group(1) in named.texts]
    for end, letter in sorted(ends, reverse=True)[:_MOST]:
        if letter:
            return letter, "answer is"
        found = _first_of(named, [text[end : end + _SPAN].strip().split("\n")[0]], "answer is")
        if found:
            return found
    return None


def _line(named: Options, text: str) -> Found | None:
    """The only line that is a letter, or a letter with its option; or the letter with which the text begins."""
    if "\n" in text:
        found = {each[0] for line in text.split("\n") if (each := named.whole(line)) and each[1] == "letter"}
        if found:
            return (found.pop() if len(found) == 1 else _SEVERAL), "line"
    begins = _LEADING.match(text)
    if begins and begins.group(1) in named.texts and set(_LISTED.findall(text)) <= {begins.group(1)}:
        return begins.group(1), "letter"
    return None


class Options:
    """The options of a question, and how texts name them. Each method gives None where none is named."""

    def __init__(self, choices: Mapping[str, str]) -> None:
        self.texts = choices
        self._comparable = {letter: _flat(text) for letter, text in choices.items()}
        self._quantities = {letter: found for letter, text in choices.items() if (found := quantity(text)) is not None}

    def whole(self, text: str) -> Found | None:
        """If the text is nothing but a letter, a letter with its option, or an option."""
        core = text.strip(EDGES)
        if len(core) == 1 and core in self.texts:
            return core, "letter"
        same = [letter for letter, option in self.texts.items() if option and option in (text, core)]
        plain = _flat(text)
        same = same or [
            letter for letter, option in self._comparable.items() if option and _tight(option) == _tight(plain)
        ]
        same = same or self._equal(text)
        if len(same) == 1:
            return same[0], "option text"
        lead = _LEAD.match(core)
        name = core[lead.end() if lead else 0 :].strip(EDGES).upper()
        if len(name) == 1 and name in self.texts:
            return name, "letter"
        item = _ITEM.match(text.strip().lstrip(EDGES)) if len(core) < 1000 else None
        if item and item.group(1).upper() in self.texts:
            letter, option = item.group(1).upper(), item.group(2)
            if _flat(option) == self._comparable[letter] or self._equal(option) == [letter]:
                return letter, "letter"
        return None

    def _equal(self, text: str) -> list[str]:
        """The options that are the same number as a text, such as ``ten`` and 10, ``\\frac14`` and 0.25."""
        found = quantity(text) if self._quantities else None
        return [] if found is None else self._same(found)

    def _same(self, found: Quantity) -> list[str]:
        """The options with a quantity: in the same unit, else in one that measures the same, else without one."""
        for equal in (_same_unit, _same_measure, _same_value):
            letters = [letter for letter, option in self._quantities.items() if equal(found, option)]
            if letters:
                return letters
        return []

    def _numbers(self, flat: str) -> set[str]:
        """The options that are numbers which a text says."""
        if not self._quantities:
            return set()
        said = (each.quantity for each in phrases(flat) if each.quantity is not None and not each.negated)
        return {letter for each in said for letter in self._same(each)}

    def head(self, text: str) -> Found | None:
        """If the text begins with a letter: ``B``, ``(B) because``, ``option B``, ``b)``; but not ``a dog``."""
        lead = _LEAD.match(text)
        found = _HEAD.match(text, lead.end() if lead else 0)
        if found is None:
            return None
        letter, rest = found.group(1) or found.group(2), text[found.end() :]
        if letter.islower() and not _LOWER_END.match(rest):
            return None
        letter = letter.upper()
        if letter not in self.texts or _is_word(letter, rest) or _NOT_AFTER.match(rest):
            return None
        other = _AND.match(rest)
        several = other and other.group(1) in self.texts and not _is_word(other.group(1), rest[other.end() :])
        return (_SEVERAL if several and other and other.group(1) != letter else letter), "letter"

    def by_text(self, text: str, longest: int) -> Found | None:
        """If the text of exactly one option is in a text of so many words at most."""
        flat = without_talk_of_options(" ".join(text.split()), self.texts)
        found = self._named(flat) if flat.count(" ") < longest else set()
        return (found.pop(), "option text") if len(found) == 1 else None

    def only(self, text: str) -> Found | None:
        """If one letter stands where an answer may stand, or one option is in a short text, and they do not differ."""
        if len(text) > 2 * _LONGEST_TEXT:
            return None
        flat = without_talk_of_options(" ".join(text.split()), self.texts)
        if len(flat) > _LONGEST_TEXT:
            return None
        mentions = self._mentions(flat)
        rest, out = decided(flat)
        for _, start, end in mentions:
            rest = f"{rest[:start]}{'x' * (end - start)}{rest[end:]}"
        letters = {match.group(1): match for match in _LETTER.finditer(rest) if self._counts(match, rest)}
        if len(letters) > 1:
            return None
        named = self._named(flat) if flat.count(" ") < _LONGEST_ANSWER else set()
        if not letters and not named and len(self.texts) > 2 and len(left := set(self.texts) - out) == 1:
            return left.pop(), "elimination"
        if not letters:
            return (named.pop(), "option text") if len(named) == 1 else None
        letter, match = letters.popitem()
        if not named:
            return (letter, "letter") if _prominent(match, rest) else None
        return (letter, "letter") if named == {letter} else None

    def _counts(self, match: re.Match[str], text: str) -> bool:
        letter, after = match.group(1), text[match.end() :]
        if letter not in self.texts or _is_word(letter, after):
            return False
        return not _NOT_AFTER.match(after) and not _NOT_BEFORE.search(text[max(0, match.start() - 40) : match.start()])

    def _named(self, flat: str) -> set[str]:
        """The options in a text, by their words or as numbers."""
        mentions = self._mentions(flat)
        rest = flat
        for _, start, end in mentions:
            rest = f"{rest[:start]}{' ' * (end - start)}{rest[end:]}"
        return {letter for letter, _, _ in mentions} | self._numbers(rest)

    def _mentions(self, flat: str) -> list[tuple[str, int, int]]:
        """The letter, start and end of each option in a text; not of those within others, nor after a negation."""
        lower = flat.lower()
        if len(lower) != len(flat):
            return []
        found = [
            (letter, start, end)
            for letter, option in self._comparable.items()
            if letter not in self._quantities
            if len(option) > 1 or (option and not (option.isascii() and option.isalpha()))
            for start, end in places(option, lower)
            if not (_IS_FORMULA.match(option) and _in_formula(start, end, lower))
        ]
        for letter, start, end in found:  # "Yes, there is no dog"
            if self._comparable[letter] in ("yes", "no") and not start and lower[end : end + 1] in tuple(",.;:!"):
                return [(letter, start, end)]
        longest: list[tuple[str, int, int]] = []
        for each in sorted(found, key=lambda place: (place[1], -place[2])):
            if not longest or each[2] > longest[-1][2] or each[1:] == longest[-1][1:]:
                longest.append(each)
        return [each for each in longest if not _NOT_BEFORE.search(lower[max(0, each[1] - 40) : each[1]])]


def _flat(text: str) -> str:
    """A text as it is compared with options."""
    return comparable(with_plain_numbers(plain_notation(text)))


def _same_unit(one: Quantity, other: Quantity) -> bool:
    return one.unit == other.unit and same_quantity(one, other)


def _same_measure(one: Quantity, other: Quantity) -> bool:
    return one.unit is not None and other.unit is not None and same_quantity(one, other)


def _same_value(one: Quantity, other: Quantity) -> bool:
    """Whether two are equal, one of them without a unit; or one is the other in percent: 25% and 0.25."""
    if same_quantity(one, other):
        return True
    if one.percent == other.percent or (one.unit and other.unit):
        return False
    shares = [each.value / 100 if each.percent else each.value for each in (one, other)]
    return math.isclose(*shares, rel_tol=1e-9)


def _tight(text: str) -> str:
    """A formula without blanks; another text as it is."""
    return re.sub(r"\s+", "", text) if _OPERATOR.search(text) else text


def _in_formula(start: int, end: int, text: str) -> bool:
    """Whether a part of a text belongs to a longer formula: ``x^2`` in ``x^2 + 1``."""
    return bool(_TERM_BEFORE.search(text[max(0, start - 3) : start]) or _TERM_AFTER.match(text[end : end + 3]))


def _is_word(letter: str, after: str) -> bool:
    """Whether a letter is the article A or the pronoun I, by what follows it."""
    usual = _AFTER_LETTER.get(letter)
    following = _NEXT_WORD.match(after) if usual else None
    return following is not None and usual is not None and following.group(1) not in usual


def _prominent(match: re.Match[str], text: str) -> bool:
    """Whether a letter follows "option" or "is", is in brackets, stars or quotes, or is among the last four words."""
    before, after = text[: match.start()], text[match.end() :]
    if _KEYWORD.search(before) or before[-1:] + after[:1] in ("()", "[]", "**", "``", "''", '""'):
        return True
    return len(after.lstrip(EDGES).split(None, 4)) <= 3


def _open(answers: Sequence[str], text: str) -> Verdict:
    """An open question: equal numbers (to two decimals, or those of the right answer), equal or contained words."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    return Verdict(answer, float(any(_same(each, answer) for each in answers)), method)


def _same(right: str, answer: str) -> bool:
    number = quantity(right)
    if number is not None:
        found = sole_quantity(answer)
        value = None if found is None else value_in(found, number)
        decimals = max(2, len(_DECIMALS.findall(right)[-1]) if _DECIMALS.search(right) else 0)
        return value is not None and round(value, decimals) == round(number.value, decimals)
    plain, wanted = comparable(answer), comparable(right)
    if plain == wanted:
        return True
    found = places(wanted, plain) if plain.count(" ") < _LONGEST_ANSWER else []
    return any(not _NOT_BEFORE.search(plain[:start]) for start, _ in found)

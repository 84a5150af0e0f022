"""The options of a question, and how texts name them: by their letters, by their words, or as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from testbed.answers import languages
from testbed.answers.decisions import decided, is_aside, without_talk_of_options
from testbed.answers.numbers import same_quantity, sole_quantity, with_plain_numbers
from testbed.answers.quantities.notation import plain_notation
from testbed.answers.quantities.phrases import phrases
from testbed.answers.quantities.quantity import Quantity, quantity
from testbed.answers.texts import EDGES, bare, comparable, places

Found = tuple[str | None, str]
SEVERAL = "several"  # read where an answer names two options
_LEAD = re.compile(r"(?:(?:the\s+)?(?:option|choice|letter|answer|选项)\b\s*[:]?)?[\s\"'`*_({\[<$#\\]*", re.IGNORECASE)
_HEAD = re.compile(r"([A-Za-z])(?![A-Za-z0-9_']|\s*[\^*+=<>]\s*[\w\\{(]|/\w)|([A-Z])(?='[dt][iıuü]r\b)")
_AND = re.compile(
    r"[\s\"'`*_)}\]>$]*(?:\s|,|/|&|\bor\b|\band\b|或|和)\s*(?:option\s+)?[\"'`*_({\[<$]*([A-Z])(?![A-Za-z0-9_'])"
)
_AND_ITEM = re.compile(  # "A. cat and C. bird"
    r"[\s\"'`*_)}\]>$]*(?:/|&|\bor\b|\band\b|或|和)\s*(?:option\s+)?[\"'`*_({\[<$]*([A-Z])(?![A-Za-z0-9_'])"
)
_LOWER_END = re.compile(r"[\"'`*_\]}>$]*(?:[).,;:!]|\s*$|\s*\n)")
_SUFFIX = r"(?:[dt][iıuü]r|dir|dır)\b"  # Turkish "is": B'dir
_LETTER = re.compile(
    r"(?<![\w.&+^=*<>\\-])(?<![\w\\]['/{])(?<![\^_*/=<+]\s)(?<![A-Z]\s>\s)(?<!(?<!\w)\w\()"
    rf"([A-Z])(?![\w&+#^_]|-\w|\.\w|'(?!{_SUFFIX})\w|/\w|\s*[\^*<>+=/]\s*[\w\\{{(])"
)
_ITEM = re.compile(r"([A-Za-z])[\s.:)\]*\-–—,]+(.*)", re.DOTALL)
_ITEM_MARK = re.compile(r"[\s.:)\]*\-–—,(\"'`]+")
_KEYWORD = re.compile(r"(?:\b(?:option|choice|answer|is|be)|[\"'`]s|选项|答案|是)[\s:\"'*(\[]*$", re.IGNORECASE)
NOT_BEFORE = re.compile(
    r"(?:\bnot|n't|\bno|\bnever|\bneither|\bnor|\bexcept|\beliminat\w*|\brule out|\bexclud\w*|\brather than"
    r"|\binstead of|\bunlike"
    r"|\b(?:any|every|all)\w*(?:\s+(?:options?|choices?|answers?|ones?|of\s+them))?\s+(?:but|besides|save)"
    r"|\b(?:wrong|incorrect|false|worst|unlikely|least\s+\w+)\s+(?:(?:answer|option|choice)s?(?:\s+(?:is|are|would\s+be))?|\w+\s+(?:is|are|would\s+be)):?"
    r"|\b(?:wrong|incorrect)\s*:|[~¬]"
    r"|(?<!none\s)(?<!no\s)\b(?:other|apart|aside)\s+(?:than|from)|\bbesides|\bbarring|\bwithout|\bavoid\w*|\breject\w*|\bignor\w*|\bskip\w*|\bstrik\w*|\bcross\w*\s+out"
    r"|\bfar from|\bopposite of|\bhardly|(?<!no\s)(?<!a\s)(?<!without\s)\bdoubt(?:\s+(?:that|it\s+is|it's))*"
    r"|\bunlikely(?:\s+to\s+be)?|\b(?:least|less)\s+\w+\s*:?|不是|不选|排除|不会是|并非"
    r"|(?:没|沒|无|無)有?(?:任何|[一半]?[^\W\d_A-Za-z])?)"
    r"(?:\s+(?:a|an|the|any|option|choice|choose|select|pick|be))*[\s\"'*(\[]*$"
    rf"|(?:{languages.NOT_WORDS}|\bno\s+(?:es|son|ser[ií]a|era))(?:\s+\w+){{0,2}}[\s\"'*(\[]*$",
    re.IGNORECASE,
)
NOT_AFTER = re.compile(
    r"[\"'*)\]]*\s*(?:(?:is|was|are|seems?|looks?|(?:would|must|will)\s+be)(?:\s*not|n't|\s+(?:very\s+|quite\s+)?"
    r"(?:wrong|incorrect|false|out|unlikely|doubtful|impossible|implausible|eliminated|excluded|missing|absent))\b"
    r"|\s+no\s+(?:es|son|ser[ií]a|era)\b|\s+(?:\w+n't|cannot|(?:can|could|do|does|did|would|will)\s+not|fails?|makes?\s+no)\b"
    r"|\?\s+I\s+(?:doubt|(?:do\s*n[o']t|don't)\s+think)\b"
    r"|[?:(–—-]\s*(?:no(?:pe)?(?=\s*(?:$|[.!)\n]))|(?:wrong|incorrect|false)\b)|[❌✗✘✖]"
    r"|\s*(?:不|错|錯|以外)|\s*(?:は|じゃ|では)(?:違|な|あり|間違)|(?:은|는|이|가)?\s*(?:아니|아닙|아닌|제외))"
    rf"|[\"'*)\]]*\s+(?:[\w']+\s+){{0,2}}(?:{languages.NOT_WORDS}|{languages.WRONG_WORDS})",
    re.IGNORECASE,
)
_WIDE = "[\u2e80-\U0003ffff]"  # scripts without blanks
_BESIDE_WIDE = re.compile(rf"(?<={_WIDE})(?=[A-Z])|(?<=[A-Z])(?={_WIDE})")
# A denial earlier in the clause: "I don't think it's B"
DENIED_CLAUSE = re.compile(
    r"(?:\b(?:not|never|cannot)|n't)\b(?!\s+(?:only|just))"
    r"(?!.*\b(?:but|so|thus|hence|therefore|then|and|because|since|as|is not|isn't)\b)"
    r"[^.,;:!?\n–—]*$",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\s+[^\W\d_]{1,8}\s+[A-Z](?![\w'])")  # "A ni B"
_POINT = re.compile(r"[\"'*)\]]*\s?[,;:–—-]\s")
_MARKS = re.compile(r"[^\w\s]")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_LETTER_LAST = re.compile(r"[\s(\[,:–—-]+([A-Z])\Z")
_NEXT_WORD = re.compile(r"['’ ]\s*([a-z]+)")
# After "A" and "I" these words show that a letter is meant, and no article or pronoun.
_AFTER_LETTER = {
    "A": frozenset("is was because since as or and would seems looks matches appears should must for based".split()),
    "I": frozenset("is because since or".split()),
}
LONGEST_ANSWER = 40
_OPERATOR = re.compile(r"[\^+*/=\\]")
_IS_FORMULA = re.compile(r"(?=.*[\d^+*/=\\])(?!.*(?<![\\A-Za-z])[A-Za-z]{2,})")
_TERM_BEFORE, _TERM_AFTER = re.compile(r"[-+*/^(]\s*$"), re.compile(r"\s*[-+*/^=(]")
_LONGEST_TEXT = 4000  # characters in which a letter is looked for that no statement names


class Options:
    """The options of a question, and how texts name them. Each method gives None where none is named."""

    def __init__(self, choices: Mapping[str, str]) -> None:
        self.texts = choices
        self._comparable = {letter: _flat(text) for letter, text in choices.items()}
        self._packed = {letter: _packed(text) for letter, text in choices.items()}
        self._quantities = {
            letter: number for letter, text in choices.items() if (number := quantity(text)) is not None
        }

    def whole(self, text: str) -> Found | None:
        """Returns the option if the text is nothing but a letter, a letter with its option, or an option."""
        core = text.strip(EDGES)
        if len(core) == 1 and core in self.texts:
            return core, "letter"
        same = [letter for letter, option in self.texts.items() if option and option in (text, core)]
        same = same or [letter for letter, option in self._packed.items() if option and option == _packed(text)]
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
            said = self._equal(option) or [letter for letter, text in self._comparable.items() if text == _flat(option)]
            if letter in said:
                return letter, "letter"
            if said and option.strip(EDGES):  # the letter of one option, and the text of another
                return SEVERAL, "letter"
        last = _LETTER_LAST.search(core) if len(core) < 1000 else None
        if last and self._comparable.get(last[1]) == _flat(core[: last.start()]):  # "dog (B)"
            return last[1], "letter"
        return None

    def _equal(self, text: str) -> list[str]:
        """The options that are the same number as a text, such as ``ten`` and 10, ``\\frac14`` and 0.25."""
        if not self._quantities:
            return []
        number = quantity(text) or (sole_quantity(text) if "=" in text else None)
        return [] if number is None else self._same(number)

    def _same(self, number: Quantity) -> list[str]:
        """The options with a quantity: in the same unit, else in one that measures the same, else without one."""
        for equal in (_same_unit, _same_measure, _same_value):
            letters = [letter for letter, option in self._quantities.items() if equal(number, option)]
            if letters:
                return letters
        return []

    def _numbers(self, flat: str) -> set[str]:
        """Returns the options that are numbers in a text; of a calculation its result."""
        if not self._quantities:
            return set()
        result = sole_quantity(flat)
        if result is not None:
            return set(self._same(result))
        numbers = (phrase.quantity for phrase in phrases(flat) if phrase.quantity is not None and not phrase.negated)
        return {letter for number in numbers for letter in self._same(number)}

    def head(self, text: str) -> Found | None:
        """Returns the option at the beginning: ``B``, ``(B) because``, ``option B``, ``b)``; but not ``a dog``."""
        lead = _LEAD.match(text)
        match = _HEAD.match(text, lead.end() if lead else 0)
        if match is None:
            return None
        letter, rest = match.group(1) or match.group(2), text[match.end() :]
        if letter.islower() and not _LOWER_END.match(rest):
            return None
        letter = letter.upper()
        if letter not in self.texts or _is_word(letter, rest) or NOT_AFTER.match(rest):
            return None
        several = self._joined(letter, _AND.match(rest), rest) or self._joined(letter, *self._after_item(letter, rest))
        return (SEVERAL if several else letter), "letter"

    def _joined(self, letter: str, other: re.Match[str] | None, text: str) -> bool:
        """Checks whether a match is the letter of another option."""
        after = text[other.end() :] if other else ""
        return other is not None and other[1] in self.texts and not _is_word(other[1], after) and other[1] != letter

    def _after_item(self, letter: str, rest: str) -> tuple[re.Match[str] | None, str]:
        """Matches a further option after the text of the first."""
        item, text = _ITEM_MARK.match(rest), self.texts[letter]
        place = item.end() if item and text else 0
        if not text or rest[place : place + len(text)].lower() != text.lower():
            return None, rest
        match = _AND_ITEM.match(rest, place + len(text))
        return (match if match and not NOT_AFTER.match(rest[match.end() :]) else None), rest

    def by_text(self, text: str, longest: int) -> Found | None:
        """Returns the option if the text of exactly one is in a text of at most `longest` words."""
        flat = without_talk_of_options(" ".join(text.split()), self.texts)
        letters = self._named(flat) if flat.count(" ") < longest else set()
        return (letters.pop(), "option text") if len(letters) == 1 else None

    def only(self, text: str) -> Found | None:
        """Returns the only letter where an answer may stand, or the only option in a short text, if they agree."""
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
        if len(letters) > 1 or self._others(rest, letters):
            return None
        named = self._named(flat) if flat.count(" ") < LONGEST_ANSWER else set()
        if not letters and not named and len(self.texts) > 2 and len(left := set(self.texts) - out) == 1:
            return left.pop(), "elimination"
        if not letters:
            return (named.pop(), "option text") if len(named) == 1 else None
        letter, match = letters.popitem()
        if not named:
            return (letter, "letter") if _prominent(match, rest) else None
        return (letter, "letter") if named == {letter} else None

    def ends_with_another(self, text: str, letter: str | None) -> bool:
        """Checks whether a text ends with the letter of one other option than it began with: "A. Nein, B"."""
        if len(text) > _LONGEST_TEXT:
            return False
        rest = _BESIDE_WIDE.sub(" ", decided(text)[0])
        letters = [match for match in _LETTER.finditer(rest) if self._counts(match, rest)]
        others = {match.group(1) for match in letters} - {letter}
        return len(others) == 1 and letters[-1].group(1) in others and not rest[letters[-1].end() :].strip(EDGES)

    def _others(self, text: str, letters: Mapping[str, re.Match[str]]) -> bool:
        """Checks whether other letters than these stand beside characters of scripts without blanks: "A和B都可以"."""
        spaced = _BESIDE_WIDE.sub(" ", text) if letters and not text.isascii() else ""
        return any(match[1] not in letters and self._counts(match, spaced) for match in _LETTER.finditer(spaced))

    def _counts(self, match: re.Match[str], text: str) -> bool:
        letter, after = match.group(1), text[match.end() :]
        if letter not in self.texts or _is_word(letter, after):
            return False
        before = text[max(0, match.start() - 40) : match.start()]
        return not NOT_AFTER.match(after) and not NOT_BEFORE.search(before) and not DENIED_CLAUSE.search(before)

    def _named(self, flat: str) -> set[str]:
        """The options in a text, by their words or as numbers."""
        mentions = self._mentions(flat)
        rest = flat
        for _, start, end in mentions:
            rest = f"{rest[:start]}{' ' * (end - start)}{rest[end:]}"
        return {letter for letter, _, _ in mentions} | self._numbers(rest)

    def _mentions(self, flat: str) -> list[tuple[str, int, int]]:
        """The letter, start and end of each option in a text; not of those within others, nor after a negation."""
        lower = _HYPHEN.sub(" ", flat.lower())
        if len(lower) != len(flat):
            return []
        mentions = [
            (letter, start, end)
            for letter, option in self._comparable.items()
            if letter not in self._quantities
            if len(option) > 1 or (option and not (option.isascii() and option.isalpha()))
            for start, end in places(option, lower)
            if not (_IS_FORMULA.match(option) and _in_formula(start, end, lower))
        ]
        for letter, start, end in mentions:  # "Yes, there is no dog"
            if self._comparable[letter] in ("yes", "no") and not start and lower[end : end + 1] in tuple(",.;:!"):
                return [(letter, start, end)]
        longest: list[tuple[str, int, int]] = []
        for place in sorted(mentions, key=lambda place: (place[1], -place[2])):
            if not longest or place[2] > longest[-1][2] or place[1:] == longest[-1][1:]:
                longest.append(place)
        return [
            (letter, start, end)
            for letter, start, end in longest
            if not NOT_BEFORE.search(lower[max(0, start - 40) : start])
            and not NOT_AFTER.match(lower[end : end + 60])
            and not (self._comparable[letter] == "no" and is_aside(lower, start))
        ]


def _flat(text: str) -> str:
    """A text as it is compared with options."""
    return _HYPHEN.sub(" ", comparable(with_plain_numbers(plain_notation(text))))


def _packed(text: str) -> str:
    """A formula without blanks, such as ``(0,2)``, whose brackets tell it from ``[0,2]``; empty for words."""
    return "".join(bare(text).lower().split()) if _MARKS.search(text) else ""


def _same_unit(one: Quantity, other: Quantity) -> bool:
    return one.unit == other.unit and same_quantity(one, other)


def _same_measure(one: Quantity, other: Quantity) -> bool:
    return one.unit is not None and other.unit is not None and same_quantity(one, other)


def _same_value(one: Quantity, other: Quantity) -> bool:
    """Checks whether two are equal, one of them without a unit; or one is the other in percent: 25% and 0.25."""
    if same_quantity(one, other):
        return True
    if one.percent == other.percent or (one.unit and other.unit):
        return False
    shares = [side.value / 100 if side.percent else side.value for side in (one, other)]
    return math.isclose(*shares, rel_tol=1e-9)


def _tight(text: str) -> str:
    """A formula without blanks; another text as it is."""
    return re.sub(r"\s+", "", text) if _OPERATOR.search(text) else text


def _in_formula(start: int, end: int, text: str) -> bool:
    """Checks whether a part of a text belongs to a longer formula: ``x^2`` in ``x^2 + 1``."""
    return bool(_TERM_BEFORE.search(text[max(0, start - 3) : start]) or _TERM_AFTER.match(text[end : end + 3]))


def _is_word(letter: str, after: str) -> bool:
    """Checks whether a letter is the article A or the pronoun I, by what follows it."""
    usual = None if _PAIR.match(after) else _AFTER_LETTER.get(letter)
    following = _NEXT_WORD.match(after) if usual else None
    return following is not None and usual is not None and following.group(1) not in usual


def _prominent(match: re.Match[str], text: str) -> bool:
    """Checks whether a letter follows "option" or "is", is in brackets, stars or quotes, or in the last four words."""
    before, after = text[: match.start()], text[match.end() :]
    if _KEYWORD.search(before) or before[-1:] + after[:1] in ("()", "[]", "**", "``", "''", '""'):
        return True
    if not before.strip(EDGES) and _POINT.match(after):  # "B, weil es gelb ist"
        return True
    return len(after.lstrip(EDGES).split(None, 4)) <= 3

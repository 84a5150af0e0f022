"""The first step of every rule of `default`: the final part of an answer, without markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from testbed.answers import languages
from testbed.answers.published.choice import FAILURE, REFUSALS
from testbed.canonical_text import plain
from testbed.models.base.thoughts import final_part

_STYLE = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mathsf|rm|bf)\s*\{([^{}]*)\}")

_HTML = re.compile(r"</?(?:b|strong|i|em|u|p|span|mark|center|font)(?:\s[^<>]{0,100})?>", re.IGNORECASE)
_TAG = re.compile(r"<(?:final[ _-]?)?answer>(.*?)(?:</(?:final[ _-]?)?answer>|$)", re.DOTALL | re.IGNORECASE)
_CONCLUSION = re.compile(r"<(conclusion|solution|final)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_BOX = re.compile(r"\\f?boxed\s*(?=\{)")
_BEGIN_BOX = re.compile(r"<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|$)", re.DOTALL)
_ELEMENT = re.compile(r"<([A-Za-z][\w-]{0,40})>([^<]*)</\1>")  # any, if it is the whole answer
_STRUCK = re.compile(r"~~(?=\S)[^~\n]{1,300}~~|<(s|del|strike)>[^<]{0,300}</\1>", re.IGNORECASE)
_END = re.compile(r"<(?:/([A-Za-z][\w-]{0,20})|end_\w{1,20}|eo\w{1,3}|pad)>\s*\Z")  # of a turn, as a token
_LAST_LINE = re.compile(r"^####\s+(\S[^\n]*)\s*\Z", re.MULTILINE)  # as in GSM8K
_HEADING = re.compile(
    rf"^[#*_ \t]*(?:\w+[ \t]+){{0,2}}(?:{languages.NOUNS})[*_: \t]*\n\s*(\S[^\n]*)", re.MULTILINE | re.IGNORECASE
)
_FIELD = re.compile(
    r"""["'](?:final[ _]?)?(?:answer|option|choice)["']\s*:\s*(?:"((?:[^"\\]|\\.)*)"|'([^'\n]*)'|([^\s,}"'\[{]+))""",
    re.IGNORECASE,
)
ANSWER_IS = languages.ANSWER_IS
_ANSWER_IS = re.compile(ANSWER_IS, re.IGNORECASE)
# What statements begin with. Looking for these words first is several times quicker than the patterns alone.
_BEGINNINGS = re.compile(
    languages.NOUNS + "|option|choice|selection|choose|select|pick|go"
    "|say|guess|lean|must|has|leav|but|so|thus|therefore|hence|consequently|\\?"
    "|是|为|為|故选|选择|选项|选|選択肢|선택지"
)
_NEXT_SENTENCE = re.compile(r"[.!?。]\s+(?=[A-Z\u4e00-\u9fff])")

_MOST_ENDS = 5  # tokens
_MOST_BOXES, _LONGEST_BOX = 20, 4000  # from the last on; characters
_ESCAPED = re.compile(r"\\([%$#&_])")
_WRAPPED = re.compile(r"```\w*\s+(\S.*?)\s*```|\\\((.+)\\\)|\\\[(.+)\\\]|\(([^(),]+)\)", re.DOTALL)
_COMPARED = re.compile(r"[\s\"'`*_$(]*([<>]=?)\s*[-$€£]?\d[^<>]*$")
_LEAD = re.compile(
    r"(?i:(?:it|this|that)(?:'s|\s+is)|(?:they|these|those)(?:'re|\s+are)|there(?:'s|\s+is|\s+are))\s+"
    r"|(?i:(?:[\w'-]{1,30}\s+){1,12}(?:is|are|was|were|says|reads)\s*:\s+|(?:response|assistant|output)\s*:\s+)"
    r"|[A-Za-z](?:_\{?\w+\}?)?'?\s*=\s*(?=[^=]+$)|[AR]:\s+|(?:→|⇒|=>|∴|•|\\therefore)\s*|(?:[-*–]|#{1,6})\s+(?=[^\W\d])"
)
_EXCLAIMED = re.compile(r"[^\W\d_]{2}!\Z")  # no factorial
_IS_AFTER = re.compile(rf"(?<=[\u2e80-\U0003ffff])(?:{languages.IS_AFTER})[.!]?$")
_POLITE = re.compile(rf"(?<=[\u2e80-\U0003ffff])(?:{languages.POLITE_IS})[.!]?$")
_ABOUT = re.compile(r"(?:≈|∼|~|=|\\approx|\\sim)\s*")

# Characters around an answer that do not belong to it.
EDGES = " \t\r\n\"'`*_.,;:!?()[]{}<>$|/\\"


def final_text(text: str) -> tuple[str | None, str]:
    """Returns the final part of an answer, with ASCII punctuation and without styles of LaTeX.

    Returns:
        The text, or None; and why it is None: ``"cut off"`` if there are only thoughts, ``"failure"`` if the text is
        VLMEvalKit's message of a failed request, ``"refusal"`` if it is a refusal.
    """
    final = final_part(text)
    if final is None:
        return None, "cut off"
    if FAILURE in final:
        return None, "failure"
    if any(refusal in final for refusal in REFUSALS):
        return None, "refusal"
    final = plain(final)
    final = _HTML.sub("", _without_end(final)) if "<" in final else final
    final = _STRUCK.sub("", final) if "~~" in final or "</" in final else final
    return (_STYLE.sub(r"\1", final) if "\\" in final else final).strip(), ""


def _without_end(text: str) -> str:
    """A text without the tokens that end a turn (``</s>``, ``<end_of_turn>``), unless it is nothing else."""
    for _ in range(_MOST_ENDS):
        match = _END.search(text[-40:])
        rest = text[: len(text) - len(match[0])].rstrip() if match else ""
        if match is None or not rest or (match[1] and f"<{match[1]}" in text):
            break
        text = rest
    return text


def marked(text: str) -> list[str]:
    """Returns the marked answers, last first: in ``<answer>``, in a LaTeX box, in the field ``answer`` of JSON."""
    if not any(mark in text for mark in "<\\:#"):
        return []
    whole = _ELEMENT.fullmatch(text.strip())
    if whole and whole[2].strip():
        return [whole[2].strip()]
    matches = [match for pattern in (_TAG, _BEGIN_BOX, _FIELD, _LAST_LINE) for match in pattern.finditer(text)]
    ended = [(match.end(), next((group for group in match.groups() if group is not None), "")) for match in matches]
    ended += [(match.end(), match[2]) for match in _CONCLUSION.finditer(text)]
    ended += _boxes(text)
    return [content.strip() for _, content in sorted(ended, key=lambda pair: -pair[0]) if content.strip()]


def _boxes(text: str) -> list[tuple[int, str]]:
    """Returns the contents of LaTeX boxes, including inner braces, and their ends. Unclosed boxes do not count."""
    boxes = []
    for match in [*_BOX.finditer(text)][-_MOST_BOXES:]:
        depth = 0
        for place in range(match.end(), min(len(text), match.end() + _LONGEST_BOX)):
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if not depth:
                boxes.append((place + 1, text[match.end() + 1 : place]))
                break
    return boxes


def statements(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern that begins like `ANSWER_IS`, or with another of the words above."""
    lower = text.lower()
    if len(lower) != len(text):
        yield from pattern.finditer(text)
        return
    for beginning in _BEGINNINGS.finditer(lower):
        match = pattern.match(text, beginning.start())
        if match:
            yield match


def open_answer(text: str) -> tuple[str | None, str]:
    """The answer to an open question: what is marked as such, or follows the last "answer is", or the whole text.

    Returns:
        The answer without quotes, stars and a final full stop, or None if there is none; and how it was found.
    """
    final, why = final_text(text)
    if final is None:
        return None, why
    content, method = final, "whole"
    contents = marked(final)
    if contents:
        content, method = contents[0], "marked"
    else:
        ends = [match.end() for match in statements(_ANSWER_IS, final)]
        ends += [match.start(1) for match in _HEADING.finditer(final)] if "\n" in final else []
        ends.sort()
        said = final[ends[-1] :].lstrip() if ends else ""
        if said.strip(EDGES):
            content, method = _NEXT_SENTENCE.split(said.split("\n")[0], maxsplit=1)[0], "answer is"
            if not content.startswith(("*", "_", "`")):  # "**Paris**" after "answer: **"
                content = content.rstrip().rstrip("*_`")
            content = _IS_AFTER.sub("", content) or content
    content = bare(content)
    return (content, method) if content else (None, "none")


def short_answer(text: str, references: Sequence[str]) -> tuple[str | None, str]:
    """Returns `open_answer` without what leads up to a value (``x = 42``, ``≈ 42``), unless a reference has that."""
    answer, method = open_answer(text)
    if answer is None:
        return None, method
    references = [plain(reference) for reference in references]
    answer = answer if any(_POLITE.search(reference) for reference in references) else _POLITE.sub("", answer)
    for lead in (_LEAD, _ABOUT):
        match = lead.match(answer)
        if (
            match
            and answer[match.end() :].strip()
            and not any(lead.match(reference.strip()) for reference in references)
        ):
            answer = bare(answer[match.end() :])
    return answer, method


def bare(text: str) -> str:
    """A text without the quotes, stars, fences and signs of mathematics around it, and its final full stop or mark."""
    text = _unquoted(_ESCAPED.sub(r"\1", plain(text).strip()))
    if (text.endswith(".") and not text.endswith("..")) or _EXCLAIMED.search(text):
        text = _unquoted(text[:-1].rstrip()) or text
    return text


def _unquoted(text: str) -> str:
    while True:
        inner = _WRAPPED.fullmatch(text)
        if inner:
            text = next(group for group in inner.groups() if group is not None).strip()
        elif len(text) > 2 and text[0] == text[-1] and text[0] in "\"'`*_$":
            text = text[1:-1].strip()
        else:
            return text


def comparable(text: str) -> str:
    """A text as it is compared with others: lower case, single blanks, without punctuation and an article around it."""
    flat = " ".join(plain(text).lower().replace("–", "-").split())
    compared = _COMPARED.match(flat)  # "> 5" is not 5
    core = flat.strip(EDGES) or flat
    core = f"{compared[1]}{core}" if compared else core
    first, _, rest = core.partition(" ")
    return rest if first in ("a", "an", "the") and rest else core


def _joined(left: str, right: str) -> bool:
    """Checks whether two characters belong to one word or number. Scripts without blanks have no words here."""
    return left.isalnum() and right.isalnum() and left < "\u2e80" and right < "\u2e80"


def places(needle: str, text: str) -> list[tuple[int, int]]:
    """Finds the places of a text in another as whole words and numbers: ``1`` is not in ``10``, ``-1`` or ``1.5``."""
    spans, start = [], text.find(needle) if needle else -1
    while start >= 0:
        end = start + len(needle)
        before, after = text[max(0, start - 2) : start], text[end : end + 2]
        whole = not (before and _joined(before[-1], needle[0])) and not (after and _joined(needle[-1], after[0]))
        if whole and needle[0].isdigit() and before:
            whole = not (before[-1] == "-" and not before[:-1].isalnum()) and not (
                before[-1] in ".," and before[:-1].isdigit()
            )
        if whole and needle[-1].isdigit() and len(after) == 2:
            whole = not (after[0] in ".," and after[1].isdigit())
        if whole:
            spans.append((start, end))
        start = text.find(needle, start + 1)
    return spans


def edit_distance(first: str, second: str) -> int:
    """The Levenshtein distance: the fewest insertions, deletions and substitutions of characters.

    The columns of its table are the bits of whole numbers (Hyyrö, 2003), so that pages of text are compared quickly.
    """
    if first == second or not first or not second:
        return 0 if first == second else len(first) + len(second)
    places: dict[str, int] = {}
    for place, character in enumerate(first):
        places[character] = places.get(character, 0) | 1 << place
    whole, last, distance = (1 << len(first)) - 1, 1 << (len(first) - 1), len(first)
    more, less = whole, 0  # where a cell is one more, or one less, than the cell above it
    for character in second:
        equal = places.get(character, 0)
        diagonal = (((equal & more) + more) ^ more) | equal
        right, left = less | (whole & ~(diagonal | more)), more & diagonal
        distance += bool(right & last) - bool(left & last)
        right, left = (right << 1 | 1) & whole, left << 1 & whole
        more, less = left | (whole & ~(equal | less | right)), right & (equal | less)
    return distance

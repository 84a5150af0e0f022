"""What every rule of `default` begins with: the final part of an answer, without markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from testbed.answers import languages
from testbed.answers.published.choice import FAILURE, REFUSALS
from testbed.models.base.thoughts import final_part

# Full-width letters, digits and punctuation; quotes and brackets of other languages.
_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    ord(wide): plain for wide, plain in zip("\u3000。、「」『』【】“”‘’−\xa0،؛؟।", ' .,""""[]""\'\'- ,;?.', strict=True)
}
_STYLE = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mathsf|rm|bf)\s*\{([^{}]*)\}")

_TAG = re.compile(r"<(?:final[ _-]?)?answer>(.*?)(?:</(?:final[ _-]?)?answer>|$)", re.DOTALL | re.IGNORECASE)
_BOX = re.compile(r"\\f?boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}|<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|$)", re.DOTALL)
_FIELD = re.compile(
    r"""["'](?:final[ _]?)?(?:answer|option|choice)["']\s*:\s*(?:"((?:[^"\\]|\\.)*)"|'([^'\n]*)'|([^\s,}"']+))""",
    re.IGNORECASE,
)
ANSWER_IS = languages.ANSWER_IS
_ANSWER_IS = re.compile(ANSWER_IS, re.IGNORECASE)
# What statements begin with. Looking for these words first is several times quicker than the patterns alone.
_BEGINNINGS = re.compile(
    languages.NOUNS + "|option|choice|selection|choose|select|pick|go"
    "|say|guess|lean|must|has|leav|so|thus|therefore|hence|consequently|\\?"
    "|故选|应选|选择|选项|选"
)
_NEXT_SENTENCE = re.compile(r"[.!?。]\s+(?=[A-Z\u4e00-\u9fff])")

# What stands around an answer and is no part of it.
EDGES = " \t\r\n\"'`*_.,;:!?()[]{}<>$|/\\"


def final_text(text: str) -> tuple[str | None, str]:
    """The final part of an answer, with ASCII punctuation and without styles of LaTeX.

    Returns:
        The text, or None; and why it is None: ``"cut off"`` if there are only thoughts, ``"failure"`` if the text is
        VLMEvalKit's message of a failed request, ``"refusal"`` if it is a refusal.
    """
    final = final_part(text)
    if final is None:
        return None, "cut off"
    if FAILURE in final:
        return None, "failure"
    if any(each in final for each in REFUSALS):
        return None, "refusal"
    final = final if final.isascii() else final.translate(_ASCII)
    return (_STYLE.sub(r"\1", final) if "\\" in final else final).strip(), ""


def marked(text: str) -> list[str]:
    """What is marked as the answer, last first: in ``<answer>``, in a LaTeX box, in the field ``answer`` of JSON."""
    if not ("<" in text or "\\" in text or ":" in text):
        return []
    found = [match for pattern in (_TAG, _BOX, _FIELD) for match in pattern.finditer(text)]
    found.sort(key=lambda match: match.end(), reverse=True)
    contents = (next((group for group in match.groups() if group is not None), "") for match in found)
    return [each.strip() for each in contents if each.strip()]


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
    found, method = final, "whole"
    contents = marked(final)
    if contents:
        found, method = contents[0], "marked"
    else:
        ends = [match.end() for match in statements(_ANSWER_IS, final)]
        said = final[ends[-1] :].lstrip() if ends else ""
        if said.strip(EDGES):
            found, method = _NEXT_SENTENCE.split(said.split("\n")[0], maxsplit=1)[0], "answer is"
    found = bare(found)
    return (found, method) if found else (None, "none")


def bare(text: str) -> str:
    """A text without the quotes and stars around it and its final full stop."""
    text = _unquoted(text.strip())
    if text.endswith(".") and not text.endswith(".."):
        text = _unquoted(text[:-1].rstrip()) or text
    return text


def _unquoted(text: str) -> str:
    while len(text) > 2 and text[0] == text[-1] and text[0] in "\"'`*_$":
        text = text[1:-1].strip()
    return text


def comparable(text: str) -> str:
    """A text as it is compared with others: lower case, single blanks, without punctuation and an article around it."""
    flat = " ".join(text.lower().split())
    plain = flat.strip(EDGES) or flat
    first, _, rest = plain.partition(" ")
    return rest if first in ("a", "an", "the") and rest else plain


def _joined(left: str, right: str) -> bool:
    """Whether two characters belong to one word or number. Scripts without blanks have no words here."""
    return left.isalnum() and right.isalnum() and left < "\u2e80" and right < "\u2e80"


def places(needle: str, text: str) -> list[tuple[int, int]]:
    """Where a text occurs in another as whole words and numbers: ``1`` is not in ``10``, ``-1`` or ``1.5``."""
    found, start = [], text.find(needle) if needle else -1
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
            found.append((start, end))
        start = text.find(needle, start + 1)
    return found

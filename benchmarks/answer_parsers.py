"""Compares parsers of numbers on whole short answers: testbed's own, and published packages.

    pip install text2num word2number quantulum3 math-verify latex2sympy2_extended pint num2words
    python benchmarks/answer_parsers.py

A parser is given an answer and gives one number, or none. *Right* counts the answers with a value that it reads,
*wrong* all answers from which it takes another number (a part of the phrase, mostly), which is what rules must never
do. The phrases are those of ``tests/answers/test_numbers_in_phrases.py``, with which testbed's own parser was written,
and, as sets that nobody chose for it, random numbers in num2words' words, and the sentences with one quantity of
quantulum3's tests.
Counts alone; nothing is timed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import math
import multiprocessing
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from testbed.answers.numbers import sole_quantity

ROOT = Path(__file__).resolve().parent.parent
Parser = Callable[[str], float | None]
NUMBERS = 200  # in words
LIMIT = 20  # seconds for an answer
_FORK = multiprocessing.get_context("fork")


def own(text: str) -> float | None:
    """testbed's."""
    found = sole_quantity(text)
    return None if found is None else found.value


def text2num() -> Parser:
    from text_to_num import alpha2digit

    def parse(text: str) -> float | None:
        return _float(alpha2digit(text, "en"))

    return parse


def word2number() -> Parser:
    from word2number import w2n

    return lambda text: float(w2n.word_to_num(text))


def quantulum3() -> Parser:
    from quantulum3 import parser

    parser.parse("1 m")  # loads its classifier

    def parse(text: str) -> float | None:
        found = parser.parse(text)
        return float(found[0].value) if len(found) == 1 else None

    return parse


def math_verify() -> Parser:
    import math_verify

    def parse(text: str) -> float | None:
        found = math_verify.parse(text, parsing_timeout=None, raise_on_error=False)
        return float(found[0]) if found and not isinstance(found[0], str) else None

    return parse


def latex2sympy2_extended() -> Parser:
    from latex2sympy2_extended import latex2sympy

    return lambda text: float(latex2sympy(text.strip("$")))


def pint() -> Parser:
    import pint

    registry = pint.UnitRegistry()

    def parse(text: str) -> float | None:
        found = registry.parse_expression(text)
        return float(getattr(found, "magnitude", found))

    return parse


OTHERS = (text2num, word2number, quantulum3, math_verify, latex2sympy2_extended, pint)


def _float(text: str) -> float | None:
    try:
        return float(text.replace(",", "").rstrip("."))
    except ValueError:
        return None


def phrases() -> dict[str, list[tuple[str, float | None]]]:
    """The phrases of the test, by kind."""
    path = ROOT / "tests" / "answers" / "test_numbers_in_phrases.py"
    spec = importlib.util.spec_from_file_location("phrases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.PHRASES)


def in_words() -> list[tuple[str, float | None]]:
    """Random numbers of one to nine digits, and a sentence around every second."""
    from num2words import num2words

    drawn = random.Random(0)
    values = [drawn.randrange(10 ** drawn.randint(1, 9)) for _ in range(NUMBERS)]
    return [
        ((f"There are {num2words(value)} of them." if place % 2 else num2words(value)), float(value))
        for place, value in enumerate(values)
    ]


def values(parse: Parser, texts: Sequence[str]) -> list[float | None]:
    """Runs a parser on each answer with a time limit; some compute powers of powers forever."""
    found: list[float | None] = []
    while len(found) < len(texts):
        ours, theirs = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=_parse_all, args=(parse, texts[len(found) :], theirs))
        process.start()
        theirs.close()
        with contextlib.suppress(EOFError):
            while len(found) < len(texts) and ours.poll(LIMIT):
                found.append(ours.recv())
        process.kill()
        process.join()
        if len(found) < len(texts):
            found.append(None)  # it took too long, or the process died of it
    return found


def _parse_all(parse: Parser, texts: Sequence[str], results: Any) -> None:
    for text in texts:
        try:
            value = parse(text)
        except Exception:
            value = None
        results.send(value if isinstance(value, float) and math.isfinite(value) else None)


def of_quantulum3() -> list[tuple[str, float | None]]:
    """The sentences of quantulum3's tests with exactly one quantity."""
    import quantulum3

    path = Path(quantulum3.__file__).parent / "_lang" / "en_US" / "tests" / "quantities.json"
    given = json.loads(path.read_text(encoding="utf-8"))
    return [(answer["req"], float(answer["res"][0]["value"])) for answer in given if len(answer["res"]) == 1]


def counted(parse: Parser, cases: Iterable[tuple[str, float | None]]) -> tuple[int, int, int, int]:
    """Answers with a value, those read; all answers, those from which another number was taken."""
    cases = list(cases)
    found = values(parse, [text for text, _ in cases])
    right = sum(
        value is not None and read is not None and math.isclose(read, value, rel_tol=1e-9)
        for read, (_, value) in zip(found, cases, strict=True)
    )
    wrong = sum(read is not None for read in found) - right
    return sum(value is not None for _, value in cases), right, len(cases), wrong


def main() -> None:
    """Prints a table in Markdown: a row for each kind of phrase, a column for each parser that is installed."""
    logging.disable(logging.CRITICAL)
    parsers: dict[str, Any] = {"testbed": own}
    for make in OTHERS:
        try:
            parsers[make.__name__] = make()
        except ImportError as error:
            print(f"left out: {make.__name__}: {error}", file=sys.stderr)
    kinds = phrases()
    kinds["all of these"] = [row for rows in kinds.values() for row in rows]
    for name, make in (("num2words' words", in_words), ("quantulum3's tests", of_quantulum3)):
        try:
            kinds[name] = make()
        except ImportError as error:
            print(f"left out: {name}: {error}", file=sys.stderr)
    print("| kind (answers, with a value) |", " | ".join(parsers), "|\n|---|" + "---|" * len(parsers))
    for kind, cases in kinds.items():
        cells = []
        for parse in parsers.values():
            valued, right, every, wrong = counted(parse, cases)
            cells.append(f"{right} right, {wrong} wrong")
        print(f"| {kind} ({every}, {valued}) |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()

"""Writes the table of VLMEvalKit's sets in docs/vlmevalkit.md: `python docs/make_vlmevalkit_sets.py`.

The sets are those of `testbed.data.tables.known`. The answers are those in tests/assets, each of which the rules
``vlmevalkit`` score as VLMEvalKit's own functions did (tests/answers/test_published_answers.py), and those that a judge
scores, whose reply is as asked for or has marks that VLMEvalKit reads (tests/answers/test_published_judges.py).
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from testbed.data.tables.known import known_tables
from testbed.eval_settings.base.questions import questions_of
from testbed.eval_settings.base.videos import framed_names

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "vlmevalkit.md"
_HEADER = "| rules | report | answers equal to VLMEvalKit's | by a judge | sets |\n|---|---|---|---|---|\n"
_OTHERS = "| class of VLMEvalKit | kind there | sets without a score here | reason, where it is one of principle |\n"
_OTHERS += "|---|---|---|---|\n"
# What a score needs and cannot be had here, by the class that scores.
_CODE, _PDF = "runs code that a model wrote", "its pictures are pages of PDF files"
REASONS = {
    **dict.fromkeys(("ChartMimic", "Design2Code", "UniSVG", "SArena", "SciDocBench"), _CODE),
    "ChartQAPro": "its prompt asks for code, which is not run",
    **dict.fromkeys(("DUDE", "MMLongBenchDoc"), _PDF),
    "OmniDocBench": "tables in LaTeX are read by the program latexmlc",
    "MMIFEval": "its judge sees the picture, and compares answers to two rows",
    "olmOCRBench": "a browser draws formulas, which are compared as pictures",
    "WildprobeDataset": "its table is not published",
    "VCRDataset": "Chinese words by spaCy's trained model, which no package index has",
    **dict.fromkeys(("ImageBaseDataset", "MME_CoT"), "VLMEvalKit has no scoring for it"),
    "MMGenBench": "an image generator draws what the answer describes",
    **dict.fromkeys(("MMDUDataset", "ImageMTDataset"), "a conversation"),
}
_PLACE = re.compile(rf"{re.escape(_HEADER)}(\|.*\n)*\n.*\n\n{re.escape(_OTHERS)}(\|.*\n)*")
_ANSWERS = ["published_answers", "published_reasoning", "published_letters", "published_videos", "published_by_set"]
_ANSWERS += [f"published_by_set_{number}" for number in (2, 3, 4, 5)]


def _asset(name: str) -> dict[str, Any]:
    """Returns what a file of recorded answers has."""
    whole: dict[str, Any] = json.loads(gzip.decompress((ROOT / "tests" / "assets" / f"{name}.json.gz").read_bytes()))
    return whole


def recorded() -> Counter[str]:
    """Returns the number of recorded answers of each kind of question that rules score."""
    return Counter(answer[0] for name in _ANSWERS for answer in _asset(name)["answers"])


def judged() -> Counter[str]:
    """Returns the number of recorded answers of each kind of question that a judge scores."""
    judges = _asset("published_by_judges")
    families = Counter(family for family, _, _, _, as_asked_for, *_ in judges["answers"] if as_asked_for)
    found = Counter(kind for kind, _, _, marks in _asset("published_by_set_3")["replies"] if marks is not None)
    found["grids"] = len(_asset("published_by_set_6")["grids"])
    found += Counter(kind for kind, *_ in _asset("published_by_set_7")["judged"])
    for family, number in families.items():
        found[judges["scorings"][family]] += number
    return found


def tables() -> str:
    """Returns both tables: the sets that are scored, and the others."""
    scored: dict[tuple[str, str], list[str]] = {}
    others: dict[tuple[str, str], list[str]] = {}
    for name, known in known_tables().items():
        framed = framed_names(name)  # a table of videos, which is asked by these
        questions = questions_of(framed[0] if framed else name, known.kind, known.prompt_class, known.score_class)
        if questions is None:
            others.setdefault((known.score_class, known.kind), []).append(name)
        else:
            scored.setdefault((questions.scoring, questions.report), []).append(name)
    equal, by_judge = recorded(), judged()
    lines = [
        f"| `{rules}` | `{report}` | {equal[rules] or '–'} | {by_judge[rules] or '–'} | {_names(names)} |\n"
        for (rules, report), names in sorted(scored.items())
    ]
    rest = [
        f"| `{name}` | {kind} | {_names(names)} | {REASONS.get(name, '–')} |\n"
        for (name, kind), names in sorted(others.items())
    ]
    counts = [sum(map(len, groups.values())) for groups in (scored, others)]
    said = f"So {counts[0]} of VLMEvalKit's {sum(counts)} names are scored. The other {counts[1]}:"
    return f"{_HEADER}{''.join(lines)}\n{said}\n\n{_OTHERS}{''.join(rest)}"


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def main() -> None:
    """Replaces the tables in the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_PLACE.sub(lambda _: tables(), page, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Tasks on pages of text (Fox, arXiv 2405.14295): reading, translating and summarizing them, and choosing a page."""

from __future__ import annotations

from testbed.answers.columns import truth
from testbed.answers.texts import comparable, edit_distance, final_text
from testbed.answers.verdict import Columns, Verdict
from testbed.metrics.captions.overlap import NONE, caption_overlap

_CHOICES = ("which page's box contains more characters", "what is this in the box")
_ROUGE = "ROUGE_L"


def task_of(columns: Columns) -> str:
    """The task, by the last line of the question: ``qa``, ``summary``, ``translation`` or ``ocr``."""
    lines = [line.strip() for line in columns.get("question", "").splitlines() if line.strip()]
    asked = lines[-1].lower() if lines else ""
    if any(part in asked for part in _CHOICES):
        return "qa"
    return "summary" if "summarize" in asked else "translation" if "translate" in asked else "ocr"


def published_page_task(columns: Columns, text: str) -> Verdict:
    """1 − edit distance / length; of summaries ROUGE-L, of answers equality."""
    right, task = truth(columns), task_of(columns)
    if task == "qa":
        score = float(text == right)
    elif task == "summary":
        score = float(caption_overlap([text], [[right]], NONE).scores[_ROUGE][0]) if text.strip() else 0.0
    else:
        score = 1 - edit_distance(text, right) / max(len(text), len(right), 1)
    return Verdict(text if text.strip() else None, score, task)


def page_task(columns: Columns, text: str) -> Verdict:
    """The same of the final part, with single blanks; answers without punctuation and case."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    said, right = " ".join(final.split()), " ".join(truth(columns).split())
    if task_of(columns) == "qa":
        said, right = comparable(said), comparable(right)
    return published_page_task({**columns, "answer": right}, said)

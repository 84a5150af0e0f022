"""Reports against the numbers of VLMEvalKit's own functions (e8e78f0) on the same verdicts.

`published_reports.json` holds what they returned for the rows of `answered_world`; of We-Math the counts. Its other
numbers are compared in extensions/vlmevalkit/tests/test_vlmevalkit_scores.py, by their places in VLMEvalKit's files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answered_world import WORLDS

from testbed.answers.reports.report import report

PUBLISHED = json.loads((Path(__file__).parent / "published_reports.json").read_text())


class Found(dict):
    """(metric, slice) → value."""

    def __init__(self, name):
        metrics = report(name, WORLDS[name](), "test@1")
        super().__init__({(each.name, each.slice): each.value for each in metrics})
        assert len(self) == len(metrics), "a metric is given twice"

    def parts(self, metric, what):
        """The slices ``what/NAME`` without further parts, by name."""
        begin = f"{what}/"
        return {
            part.removeprefix(begin): value
            for (name, part), value in self.items()
            if name == metric and part.startswith(begin)
        }


def test_mme_realworld():
    found = Found("mme_realworld")
    row = PUBLISHED["mme_realworld"]
    assert found["accuracy", "overall"] == pytest.approx(row.pop("Overall"))
    for task, parts in row.items():
        assert found["accuracy", f"task/{task}"] == pytest.approx(parts.pop("Avg"))
        for part, kinds in parts.items():
            value = found.get(("accuracy", f"sub-task/{task}/{part}"), 0)  # it gives 0 where there are no rows
            assert value == pytest.approx(kinds.pop("Avg"))
            assert found.parts("accuracy", f"kind/{task}/{part}") == pytest.approx(kinds)


def test_we_math():
    found = Found("we_math")
    counts, n = PUBLISHED["we_math"]["counts"], 50
    for kind in ("strict", "loose"):
        mastery, memorized = counts[f"CompleteMastery_{kind}"], counts[f"RoteMemorization_{kind}"]
        assert found[f"complete_mastery_{kind}", "overall"] * n == pytest.approx(mastery)
        assert found[f"rote_memorization_{kind}", "overall"] == pytest.approx(memorized / (memorized + mastery))
        lost = 0.5 * counts["InadequateGeneralization"] + memorized + counts["InsufficientKnowledge"]
        assert found[f"score_{kind}", "overall"] == pytest.approx((n - lost) / n)
    assert found["insufficient_knowledge", "overall"] * n == pytest.approx(counts["InsufficientKnowledge"])
    assert found["inadequate_generalization", "overall"] * n == pytest.approx(counts["InadequateGeneralization"])
    assert list(found.parts("accuracy", "steps").values()) == pytest.approx(PUBLISHED["we_math"]["S"])


def test_video_mme():
    found = Found("video_mme")
    for duration, parts in PUBLISHED["video_mme"].items():
        within = "" if duration == "overall" else f"duration/{duration}/"
        overall = "overall" if duration == "overall" else f"duration/{duration}"
        assert f"{found['accuracy', overall]:.3f}" == parts.pop("overall")
        for what, values in parts.items():
            for name, value in values.items():
                assert f"{found['accuracy', f'{within}{what}/{name}']:.3f}" == value


def test_math_vista():
    found = Found("math_vista")
    for row in PUBLISHED["math_vista"]:
        name = row["Task&Skill"]
        part = (
            "overall"
            if name == "Overall"
            else next(p for p in (f"task/{name}", f"skill/{name}") if ("accuracy", p) in found)
        )
        assert found["accuracy", part] * 100 == pytest.approx(row["acc"])
        assert found["prefetch", part] * 100 == pytest.approx(row["prefetch_rate"])

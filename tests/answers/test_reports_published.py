"""Reports against the numbers of VLMEvalKit's own functions (e8e78f0) on the same verdicts.

`published_reports.json` holds what they returned for the rows of `answered_world`; of We-Math the counts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answered_world import WORLDS

from testbed.answers.reports.report import PUBLISHED_ABILITIES, REPORTS, report

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


def percent(values):
    return {name: pytest.approx(value * 100) for name, value in values.items()}


def test_accuracy_within_each_split():
    found = Found("accuracy")
    for row in PUBLISHED["accuracy"]:
        split = f"split/{row.pop('split')}"
        assert found["accuracy", split] == pytest.approx(row.pop("Overall"))
        abilities = found.parts("accuracy", f"{split}/l2-category")
        own = {PUBLISHED_ABILITIES[name]: value for name, value in abilities.items()}
        assert own | found.parts("accuracy", f"{split}/category") == pytest.approx(row)


@pytest.mark.parametrize("variant", ["circular", "vanilla_base", "vanilla_all"])
def test_circular(variant):
    found = Found("circular")
    (row,) = PUBLISHED["circular"][variant]
    assert row.pop("split") == "none"
    assert found[variant, "overall"] == pytest.approx(row.pop("Overall"))
    assert found.parts(variant, "category") | found.parts(variant, "l2-category") == pytest.approx(row)


def test_mme():
    found = Found("mme")
    (row,) = PUBLISHED["mme"]
    for name in ("perception", "reasoning"):
        assert found[name, "overall"] == pytest.approx(row.pop(name))
    assert found.parts("score", "category") == pytest.approx(row)
    assert found["total", "overall"] == found["perception", "overall"] + found["reasoning", "overall"]


def test_pope():
    found = Found("pope")
    names = {"f1": "Overall", "accuracy": "acc", "precision": "precision", "recall": "recall"}
    for row in PUBLISHED["pope"]:
        part = "overall" if row["split"] == "Overall" else f"category/{row['split']}"
        for metric, name in names.items():
            assert found[metric, part] * 100 == pytest.approx(row[name])


def test_hallusion():
    found = Found("hallusion")
    for row in PUBLISHED["hallusion"]:
        name = row.pop("split")
        part = {"Overall": "overall", "VD": "category/VD", "VS": "category/VS"}.get(name, f"l2-category/{name}")
        own = {published: found[metric, part] for metric, published in REPORTS["hallusion"].published.items()}
        assert percent(own) == row


def test_mmvp():
    found = Found("mmvp")
    (row,) = PUBLISHED["mmvp"]
    assert row == {
        "Average": pytest.approx(found["accuracy", "overall"]),
        "Overall": pytest.approx(found["both_right", "overall"]),
    }


def test_cv_bench_2d():
    found = Found("cv_bench_2d")
    (row,) = PUBLISHED["cv_bench_2d"]
    row.pop("split")
    assert found["mean_over_sources", "overall"] == pytest.approx(row.pop("Overall"))
    assert found.parts("accuracy", "source") == pytest.approx(row)


def test_hr_bench():
    found = Found("hr_bench")
    for row in PUBLISHED["hr_bench"]:
        part = "overall" if row["type"] == "all" else f"category/{row['type']}"
        if row["cycle"] == "Average":
            assert found["mean_over_cycles", part] == pytest.approx(row["accuracy"])
        elif row["type"] == "all":
            assert found["accuracy", f"cycle_category/{row['cycle']}"] == pytest.approx(row["accuracy"])


def test_ocrbench():
    found = Found("ocrbench")
    row = PUBLISHED["ocrbench"]
    assert found["score", "overall"] == row.pop("Final Score")
    assert found["score", "overall"] / 10 == row.pop("Final Score Norm")
    assert found.parts("score", "group") == row


def test_vqa():
    found = Found("vqa")
    row = PUBLISHED["vqa"]
    assert found["accuracy", "overall"] * 100 == pytest.approx(row.pop("Overall"))
    assert percent(found.parts("accuracy", "split")) == row


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

"""VLMEvalKit's files of scores, and testbed's metric for each of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.answers.reports.report import PUBLISHED_ABILITIES, PUBLISHED_MMT, REPORTS
from testbed.entities import OVERALL, Metric

Metrics = Mapping[tuple[str, str], Metric]  # by name and slice

CIRCULAR = ("mmbench", "ccbench", "circular", "mmcr")  # in names of sets whose rotations VLMEvalKit combines
_CATEGORY, _ABILITY, _SPLIT = "category/", "l2-category/", "split/"


@dataclass(frozen=True)
class ScaledMetric:
    """A number in a file of VLMEvalKit: a metric of testbed times a scale."""

    metric: str
    slice: str = OVERALL
    scale: float = 1.0

    def value(self, metrics: Metrics) -> float | None:
        """The number; None if the metric is missing or undefined."""
        found = metrics.get((self.metric, self.slice))
        return None if found is None or found.value is None else found.value * self.scale


@dataclass(frozen=True)
class ScoreFile:
    """A file of scores.

    Attributes:
        suffix: Suffix of its name, such as ``_acc.csv``.
        rows: Rows of a CSV file, the header first.
        fields: Fields of a JSON file; ``a|b`` is the field b of the object a.
    """

    suffix: str
    rows: Sequence[Sequence[str | ScaledMetric]] = ()
    fields: Mapping[str, ScaledMetric | Sequence[ScaledMetric]] | None = None


def is_circular_there(set_name: str) -> bool:
    """Returns whether VLMEvalKit combines a set's rotations, which depends only on its name."""
    return any(word in set_name.lower() for word in CIRCULAR)


def primary_of(report: str, known: Collection[tuple[str, str]]) -> str:
    """The main metric of a report; ``circular`` for questions that were asked in rotations."""
    if report == "accuracy" and ("circular", OVERALL) in known:
        return "circular"
    return REPORTS[report].primary


def forms(report: str, scoring: str, known: Collection[tuple[str, str]], set_name: str = "") -> list[ScoreFile]:
    """Returns VLMEvalKit's files for a report; empty if their format is unknown.

    Args:
        report: A name in `REPORTS`.
        scoring: The scoring; a name in `testbed.answers.scorings.SCORINGS`.
        known: Names and slices of testbed's metrics.
        set_name: VLMEvalKit's name of the set, which determines whether it combines rotations.
    """
    primary = primary_of(report, known)
    if primary == "circular" and set_name and not is_circular_there(set_name):
        return [ScoreFile("_acc.csv", _by_split(known, "vanilla_all"))]
    if report == "amber":
        kinds = _parts(known, "accuracy", "kind/")
        of_kinds = [
            *(ScaledMetric("accuracy", f"kind/{kind}", 100) for kind in kinds),
            ScaledMetric("average", scale=100),
        ]
        return [ScoreFile("_score.csv", [[*kinds, "Avg ACC"], of_kinds])]
    if report == "vsr":
        scales = {"precision": 100, "recall": 100, "accuracy": 100, "f1_score": 1}
        return [ScoreFile("_score.csv", [["precision", "recall", "acc", "f1_score"], _cells(scales)])]
    if report == "mmt":
        return [ScoreFile("_acc.csv", _mmt(known))]
    if report == "mm_sci":
        return [ScoreFile("_acc.csv", _mm_sci(known))]
    if scoring == "number":
        return [ScoreFile("_acc.csv", [["accuracy"], [ScaledMetric("accuracy", scale=100)]])]
    if report in ("pope", "hallusion"):
        return [ScoreFile("_score.csv", _rows_by_category(report, known))]
    if report == "mme":
        return [ScoreFile("_score.csv", _mme(known))]
    if report == "hr_bench":
        return [ScoreFile("_acc.csv", _hr_bench(known))]
    if report == "ocrbench":
        return [ScoreFile("_score.json", fields=_ocrbench(known))]
    if report == "captions":
        return [ScoreFile("_score.json", fields=_CAPTIONS)]
    if report == "mtvqa":
        languages = _parts(known, primary, "language/")
        cells = {language: ScaledMetric(primary, f"language/{language}", 100) for language in languages}
        return [ScoreFile("_acc.json", fields={**cells, "Average": ScaledMetric(primary, scale=100)})]
    if report == "mmvp":
        return [ScoreFile("_acc.csv", [["Average", "Overall"], [ScaledMetric("accuracy"), ScaledMetric("both_right")]])]
    if report == "cv_bench_2d":
        sources = _parts(known, "accuracy", "source/")
        cells_2d = [ScaledMetric("accuracy", f"source/{source}") for source in sources]
        return [ScoreFile("_acc.csv", [["split", *sources, "Overall"], ["2D", *cells_2d, ScaledMetric(primary)]])]
    if primary == "circular":
        vanilla = [(name, _by_split(known, f"vanilla_{which}")) for name, which in _VANILLA]
        return [
            ScoreFile("_acc.csv", _by_split(known, primary)),
            ScoreFile("_acc_all.csv", _together([*vanilla, ("circular", _by_split(known, primary))])),
        ]
    if report in _OWN_FORMS:
        return _OWN_FORMS[report](known)
    if report in ("accuracy", "mmmu", "top_view_rs"):
        if scoring == "yes_no":
            return [ScoreFile("_score.csv", _in_percent(known, primary, by_split=False))]
        return [ScoreFile("_acc.csv", _by_split(known, primary, "validation" if report == "mmmu" else ""))]
    if report in ("vqa", "anls"):
        return [ScoreFile("_acc.csv", _in_percent(known, primary))]
    if report == "mme_realworld":
        return [ScoreFile("_rating.json", fields=_mme_realworld(known))]
    if report == "math_vista":
        return [ScoreFile("_score.csv", _math_vista(known))]
    return []


def filled(fields: Mapping[str, ScaledMetric | Sequence[ScaledMetric]], metrics: Metrics) -> dict[str, Any]:
    """The fields of a JSON file with their numbers; None if a metric is undefined."""
    found: dict[str, Any] = {}
    for name, cell in fields.items():
        *objects, last = name.split("|")
        within = found
        for text in objects:
            within = within.setdefault(text, {})
        within[last] = cell.value(metrics) if isinstance(cell, ScaledMetric) else [part.value(metrics) for part in cell]
    return found


_CAPTIONS: Mapping[str, ScaledMetric | Sequence[ScaledMetric]] = {
    "Bleu": [ScaledMetric(f"Bleu_{length}", scale=100) for length in (1, 2, 3, 4)],
    "ROUGE_L": ScaledMetric("ROUGE_L", scale=100),
    "CIDEr": ScaledMetric("CIDEr", scale=100),
}
_VANILLA = (("vanilla_0", "base"), ("vanilla_all", "all"))  # VLMEvalKit's and testbed's names


def _parts(known: Collection[tuple[str, str]], name: str, before: str) -> list[str]:
    """The labels of a metric's slices with this prefix and no further level."""
    given = [part.removeprefix(before) for metric, part in known if metric == name and part.startswith(before)]
    deeper = ("/category/", "/l2-category/", "/setting/")
    return sorted(part for part in given if not any(text in part for text in deeper))


def _by_split(known: Collection[tuple[str, str]], name: str, alone: str = "") -> list[list[str | ScaledMetric]]:
    """Rows for splits; columns Overall, l2-categories, categories; fractions.

    Args:
        known: Names and slices of testbed's metrics.
        name: The metric.
        alone: The split whose categories are reported, if there is only one.
    """
    splits = _parts(known, name, _SPLIT)
    parts = [before + part for before in (_ABILITY, _CATEGORY) for part in _parts(known, name, before)]
    labels = [part.split("/", 1)[1] for part in parts]
    rows: list[list[str | ScaledMetric]] = [
        ["split", "Overall", *(PUBLISHED_ABILITIES.get(label, label) for label in labels)]
    ]
    for split in splits or ["none"]:
        within = f"{_SPLIT}{split}/" if len(splits) > 1 and split != alone else ""
        overall = ScaledMetric(name, f"{_SPLIT}{split}") if splits else ScaledMetric(name)
        rows.append([split, overall, *(ScaledMetric(name, within + part) for part in parts)])
    return rows


def _together(tables: Sequence[tuple[str, list[list[str | ScaledMetric]]]]) -> list[list[str | ScaledMetric]]:
    """Joins tables with the same columns; prefixes their splits by the table's name, which replaces "none"."""
    rows = [tables[0][1][0]]
    for name, table in tables:
        rows += [[name if split == "none" else f"{name}_{split}", *cells] for split, *cells in table[1:]]
    return rows


def _in_percent(known: Collection[tuple[str, str]], name: str, by_split: bool = True) -> list[list[str | ScaledMetric]]:
    """One row in percent: splits and Overall, or Overall and categories, for VQA; all but splits for yes or no."""
    splits = _parts(known, name, _SPLIT) if by_split else []
    if splits:
        return [
            [*splits, "Overall"],
            [*(ScaledMetric(name, _SPLIT + text, 100) for text in splits), ScaledMetric(name, scale=100)],
        ]
    parts = [before + part for before in (_CATEGORY, _ABILITY) for part in _parts(known, name, before)]
    if by_split:
        parts = [part for part in parts if part.startswith(_CATEGORY)]
    labels = [part.split("/", 1)[1] for part in parts]
    return [["Overall", *labels], [ScaledMetric(name, scale=100), *(ScaledMetric(name, part, 100) for part in parts)]]


def _mme(known: Collection[tuple[str, str]]) -> list[list[str | ScaledMetric]]:
    """One row: perception, reasoning, and the points of each category."""
    categories = _parts(known, "score", _CATEGORY)
    sums = ["perception", "reasoning"]
    return [
        [*sums, *categories],
        [*map(ScaledMetric, sums), *(ScaledMetric("score", _CATEGORY + category) for category in categories)],
    ]


def _rows_by_category(report: str, known: Collection[tuple[str, str]]) -> list[list[str | ScaledMetric]]:
    """Rows for all and for categories; columns by VLMEvalKit's names; in percent."""
    published = dict(REPORTS[report].published)
    if report == "pope":
        published = {"f1": "Overall", "accuracy": "acc", "precision": "precision", "recall": "recall"}
    first = next(iter(published))
    rows: list[list[str | ScaledMetric]] = [["split", *published.values()]]
    parts = [before + part for before in (_CATEGORY, _ABILITY) for part in _parts(known, first, before)]
    for label, part in [("Overall", OVERALL), *((text.split("/", 1)[1], text) for text in parts)]:
        rows.append([label, *(ScaledMetric(name, part, 100) for name in published)])
    return rows


def _cells(scales: Mapping[str, float]) -> list[ScaledMetric]:
    return [ScaledMetric(name, scale=scale) for name, scale in scales.items()]


def _mmt(known: Collection[tuple[str, str]]) -> list[list[str | ScaledMetric]]:
    """Rows for splits and for all; columns Overall, abilities (means over their tasks), tasks; fractions."""
    abilities = _parts(known, "mean_over_tasks", _ABILITY)
    tasks = _parts(known, "accuracy", _CATEGORY)
    labels = [PUBLISHED_MMT.get(ability, ability) for ability in abilities]
    rows: list[list[str | ScaledMetric]] = [["split", "Overall", *labels, *tasks]]
    splits = _parts(known, "accuracy", _SPLIT)
    single = len(splits) < 2
    for split in [*(splits or ["none"]), "ALL"]:
        within = "" if single or split == "ALL" else f"{_SPLIT}{split}/"
        overall = ScaledMetric("accuracy", f"{_SPLIT}{split}") if split in splits else ScaledMetric("accuracy")
        own = [ScaledMetric("mean_over_tasks", f"{within}{_ABILITY}{ability}") for ability in abilities]
        rows.append([split, overall, *own, *(ScaledMetric("accuracy", f"{within}{_CATEGORY}{task}") for task in tasks)])
    return rows


def _mm_sci(known: Collection[tuple[str, str]]) -> list[list[str | ScaledMetric]]:
    """Rows for subjects, categories and all; columns are the kinds of questions and their mean."""
    kinds = _parts(known, "accuracy", "setting/")
    rows: list[list[str | ScaledMetric]] = [["subject", *kinds, "Avg"]]
    named = [(text, f"subject/{text}") for text in _parts(known, "average", "subject/")]
    named += [(f"CATEGORY_{text}", f"category/{text}") for text in _parts(known, "average", _CATEGORY)]
    for label, part in [*named, ("Overall", "")]:
        cells = [ScaledMetric("accuracy", f"{part}/setting/{kind}" if part else f"setting/{kind}") for kind in kinds]
        rows.append([label, *cells, ScaledMetric("average", part or OVERALL)])
    return rows


def _hr_bench(known: Collection[tuple[str, str]]) -> list[list[str | ScaledMetric]]:
    """A row for each cycle and its categories, and for the mean over cycles of each category."""
    rows: list[list[str | ScaledMetric]] = [["cycle", "type", "accuracy"]]
    for cycle in _parts(known, "accuracy", "cycle_category/"):
        place = f"cycle_category/{cycle}"
        rows.append([cycle, "all", ScaledMetric("accuracy", place)])
        within = f"{place}/{_CATEGORY}"
        rows += [[cycle, part, ScaledMetric("accuracy", within + part)] for part in _parts(known, "accuracy", within)]
    rows.append(["Average", "all", ScaledMetric("mean_over_cycles")])
    categories = _parts(known, "mean_over_cycles", _CATEGORY)
    return rows + [
        ["Average", category, ScaledMetric("mean_over_cycles", _CATEGORY + category)] for category in categories
    ]


def _ocrbench(known: Collection[tuple[str, str]]) -> dict[str, ScaledMetric]:
    """Points by group, their sum, and a tenth of it."""
    groups = {part: ScaledMetric("score", f"group/{part}") for part in _parts(known, "score", "group/")}
    return {**groups, "Final Score": ScaledMetric("score"), "Final Score Norm": ScaledMetric("score", scale=0.1)}


def _mme_realworld(known: Collection[tuple[str, str]]) -> dict[str, ScaledMetric]:
    """By task, sub-task and kind of question."""
    found = {"Overall": ScaledMetric("accuracy")}
    for before, after in (("task/", "|Avg"), ("sub-task/", "|Avg"), ("kind/", "")):
        for part in _parts(known, "accuracy", before):
            found[part.replace("/", "|", 2) + after] = ScaledMetric("accuracy", before + part)
    return found


def _math_vista(known: Collection[tuple[str, str]]) -> list[list[str | ScaledMetric]]:
    """Rows for all, tasks and skills, in percent."""
    rows: list[list[str | ScaledMetric]] = [["Task&Skill", "prefetch_rate", "acc"]]
    parts = [before + text for before in ("task/", "skill/") for text in _parts(known, "accuracy", before)]
    for label, part in [("Overall", OVERALL), *((text.split("/", 1)[1], text) for text in parts)]:
        rows.append([label, ScaledMetric("prefetch", part, 100), ScaledMetric("accuracy", part, 100)])
    return rows


def _gmai(known: Collection[tuple[str, str]]) -> list[ScoreFile]:
    """As multiple choice, and a file for each of its columns."""
    files = [ScoreFile("_acc.csv", _by_split(known, "accuracy"))]
    for column in ("clinical vqa task", "department", "perceptual granularity"):
        parts = _parts(known, "accuracy", f"{column}/")
        cells = [ScaledMetric("accuracy", f"{column}/{part}") for part in parts]
        files.append(ScoreFile(f"_{column}_acc.csv", [["Overall", *parts], [ScaledMetric("accuracy"), *cells]]))
    return files


def _three_d_sr(known: Collection[tuple[str, str]]) -> list[ScoreFile]:
    """A row for each way to combine the variants of a question."""
    names = {"accuracy": "vanilla", "flip": "flip_eval", "circular": "circ_eval", "flip_circular": "flip_circ_eval"}
    parts = [before + part for before in (_ABILITY, _CATEGORY) for part in _parts(known, "accuracy", before)]
    rows: list[list[str | ScaledMetric]] = [["setting", "Overall", *(part.split("/", 1)[1] for part in parts)]]
    for name, label in names.items():
        rows.append([label, ScaledMetric(name), *(ScaledMetric(name, part) for part in parts)])
    return [ScoreFile("_results.tsv", rows)]


def _vmc_bench(known: Collection[tuple[str, str]]) -> list[ScoreFile]:
    """One row: all, groups, sources; in percent."""
    groups = _parts(known, "mean_over_sources", "group/")
    sources = _parts(known, "accuracy", _CATEGORY)
    cells = [
        ScaledMetric("accuracy", scale=100),
        *(ScaledMetric("mean_over_sources", f"group/{group}", 100) for group in groups),
        *(ScaledMetric("accuracy", _CATEGORY + source, 100) for source in sources),
    ]
    return [ScoreFile("_acc.csv", [["Overall", *groups, *sources], cells])]


def _visual_puzzles(known: Collection[tuple[str, str]]) -> list[ScoreFile]:
    """A row for all, each category and each difficulty; in percent."""
    rows: list[list[str | ScaledMetric]] = [["group", "acc"], ["overall", ScaledMetric("accuracy", scale=100)]]
    for before in (_CATEGORY, "difficulty/"):
        rows += [[part, ScaledMetric("accuracy", before + part, 100)] for part in _parts(known, "accuracy", before)]
    return [ScoreFile("_acc.csv", rows)]


def _natural_bench(known: Collection[tuple[str, str]]) -> list[ScoreFile]:
    """A row for each number."""
    rows: list[list[str | ScaledMetric]] = [["Metric", "Score"]]
    rows += [[label, ScaledMetric(name)] for name, label in REPORTS["natural_bench"].published.items()]
    return [ScoreFile("_acc.csv", rows)]


def _crpe(known: Collection[tuple[str, str]]) -> list[ScoreFile]:
    kinds = _parts(known, "groups_right", _CATEGORY)
    cells = {kind: ScaledMetric("groups_right", f"{_CATEGORY}{kind}") for kind in kinds}
    return [ScoreFile("_score.json", fields={**cells, "total": ScaledMetric("groups_right")})]


def _visfactor(known: Collection[tuple[str, str]]) -> list[ScoreFile]:
    tests = _parts(known, "groups_right", "test/")
    cells = [ScaledMetric("groups_right", f"test/{test}") for test in tests]
    return [ScoreFile("_acc.csv", [[*tests, "ALL"], [*cells, ScaledMetric("mean_over_tests")]])]


def _tasks(known: Collection[tuple[str, str]]) -> list[ScoreFile]:
    names = _parts(known, "accuracy", "task/")
    cells = [ScaledMetric("accuracy", f"task/{name}") for name in names]
    both = [ScaledMetric("mean_over_tasks"), ScaledMetric("accuracy")]
    return [ScoreFile("_acc.csv", [[*names, "Overall macro", "Overall micro"], [*cells, *both]])]


_OWN_FORMS: Mapping[str, Callable[[Collection[tuple[str, str]]], list[ScoreFile]]] = {
    "gmai": _gmai,
    "three_d_sr": _three_d_sr,
    "vmc_bench": _vmc_bench,
    "visual_puzzles": _visual_puzzles,
    "natural_bench": _natural_bench,
    "crpe": _crpe,
    "visfactor": _visfactor,
    "tasks": _tasks,
}

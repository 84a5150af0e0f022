"""Labels that distinguish the evaluations of one cell: prompt files, precision, samples, weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from testbed.data.language.prompt_files import CLASS_NAMES_FILE, TEMPLATE_FILES
from testbed.entities import Evaluation, current

if TYPE_CHECKING:
    from testbed.db.store import Store

OWN_PROMPTS = "the data set's prompts"
# Other parts of an identity, in which evaluations with the same prompts may differ.
_PARTS = ("model", "forward", "view", "samples")

File = tuple[str, str]  # path and digest


def labels(store: Store, evaluations: Sequence[Evaluation]) -> dict[int, str]:
    """Evaluation id → a label unlike those of the others of its cell; empty for a single evaluation."""
    if len(evaluations) < 2:
        return {evaluation.id: "" for evaluation in evaluations}
    words: dict[int, list[str]] = {evaluation.id: [] for evaluation in evaluations}
    sources = _prompt_sources(store, evaluations)
    for part in (sources, *_circumstances(evaluations)):
        if len(set(part.values())) > 1:
            for key, word in part.items():
                words[key] += [word] if word else []
    for kind in _PARTS:
        digests = {evaluation.id: str((evaluation.identity or {}).get(kind, ""))[:8] for evaluation in evaluations}
        for alike in _alike(words):
            if len({digests[key] for key in alike}) > 1:
                words.update({key: [*words[key], f"{kind} {digests[key]}"] for key in alike})
    for alike in _alike(words):
        if len(alike) > 1:
            words.update({key: [*words[key], f"evaluation {key}"] for key in alike})
    return {key: ", ".join(found) for key, found in words.items()}


def _alike(words: dict[int, list[str]]) -> list[list[int]]:
    """The evaluations in groups with the same words."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for key, found in words.items():
        groups.setdefault(tuple(found), []).append(key)
    return list(groups.values())


def unreported(
    store: Store, models: Iterable[str] | None = None, eval_settings: Iterable[str] | None = None
) -> dict[int, str]:
    """The complete evaluations that are not the reported ones of their cells, each with its label."""
    cells: dict[tuple[str, str], list[Evaluation]] = {}
    for evaluation in store.evaluations.find(models, eval_settings):
        if evaluation.status == "complete":
            cells.setdefault((evaluation.model, evaluation.eval_setting), []).append(evaluation)
    found = {}
    for cell in cells.values():
        reported = {evaluation.id for evaluation in current(cell)}
        if len(reported) < len(cell):
            found.update({key: label for key, label in labels(store, cell).items() if key not in reported})
    return found


def prompts(store: Store, evaluation: Evaluation) -> dict[str, Any] | None:
    """The class names and templates of a zero-shot evaluation, or the digests of its heads; None without either."""
    found = store.evaluations.identity(evaluation).get("forward", {})
    given = found.get("prompts") if isinstance(found, dict) else None
    return given if isinstance(given, dict) else None


def _circumstances(evaluations: Sequence[Evaluation]) -> list[dict[int, str]]:
    """Returns what the store records of each evaluation besides its identity."""
    return [
        {evaluation.id: "imported" if evaluation.origin == "imported" else "computed" for evaluation in evaluations},
        {evaluation.id: evaluation.dtype or "" for evaluation in evaluations},
        {
            evaluation.id: f"{evaluation.sample_limit:,} samples" if evaluation.sample_limit else "all samples"
            for evaluation in evaluations
        },
        {
            evaluation.id: "random weights" if evaluation.random_weights else "trained weights"
            for evaluation in evaluations
        },
    ]


def _prompt_sources(store: Store, evaluations: Sequence[Evaluation]) -> dict[int, str]:
    """The names of the files that only some of the evaluations read, if their prompts differ."""
    found = {evaluation.id: prompts(store, evaluation) for evaluation in evaluations}
    asked = {key: value for key, value in found.items() if value is not None}
    if all(value == first for first in list(asked.values())[:1] for value in asked.values()):
        return dict.fromkeys(found, "")
    read = {key: _files(store, key) for key in asked}
    versions = Counter(path for path, _ in set.union(*read.values()))
    shared = set.intersection(*read.values())
    special = {
        key: sorted(file for file in files - shared if versions[file[0]] > 1 or not _is_beside_data(file[0]))
        for key, files in read.items()
    }
    names = _short_names(file for files in special.values() for file in files)
    return {key: ", ".join(names[file] for file in special.get(key, ())) or _otherwise(found[key]) for key in found}


def _otherwise(given: dict[str, Any] | None) -> str:
    if given is None:
        return ""
    return f"head {', '.join(each[:8] for each in given['heads'])}" if "heads" in given else OWN_PROMPTS


def _files(store: Store, evaluation_id: int) -> set[File]:
    """The files that an evaluation was first computed from, apart from code."""
    records = store.records.of([evaluation_id])[evaluation_id]
    files = records[-1].content.get("files", {}) if records else {}
    return {
        (path, str(digest)) for path, digest in files.items() if not path.startswith("testbed:") and path[-3:] != ".py"
    }


def _is_beside_data(path: str) -> bool:
    """Checks whether a file belongs to a data set, such as ``classnames.it.txt``."""
    name = PurePath(path).name.split(".")
    return f"{name[0]}.{name[-1]}" in (CLASS_NAMES_FILE, *TEMPLATE_FILES)


def _short_names(files: Iterable[File]) -> dict[File, str]:
    """The shortest unique name of each file: its own, with its folder, or with its content's digest."""
    known = set(files)
    short = {file: PurePath(file[0]).name for file in known}
    for longer in (lambda file: "/".join(PurePath(file[0]).parts[-2:]), lambda file: file[0]):
        paths = {name: {file[0] for file in known if short[file] == name} for name in short.values()}
        short = {file: longer(file) if len(paths[name]) > 1 else name for file, name in short.items()}
    taken = Counter(short.values())
    return {file: f"{name} ({file[1][:8]})" if taken[name] > 1 else name for file, name in short.items()}

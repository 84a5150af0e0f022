"""Writes caption scores to CLIP-CC-Bench's files: CSV and summary for each captioner and decoder, and a ranking."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.db.parts.names import matching_names, without_parts
from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import StoreError
from testbed.extensions.clip_cc_bench.clip_cc_forms import (
    COLUMNS,
    FIRST,
    FORMS,
    TODAY,
    Sheet,
    aggregated_table,
    first_summary,
    number,
    score_table,
    status_table,
    todays_summary,
    videos_json,
)
from testbed.models.base.capability import FAILED
from testbed.paths import write_atomically
from testbed.registry.references import SettingReference
from testbed.spreadsheet import as_csv
from testbed.stored_results.export_texts import TEXT
from testbed.tasks.parts.generation import reason_in

SCALES = {"unit": "", "raw": "_raw"}  # scale → suffix of the score names
STATUS = ("scored", "missing", "empty", "error")
REPLAY = "replay:"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class ScoredCaptions:
    """A stored evaluation of a captioner by a decoder."""

    evaluation: Evaluation
    captioner: str
    decoder: str


@dataclass(frozen=True)
class ClipCcExport:
    """The outcome of an export.

    Attributes:
        captioners: The number of evaluations of a captioner by a decoder.
        decoders: The decoders.
        files: The number of files.
        ranked: Whether a ranking was written.
    """

    captioners: int
    decoders: tuple[str, ...]
    files: int
    ranked: bool


def export_clip_cc(
    store: Store,
    folder: Path,
    models: Sequence[str] = (),
    settings: Sequence[str] = (),
    scale: str = "unit",
    tell: Tell = lambda note: None,
    first: Collection[int] = (),
    form: str = FIRST,
) -> ClipCcExport:
    """Writes the stored scores of captioners by decoders.

    Args:
        store: The results store.
        folder: The output folder; gets ``individual_results`` and ``aggregated_results`` below the layout's folder.
        models: Names or patterns of captioners; empty means all.
        settings: Names or patterns of settings ``<setting>@<decoder>``; none means all with such scores.
        scale: ``"unit"``: (x + 1) / 2; ``"raw"``: unchanged cosines.
        tell: Called with notes.
        first: Ids of evaluations that take precedence over the reported ones: those of the run to write.
        form: One of `FORMS`: ``"decoders"`` (the README's) or ``"embedding_models"`` (the current one).

    Raises:
        StoreError: If there is nothing to write, two evaluations would have the same files, or they cannot be written.
    """
    scored = _scored(store, models, settings, SCALES[scale], tell, first)
    place = FORMS[form]
    summaries = folder / place.summaries
    summary = todays_summary if form == TODAY else first_summary
    files: dict[Path, str] = {}
    sheets = [_sheet(store, captions, scale) for captions in scored]
    for scored_captions, sheet in zip(scored, sheets, strict=True):
        files[folder / place.videos(scored_captions.decoder, scored_captions.captioner, "csv")] = score_table(sheet)
        files[folder / place.videos(scored_captions.decoder, scored_captions.captioner, "json")] = videos_json(sheet)
        files[folder / place.status(scored_captions.decoder, scored_captions.captioner)] = status_table(sheet)
        files[summaries / scored_captions.decoder / place.summary.format(scored_captions.captioner)] = summary(sheet)
    if form == TODAY:
        files[summaries / "aggregated_results.csv"] = aggregated_table(sheets)
    ranking = _ranking(store, scored, f"hm_cf{SCALES[scale]}", tell)
    if ranking is not None:
        files[summaries / "ranking.csv"] = ranking
    write_files(files, folder)
    decoders = tuple(sorted({captions.decoder for captions in scored}))
    return ClipCcExport(len(scored), decoders, len(files), ranking is not None)


def write_files(files: Mapping[Path, str], folder: Path) -> None:
    """Writes texts to files, each atomically.

    Args:
        files: Path → text.
        folder: Their folder, for the message.

    Raises:
        StoreError: If they cannot be written.
    """
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text.encode())
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error


# Which ------------------------------------------------------------------------------------------------------------


def _scored(
    store: Store, models: Sequence[str], settings: Sequence[str], suffix: str, tell: Tell, first: Collection[int]
) -> list[ScoredCaptions]:
    """The reported evaluations, by decoder and captioner."""
    from testbed.stored_results.side_by_side import evaluations_on, matching_settings

    words = matching_settings(store, settings) if settings else without_parts(_settings_with_decoder(store))
    found = [
        entry
        for setting in words
        if SettingReference.parse(setting).judge
        for entry in evaluations_on(store, setting, first).values()
    ]
    names = store.scores.names(item.id for item in found)
    found = [item for item in found if f"{COLUMNS[0]}{suffix}" in names[item.id]]
    if found and models:
        wanted = matching_names("model", models, [item.model for item in found])
        found = [item for item in found if item.model in wanted]
    if not found:
        asked = f" on {', '.join(settings)}" if settings else ""
        raise StoreError(
            f"the store has no captions scored by a decoder{asked}; run: testbed run MODEL…"
            " --on 'clip-cc-bench@DECODER'"
        )
    partial = [item for item in found if item.sample_limit or item.random_weights]
    if partial:
        tell(f"{len(partial)} of {len(found)} evaluations used part of the samples or random weights")
    judges = {item.id: SettingReference.parse(item.eval_setting).judge for item in found}
    decoders = _names(judges.values(), "decoders")
    captioners = _names([item.model for item in found], "captioners")
    made = [ScoredCaptions(item, captioners[item.model], decoders[judges[item.id]]) for item in found]
    places: dict[tuple[str, str], Evaluation] = {}
    for captions in made:
        other = places.setdefault((captions.decoder, captions.captioner), captions.evaluation)
        if other is not captions.evaluation:
            raise StoreError(
                f"{captions.evaluation.model} was scored by {captions.decoder} on {other.eval_setting} and on"
                f" {captions.evaluation.eval_setting}, whose file names would be the same; choose with --on"
            )
    return sorted(made, key=lambda each: (each.decoder, each.captioner))


def settings_beside(store: Store, settings: Sequence[str]) -> list[str]:
    """The stored settings that score the same captions with any decoder."""
    about = {SettingReference.parse(setting).question for setting in settings}
    return [name for name in _settings_with_decoder(store) if SettingReference.parse(name).question in about]


def _settings_with_decoder(store: Store) -> list[str]:
    names = (
        evaluation.eval_setting
        for evaluation in store.evaluations.find()
        if evaluation.status == "complete" and evaluation.origin != "imported"
    )
    return sorted({name for name in names if SettingReference.parse(name).judge})


def _names(names: Iterable[str], what: str) -> dict[str, str]:
    """Makes file names that are unique even if case is ignored.

    Raises:
        StoreError: If two would share one.
    """
    chosen: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in dict.fromkeys(names):
        short = short_name(name)
        other = taken.setdefault(short.lower(), name)
        if other != name:
            raise StoreError(
                f"the {what} {other} and {name} would both have files named {short}; write them to different folders,"
                " or rename one (testbed store rename model OLD NEW)"
            )
        chosen[name] = short
    return chosen


def short_name(name: str) -> str:
    """The name of a captioner or decoder in files: ``internvl`` for ``replay:/x/internvl.json``.

    Characters other than letters, digits and ``_.,=-`` become underscores.
    """
    bare = re.sub(r"\.jsonl?$", "", name.removeprefix(REPLAY).rpartition("/")[2]) if name.startswith(REPLAY) else name
    return re.sub(r"[^\w.,=-]+", "_", bare, flags=re.ASCII).strip("._-")[:120] or "captioner"


# What -------------------------------------------------------------------------------------------------------------


def _sheet(store: Store, each: ScoredCaptions, scale: str) -> Sheet:
    """The scores and texts of an evaluation."""
    import numpy as np

    evaluation = each.evaluation
    if evaluation.dataset_id is None:
        raise StoreError(f"evaluation {evaluation.id} has no samples")
    samples = store.datasets.get(evaluation.dataset_id).samples
    scores = {name: values for (_, name), values in store.scores.read(evaluation.id).items()}
    status = [STATUS[int(code)] for code in scores["status"]]
    stored = TEXT in store.outputs.kinds(evaluation.id)
    values = store.outputs.read(evaluation.id, TEXT) if stored else [None] * len(samples)
    errors = store.outputs.errors(evaluation.id)
    counted = {"sentences", "reference_sentences"} <= scores.keys()
    return Sheet(
        captioner=each.captioner,
        decoder=SettingReference.parse(evaluation.eval_setting).judge,
        ids=[sample.id for sample in samples],
        columns={column: scores.get(f"{column}{SCALES[scale]}") for column in COLUMNS},
        status=status,
        reasons=[
            (errors.get(place) or _reason(said, value)) if stored else ""
            for place, (said, value) in enumerate(zip(status, values, strict=True))
        ],
        texts=[value.get("text") if isinstance(value, dict) else None for value in values],
        references=[_reference(sample.target) for sample in samples],
        cosines=scores.get(f"{COLUMNS[0]}{SCALES['raw']}", np.full(len(samples), np.nan)),
        sentences=(scores["sentences"], scores["reference_sentences"]) if counted else None,
        scale=scale,
        completed=evaluation.completed_at.isoformat() if evaluation.completed_at else "",
    )


def _reference(target: Any) -> str:
    """The reference text; several are joined, one per line."""
    return "\n".join(map(str, target)) if isinstance(target, list | tuple) else str(target or "")


def _reason(status: str, value: Any) -> str:
    if isinstance(value, dict) and str(value.get("finish_reason")).startswith(FAILED):
        return reason_in(value)
    reasons = {"error": "it could not be read", "missing": "no prediction", "empty": "the prediction is blank"}
    return reasons.get(status, "")


def _ranking(store: Store, scored: Sequence[ScoredCaptions], metric: str, tell: Tell) -> str | None:
    """The ranking as CSV; None, with a note, if no captioner has the metric from every decoder."""
    from testbed.stored_results.borda import borda_ranking

    captioners = {captions.evaluation.model: captions.captioner for captions in scored}
    decoders = {captions.evaluation.eval_setting: captions.decoder for captions in scored}
    chosen = {captions.evaluation.id for captions in scored}
    try:
        found = borda_ranking(store, sorted(decoders), sorted(captioners), metric, tell, chosen)
    except StoreError as error:
        tell(f"no ranking was written: {error}")
        return None
    header = ["rank", "model", "points", f"mean_{metric}"]
    header += [f"{what}_{decoders[setting]}" for setting in found.settings for what in (metric, "points")]
    rows = []
    for model, place, values in zip(found.models, found.places, found.values, strict=True):
        row = [str(place.rank), captioners[model], f"{place.points:g}", number(place.mean)]
        for value, points in zip(values, place.of_voters, strict=True):
            row += [number(value), f"{points:g}"]
        rows.append(row)
    return as_csv([header, *rows])

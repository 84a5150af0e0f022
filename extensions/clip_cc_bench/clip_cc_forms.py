"""The layouts of CLIP-CC-Bench's result files: that of the first version's README, and that of the current code.

They differ in names and places; see `FORMS`. Both have a JSON of all videos for each captioner and decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.jsontext import to_json
from testbed.spreadsheet import as_csv

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

FIRST, TODAY = "decoders", "embedding_models"
COLUMNS = ("coarse_similarity", "fine_precision", "fine_recall", "fine_f1", "hm_cf")
DIGITS = 4
TODAYS_DIGITS = 6
# The names in the summary of the first layout, with the column and statistics of each.
SUMMARY = {
    "coarse_similarity": ("coarse_similarity", ("mean", "std", "min", "max")),
    "fine_grained_precision": ("fine_precision", ("mean", "std")),
    "fine_grained_recall": ("fine_recall", ("mean", "std")),
    "fine_grained_f1": ("fine_f1", ("mean", "std")),
    "hm_cf": ("hm_cf", ("mean", "std")),
}


@dataclass(frozen=True)
class Layout:
    """The locations of the files of a captioner by a decoder.

    Attributes:
        root: The folder below that of the results.
        result: Name ending of a table or JSON of videos, without the suffix.
        summary: The path of the summary below the decoder's folder.
    """

    root: str
    result: str
    summary: str

    def videos(self, decoder: str, captioner: str, suffix: str) -> Path:
        """The table (``csv``) or JSON (``json``) of videos."""
        return Path(self.root, "individual_results", suffix, decoder, f"{captioner}{self.result}.{suffix}")

    def status(self, decoder: str, captioner: str) -> Path:
        """The table of statuses."""
        return Path(self.root, "individual_results", "csv", decoder, f"{captioner}_status.csv")

    @property
    def summaries(self) -> Path:
        """The folder of summaries, with one for each decoder."""
        return Path(self.root, "aggregated_results")

    def logs(self, decoder: str) -> Path:
        """The folder of log files."""
        return Path(self.root, "logs", decoder)


FORMS = {
    FIRST: Layout(FIRST, "_results", "per_model/{}_summary.json"),
    TODAY: Layout(TODAY, "", "{}.json"),
}


@dataclass(frozen=True)
class Sheet:
    """The scores of a captioner by a decoder.

    Attributes:
        captioner: Its name in files.
        decoder: Its name.
        ids: The samples.
        columns: Column → a value for each sample, NaN where it has no score; None if not computed.
        status: Status of each sample: ``scored``, ``missing``, ``empty`` or ``error``.
        reasons: Reason why a sample has no score; else empty.
        texts: The captions; None if missing.
        references: Reference of each sample.
        cosines: Cosines of whole texts, unscaled; NaN as in ``columns``.
        sentences: Numbers of sentences of each caption and its reference; None if not compared.
        scale: ``"unit"`` or ``"raw"``.
        completed: Time of scoring.
    """

    captioner: str
    decoder: str
    ids: Sequence[str]
    columns: Mapping[str, Array | None]
    status: Sequence[str]
    reasons: Sequence[str]
    texts: Sequence[str | None]
    references: Sequence[str]
    cosines: Array
    sentences: tuple[Array, Array] | None
    scale: str
    completed: str


# Tables -----------------------------------------------------------------------------------------------------------


def score_table(sheet: Sheet) -> str:
    """The CSV of scores, with the scored samples."""
    import numpy as np

    coarse = sheet.columns[COLUMNS[0]]
    assert coarse is not None
    rows = [
        [sheet.ids[place], *("" if values is None else number(values[place]) for values in sheet.columns.values())]
        for place in np.flatnonzero(~np.isnan(coarse)).tolist()
    ]
    return as_csv([["video_id", *COLUMNS], *rows])


def status_table(sheet: Sheet) -> str:
    """The CSV of statuses, with all samples."""
    rows = [list(row) for row in zip(sheet.ids, sheet.status, sheet.reasons, strict=True)]
    return as_csv([["video_id", "status", "reason"], *rows])


def aggregated_table(sheets: Sequence[Sheet]) -> str:
    """The current CSV of all captioners by all decoders: means with 4 digits, empty if missing."""
    decoders = sorted({sheet.decoder for sheet in sheets})
    wanted = {"coarse": "coarse_similarity", "fine_f1": "fine_f1", "hm_cf": "hm_cf"}
    means = {
        (sheet.captioner, sheet.decoder, column): statistics(sheet.columns[name], ("mean",), DIGITS)["mean"]
        for sheet in sheets
        for column, name in wanted.items()
    }
    header = ["Model Name", *(f"{decoder}_{column}" for decoder in decoders for column in wanted)]
    rows = []
    for captioner in sorted({sheet.captioner for sheet in sheets}):
        found = [means.get((captioner, decoder, column)) for decoder in decoders for column in wanted]
        rows.append([captioner, *("" if value is None else f"{value:.{DIGITS}f}" for value in found)])
    return as_csv([header, *rows])


def number(value: float) -> str:
    """A score in a table; empty for NaN."""
    return "" if value != value else f"{value:.{DIGITS}f}"


# JSON -------------------------------------------------------------------------------------------------------------


def videos_json(sheet: Sheet) -> str:
    """The JSON of samples with predictions, texts and scores, nested like CLIP-CC-Bench's.

    A sample whose prediction failed has no scores and ``success: false``; scores are never substituted.
    """
    return f"{to_json({sheet.ids[place]: _video(sheet, place) for place in _predicted(sheet)})}\n"


def _predicted(sheet: Sheet) -> list[int]:
    return [index for index, status in enumerate(sheet.status) if status != "missing"]


def _video(sheet: Sheet, place: int) -> dict[str, Any]:
    scores = {column: _plain(values, place) for column, values in sheet.columns.items()}
    text, reference = sheet.texts[place], sheet.references[place]
    counts = (None, None) if sheet.sentences is None else tuple(_count(sentence[place]) for sentence in sheet.sentences)
    return {
        "reference": reference,
        "candidate": text,
        "reference_length": len(reference),
        "candidate_length": len(text or ""),
        "similarity_data": {
            "coarse_grained": {
                "cosine_similarity": _plain(sheet.cosines, place),
                "normalized_cosine": scores["coarse_similarity"],
            },
            "fine_grained": {
                "precision": scores["fine_precision"],
                "recall": scores["fine_recall"],
                "f1_score": scores["fine_f1"],
                "num_gt_chunks": counts[1],
                "num_pred_chunks": counts[0],
            },
            "hybrid": {"hm_cf": scores["hm_cf"]},
            "metadata": {
                "success": sheet.status[place] != "error",
                "error_message": sheet.reasons[place],
                "is_fallback_score": False,
            },
        },
    }


def _plain(values: Array | None, place: int) -> float | None:
    return None if values is None or values[place] != values[place] else float(values[place])


def _count(value: float) -> int | None:
    return None if value != value else int(value)


def first_summary(sheet: Sheet) -> str:
    """The summary of the README's layout; raw cosines are marked."""
    summary: dict[str, Any] = {
        "model_name": sheet.captioner,
        "decoder_name": sheet.decoder,
        "total_videos": len(sheet.status),
        "successful_evaluations": _successful(sheet),
        "metrics": {name: statistics(sheet.columns[column], keys, DIGITS) for name, (column, keys) in SUMMARY.items()},
    }
    return f"{to_json(summary if sheet.scale == 'unit' else {**summary, 'scale': sheet.scale})}\n"


def todays_summary(sheet: Sheet) -> str:
    """The summary of the current layout; samples without a prediction are not counted."""
    total, successful = len(_predicted(sheet)), _successful(sheet)
    keys = ("mean", "std", "min", "max")
    stats = {name: statistics(values, keys, TODAYS_DIGITS) for name, values in sheet.columns.items()}
    summary = {
        "embedding_model_name": sheet.decoder,
        "model_name": sheet.captioner,
        "total_evaluations": total,
        "successful_evaluations": successful,
        "error_rate": (total - successful) / total if total else 0.0,
        "coarse_grained_stats": stats["coarse_similarity"],
        "timestamp": sheet.completed,
    }
    if sheet.columns["fine_f1"] is not None:
        summary["fine_grained_stats"] = {key: stats[f"fine_{key}"] for key in ("precision", "recall", "f1")}
        summary["hybrid_stats"] = {"hm_cf": stats["hm_cf"]}
    return f"{to_json(summary if sheet.scale == 'raw' else {**summary, 'scale': sheet.scale})}\n"


def _successful(sheet: Sheet) -> int:
    return sum(text in ("scored", "empty") for text in sheet.status)


def statistics(values: Array | None, wanted: Sequence[str], digits: int) -> dict[str, float | None]:
    """Statistics of the scored samples, rounded, with the population standard deviation; None without samples."""
    import numpy as np

    told: dict[str, Callable[[Array], Any]] = {"mean": np.mean, "std": np.std, "min": np.min, "max": np.max}
    known = values[~np.isnan(values)].astype(np.float64) if values is not None else np.empty(0)
    return {key: round(float(told[key](known)), digits) if len(known) else None for key in wanted}

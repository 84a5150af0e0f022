"""The main metric and the main per-sample score of a setting, by the names that it has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from testbed.entities import Evaluation
from testbed.errors import StoreError

if TYPE_CHECKING:
    from testbed.db.store import Store

# Those of questions that are answered in text: of each benchmark's report its main one, and accuracy last.
ANSWERS = (
    *("circular", "both_right", "mean_over_sources", "mean_over_cycles", "total", "f1", "average", "score_strict"),
    *("score", "anls", "accuracy"),
)
# The main metric, and the main score, is the first of these that a setting has.
HEADLINES = (
    "top1",
    "mean_average_precision",
    "image_retrieval_recall@5",
    "image_retrieval_recall@1",
    "acc",
    *ANSWERS,
    "hm_cf",
    "coarse_similarity",
    "clip_score",
    "CIDEr",
    "Bleu_4",  # where only fractions count, as in --grid
    "coverage",
)
# The main score among those of 0 and 1: whether a sample is right.
RIGHT_OR_WRONG = ("top1", "acc", "text_retrieval_recall@5", "text_retrieval_recall@1", "score")
RECALL = "_recall@"

_SIMILARITIES = ("coarse_similarity", "fine_precision", "fine_recall", "fine_f1", "hm_cf")
_LARGER = {"top1", "top5", "acc", "image_acc", "text_acc", "clip_score", "ref_clip_score"}
_LARGER |= {*ANSWERS, "rule_score"}
_LARGER |= {"Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "METEOR", "ROUGE_L", "CIDEr", "SPICE"}
_LARGER |= {f"{name}{scale}" for name in _SIMILARITIES for scale in ("", "_raw")}
_SHOWN = 12  # names in a message


def larger_is_better(score: str) -> bool | None:
    """Whether a larger score is better; None for a score that testbed does not know."""
    if score in _LARGER or RECALL in score:
        return True
    return False if score == "nll" else None


def main_metric(names: Collection[str]) -> str | None:
    """The main one of a setting's metrics or scores; None if it has none of the known ones."""
    return _first(HEADLINES, names)


def right_or_wrong(names: Collection[str]) -> str | None:
    """The score among a setting's that says whether a sample is right; None if there is none."""
    return _first(RIGHT_OR_WRONG, names)


def main_score(store: Store, cells: Mapping[str, Iterable[Evaluation]], binary: bool = False) -> str:
    """The main per-sample score of settings.

    Args:
        store: The results store.
        cells: Setting → its evaluations.
        binary: Whether a score of 0 and 1 is needed.

    Raises:
        StoreError: If they have none in common; lists those of each.
    """
    names = {setting: _score_names(store, [each.id for each in on]) for setting, on in cells.items()}
    shared = set.intersection(*names.values())
    found = _first(RIGHT_OR_WRONG if binary else HEADLINES, shared)
    if found is not None:
        return found
    for setting, has in names.items():
        if not has:
            metrics = {metric.name for each in cells[setting] for metric in store.metrics(each.id)}
            raise StoreError(
                f"{setting} has no per-sample scores; its metrics are {_listed(metrics)}; python db.py --grid"
                f" '{setting}' shows one for all models"
            )
    kind = "main per-sample score of 0 and 1" if binary else "main per-sample score"
    listed = "; ".join(f"{setting} has {_listed(each)}" for setting, each in names.items())
    common = "no common" if len(names) > 1 else "no"
    raise StoreError(f"there is {common} {kind}: {listed}; --score chooses one")


def _score_names(store: Store, evaluations: list[int]) -> set[str]:
    return {name for names in store.score_names(evaluations).values() for name in names}


def _first(order: Iterable[str], names: Collection[str]) -> str | None:
    further = sorted((name for name in names if RECALL in name), key=lambda name: (len(name), name))
    if order is RIGHT_OR_WRONG:
        further = [name for name in further if name.startswith("text_")]
    return next((name for name in (*order, *further) if name in names), None)


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(shown)}{more}" if shown else "none"

"""Details of a sample in one evaluation: retrieved items, comparisons of captions, replies of judges."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.errors import TestbedError
from testbed.metrics.scorers.retrieval import flat_captions
from testbed.stored_results.evaluated import SettingSamples, ShownEvaluation
from testbed.tasks.caption_clip_score import CaptionClipScore
from testbed.tasks.caption_similarity import CaptionSimilarity
from testbed.tasks.captioning import CaptioningOptions
from testbed.tasks.judged_answers import JudgedAnswers
from testbed.tasks.parts.generation import texts_and_status
from testbed.tasks.retrieval import Retrieval
from testbed.tasks.selection import CaptionSelection
from testbed.tasks.task_base import get_task, options_of

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.registry.catalog import Catalog


TOP = 5  # items retrieved
_KEPT = 2  # evaluations with embeddings in memory
_KINDS: dict[type[Any], str] = {
    Retrieval: "retrieval",
    CaptionSelection: "selection",
    JudgedAnswers: "judged",
    CaptionSimilarity: "references",
    CaptionClipScore: "references",
}


class Details:
    """Details of evaluations on registered settings."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self.store = store
        self.catalog = catalog
        self._kept: OrderedDict[int, Callable[[int], Any]] = OrderedDict()

    def kind(self, samples: SettingSamples, shown: ShownEvaluation) -> str | None:
        """The kind of details: a value of `_KINDS`, or None."""
        setting = self.catalog.find_eval_setting(samples.name)
        return None if setting is None or not shown.kind else _kind_of(setting)

    def of(self, samples: SettingSamples, shown: ShownEvaluation, positions: Sequence[int]) -> list[Any]:
        """The details of some samples, in order; a text for a problem, None for a sample that was not evaluated."""
        setting = self.catalog.find_eval_setting(samples.name)
        assert setting is not None
        own = samples.positions_in(shown, positions)
        try:
            tell = self._lookup(samples, shown, setting)
            return [None if place is None else tell(place) for place in own]
        except TestbedError as error:
            return [str(error)] * len(positions)

    def _lookup(self, samples: SettingSamples, shown: ShownEvaluation, setting: EvalSetting) -> Callable[[int], Any]:
        if shown.id not in self._kept:
            makers = {"retrieval": _retrieval, "selection": _selection, "judged": _judged, "references": _references}
            self._kept[shown.id] = makers[str(_kind_of(setting))](samples, shown, setting)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(shown.id)
        return self._kept[shown.id]


def _kind_of(setting: EvalSetting) -> str | None:
    try:
        return _KINDS.get(type(get_task(setting.task)))
    except TestbedError:
        return None


def _normalized(values: Array) -> Array:
    rows = np.asarray(values, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Array = rows / np.maximum(lengths, 1e-12)
    return unit


def _retrieval(samples: SettingSamples, shown: ShownEvaluation, setting: EvalSetting) -> Callable[[int], Any]:
    """The captions nearest to an image, and for each of its captions the nearest images."""
    values = samples.values_of(shown)
    captions, owners = flat_captions(values.samples, setting.name)
    texts = list(dict.fromkeys(captions))
    place = {text: row for row, text in enumerate(texts)}
    images, embedded = _normalized(values.outputs), _normalized(values.texts(texts))
    same = shown.evaluation.dataset_id == samples.dataset
    owned: dict[int, list[str]] = {}
    for caption, owner in zip(captions, owners.tolist(), strict=True):
        owned.setdefault(owner, []).append(caption)

    def tell(position: int) -> dict[str, Any]:
        own = owned.get(position, [])
        similar = embedded @ images[position]
        found = [
            {"caption": texts[row], "cosine": _rounded(similar[row]), "right": texts[row] in own}
            for row in _best(similar)
        ]
        return {"captions": found, "images": [_nearest(caption, position) for caption in own]}

    def _nearest(caption: str, position: int) -> dict[str, Any]:
        similar = images @ embedded[place[caption]]
        found = []
        for row in _best(similar):
            at = {"id": values.samples[row].id, "position": row if same else None}
            found.append({**at, "cosine": _rounded(similar[row]), "right": row == position})
        return {"caption": caption, "found": found}

    return tell


def retrieved_in(details: Sequence[Any]) -> set[int]:
    """The positions of the retrieved samples, in details of retrieval."""
    found = (
        image for detail in details if isinstance(detail, dict) for row in detail["images"] for image in row["found"]
    )
    return {image["position"] for image in found if image["position"] is not None}


def _best(similar: Array) -> list[int]:
    known = np.where(np.isfinite(similar), similar, -np.inf)
    return [int(row) for row in np.argsort(-known, kind="stable")[:TOP] if np.isfinite(known[row])]


def _rounded(value: Any) -> float | None:
    number = float(value)
    return round(number, 4) if number - number == 0 else None


def _selection(samples: SettingSamples, shown: ShownEvaluation, setting: EvalSetting) -> Callable[[int], Any]:
    """The cosines of an image with each caption of its instance, and those of the instance's other images."""
    values = samples.values_of(shown)
    groups: dict[str, list[int]] = {}
    for position, info in enumerate(values.samples):
        if info.group is not None:
            groups.setdefault(info.group, []).append(position)
    every = list(dict.fromkeys(caption for info in values.samples for caption in info.target["captions"]))
    embedded = dict(zip(every, _normalized(values.texts(every)), strict=True))
    images = _normalized(values.outputs)

    def tell(position: int) -> dict[str, Any]:
        info = values.samples[position]
        captions = info.target["captions"]
        rows = [
            {
                "id": values.samples[number].id,
                "answer": values.samples[number].target.get("answer"),
                "cosines": [_rounded(images[number] @ embedded[caption]) for caption in captions],
            }
            for number in (groups[info.group] if info.group is not None else [position])
        ]
        return {"captions": captions, "images": rows}

    return tell


def _references(samples: SettingSamples, shown: ShownEvaluation, setting: EvalSetting) -> Callable[[int], Any]:
    """The cosine of a caption and each of its references, as the judge embeds them."""
    values = samples.values_of(shown)
    captions, _ = texts_and_status(values.outputs)
    scored_by_images = isinstance(get_task(setting.task), CaptionClipScore)
    before = options_of(setting, CaptioningOptions).prefix if scored_by_images else ""

    def tell(position: int) -> list[dict[str, Any]]:
        caption, references = captions[position], values.samples[position].target
        if not caption:
            return []
        embedded = _normalized(
            values.texts([before + caption, *(before + reference.strip() for reference in references)])
        )
        cosines = embedded[1:] @ embedded[0]
        pairs = zip(references, cosines, strict=True)
        return [{"reference": text, "cosine": _rounded(cosine)} for text, cosine in pairs]

    return tell


def _judged(samples: SettingSamples, shown: ShownEvaluation, setting: EvalSetting) -> Callable[[int], Any]:
    """The questions to judges about an answer, and their replies."""
    task = get_task(setting.task)
    assert isinstance(task, JudgedAnswers)
    values = samples.values_of(shown)
    said: dict[int, list[dict[str, Any]]] = {}
    for each in task.asked_judges(values, setting, shown.evaluation.model):
        found = {
            "judge": each.judge,
            "reply": _reply(each.reply),
            "second": _reply(each.second),
            "score": None if each.verdict is None or each.verdict.score != each.verdict.score else each.verdict.score,
        }
        said.setdefault(each.place, []).append(found)
    return lambda position: said.get(position, [])


def _reply(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else str(value.get("text") or value.get("finish_reason"))

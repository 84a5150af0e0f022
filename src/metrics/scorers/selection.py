"""Scores and metrics of image-caption selection (Winoground, SugarCrepe), from embeddings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, SampleInfo, Score
from testbed.errors import DataError
from testbed.metric_specs import MAIN, rate
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.metrics.selection import Selection, instance_similarities, selection_correct

SCORER = "selection@1"
TEXT_ACC, IMAGE_ACC = (rate(name, zero_one=True) for name in ("text_acc", "image_acc"))
ACC = rate("acc", headline=MAIN, zero_one=True)


@dataclass(frozen=True)
class Instance:
    """Images and captions to match.

    Attributes:
        positions: The images, as positions in the list of samples.
        captions: The captions.
        answers: For each image the index of its right caption; None if it has none.
    """

    positions: tuple[int, ...]
    captions: tuple[str, ...]
    answers: tuple[int | None, ...]


def find_instances(samples: Sequence[SampleInfo], what: str) -> list[Instance]:
    """The instances, in the order of their first images.

    Args:
        samples: The images. A target is ``{"captions": [str, …], "answer": int or None}``; images of a group
            belong to one instance and have the same captions. An image without a group is a separate instance.
        what: The setting, for messages.

    Raises:
        DataError: If a target is invalid, or an instance has no right caption or several lists of captions.
    """
    groups: dict[object, list[int]] = defaultdict(list)
    for position, sample in enumerate(samples):
        _check_target(sample, what)
        groups[position if sample.group is None else sample.group].append(position)
    instances = []
    for positions in groups.values():
        first = samples[positions[0]]
        targets = [samples[position].target for position in positions]
        if any(target["captions"] != first.target["captions"] for target in targets):
            raise DataError(
                f"{what}: the images of the instance {first.group!r} have different captions; all of them need the"
                " same, in the same order"
            )
        if all(target["answer"] is None for target in targets):
            raise DataError(
                f"{what}: no image of the instance {first.group or first.id!r} has a right caption; one needs an answer"
            )
        answers = tuple(target["answer"] for target in targets)
        instances.append(Instance(tuple(positions), tuple(first.target["captions"]), answers))
    return instances


def _check_target(sample: SampleInfo, what: str) -> None:
    target = sample.target
    captions = target.get("captions") if isinstance(target, dict) else None
    if not isinstance(captions, list) or not captions or not all(isinstance(caption, str) for caption in captions):
        raise DataError(
            f"{what}: {{'captions': [text, …], 'answer': index or None}} is expected as the target of {sample.id}, got"
            f" {target!r}"
        )
    answer = target.get("answer")
    if answer is not None and (type(answer) is not int or not 0 <= answer < len(captions)):
        raise DataError(
            f"{what}: the answer of {sample.id} is {answer!r}; an index from 0 to {len(captions) - 1}, or None, is"
            " expected"
        )


def score_selection(images: Array, texts: Array, instances: Sequence[Instance]) -> tuple[list[Score], list[Metric]]:
    """Computes text, image and group accuracy over instances, with strict comparison.

    If an instance has one image, as in SugarCrepe, no images compete: image_acc is 1 (except for unreadable images) and
    acc equals text_acc. These are reported for compatibility with CLIP benchmark.

    Args:
        images: Float array [n, D]; a sample that could not be read is NaN, and its instance wrong.
        texts: Float array [M, D]: the captions of all instances in a row.
        instances: The instances, of any shapes.

    Returns:
        The scores and metrics text_acc, image_acc and acc (both at once: the group score of Winoground). The n of a
        metric is the number of instances; the score of an instance is stored at its first image; the others have NaN.

    Raises:
        ValueError: If the numbers of texts and captions differ.
    """
    correct = _correct(images, texts, instances)
    first = np.asarray([instance.positions[0] for instance in instances], dtype=np.int64)
    scores, metrics = [], []
    for spec, right in ((TEXT_ACC, correct.text), (IMAGE_ACC, correct.image), (ACC, correct.group)):
        value, stderr = mean_and_stderr(right)
        metrics.append(spec.metric(value, len(right), stderr, scorer=SCORER))
        spread = np.full(len(images), np.nan, dtype=np.float32)
        spread[first] = right
        scores.append(spec.score(spread, SCORER))
    return scores, metrics


def _correct(images: Array, texts: Array, instances: Sequence[Instance]) -> Selection:
    """Marks the instances that are right, computed for one shape at a time."""
    sizes = [len(instance.captions) for instance in instances]
    if sum(sizes) != len(texts):
        raise ValueError(f"expected the embeddings of {sum(sizes)} captions, got {len(texts)}")
    starts = np.cumsum([0, *sizes])
    shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, instance in enumerate(instances):
        shapes[len(instance.positions), sizes[index]].append(index)
    selection = Selection(*(np.zeros(len(instances), dtype=bool) for _ in range(3)))
    for (_, captions), places in shapes.items():
        positions = np.asarray([instances[index].positions for index in places])
        answers = [[-1 if answer is None else answer for answer in instances[index].answers] for index in places]
        rows = starts[places][:, None] + np.arange(captions)
        correct = selection_correct(instance_similarities(images[positions], texts[rows]), np.asarray(answers))
        for column, values in zip(selection, correct, strict=True):
            column[places] = values
    return selection

"""Prompts: templates, spelling of class names, averaging, and truncation."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from testbed.extensions.explain.axis import Axis, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.texts import LOGITS, MAXIMUM, RAW, Texts, stored_texts

ONE = ("a photo of a {c}.", "a photo of a {c}", "a photo of the {c}.", "an image of a {c}.", "{c}")
LENGTHS = (8, 16, 24, 32, 64)

Found = Iterator[tuple[str, Callable[[Texts], Texts]]]


def _template_sets(cell: EvaluatedCell) -> dict[str, tuple[str, ...]]:
    """Known sets of templates by name."""
    import open_clip

    sets: dict[str, tuple[str, ...]] = {f"one prompt, {text!r}": (text,) for text in ONE}
    for name, functions in (
        ("CLIP's 80 for ImageNet", open_clip.OPENAI_IMAGENET_TEMPLATES),
        ("CLIP's best 7 for ImageNet", open_clip.SIMPLE_IMAGENET_TEMPLATES),
    ):
        sets[name] = tuple(function("{c}") for function in functions)
    return sets


def _templates(cell: EvaluatedCell) -> Found:
    own = stored_texts(cell)
    sets = _template_sets(cell)
    if not own.by_class and len(own.templates) > 1:
        sets["only the first prompt"] = (str(own.templates[0]),)
    seen = {own.templates}
    for name, templates in sets.items():
        if templates not in seen:
            seen.add(templates)
            yield name, lambda texts, templates=templates: replace(texts, templates=templates)  # type: ignore[misc]


def _names(cell: EvaluatedCell) -> Found:
    own = stored_texts(cell)
    if own.by_class:
        return
    lists: dict[str, Sequence[str]] = {"the data set's own": cell.dataset.class_names or ()}
    if len(own.class_names) == 1000:
        import open_clip

        lists["CLIP's for ImageNet"] = open_clip.IMAGENET_CLASSNAMES
    changed: dict[str, Callable[[str], str]] = {
        "underscores for spaces": lambda name: name.replace(" ", "_"),
        "spaces for underscores": lambda name: name.replace("_", " "),
        "only the first of several names": lambda name: name.split(",")[0].strip(),
        "without what is in brackets": lambda name: name.split("(")[0].strip() or name,
        "hyphens as spaces": lambda name: name.replace("-", " "),
    }
    lists |= {title: [change(name) for name in own.class_names] for title, change in changed.items()}
    seen = {own.class_names}
    for title, names in lists.items():
        if len(names) == len(own.class_names) and tuple(names) not in seen:
            seen.add(tuple(names))
            yield title, partial(replace, class_names=tuple(names))


def _without_punctuation(text: str) -> str:
    return text.translate(str.maketrans("", "", string.punctuation))


def _spelling(cell: EvaluatedCell) -> Found:
    own = stored_texts(cell).prompts()
    for name, change in (
        ("lower case", str.lower),
        ("no punctuation", _without_punctuation),
        ("no full stop at the end", lambda text: text.rstrip(".")),
        ("a full stop at the end", lambda text: text.rstrip(".") + "."),
        ("a capital first letter", lambda text: text[:1].upper() + text[1:]),
    ):
        if [[change(text) for text in texts] for texts in own] != own:
            yield name, lambda texts, change=change: texts.with_spelling(change)  # type: ignore[misc]


def _averaging(cell: EvaluatedCell) -> Found:
    own = stored_texts(cell)
    several = own.by_class or len(own.templates) > 1
    yield "prompts averaged before they are normalized", partial(replace, average=RAW)
    if several:
        yield "logits averaged (class embeddings not normalized)", partial(replace, average=LOGITS)
        yield "the best prompt of each class", partial(replace, average=MAXIMUM)


def _length(cell: EvaluatedCell) -> Found:
    stored_texts(cell)
    for length in LENGTHS:
        yield f"texts cut after {length} tokens", partial(replace, length=length)


add_axis(Axis("templates", Stage.TEXTS, _templates))
add_axis(Axis("class names", Stage.TEXTS, _names))
add_axis(Axis("spelling of prompts", Stage.TEXTS, _spelling))
add_axis(Axis("averaging of prompts", Stage.TEXTS, _averaging))
add_axis(Axis("context length", Stage.TEXTS, _length))

"""Prompts in a user's file, such as CuPL's sentences for each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from testbed.data.language.prompts import given_templates
from testbed.extensions.explain.axis import REPLACES, Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.texts import PROMPT_FILE, Texts, stored_texts
from testbed.inputs import active


def _variants(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Texts], Texts]]]:
    own, path = stored_texts(cell), active().templates
    if path is None:
        raise NotApplicableError("no file was given (--prompts FILE)")
    name = Path(path).name
    found = given_templates(cell.setting.name, own.class_names)
    if found is None:
        raise NotApplicableError(f"{name} has no prompts for any class, such as {own.class_names[0]!r}")
    if isinstance(found, dict):
        missing = [text for text in own.class_names if not found.get(text)]
        if missing:
            raise NotApplicableError(f"{name} has no prompts for {len(missing):,} classes, such as {missing[0]!r}")
        yield name, partial(replace, templates=tuple(tuple(found[text]) for text in own.class_names))
    else:
        yield name, partial(replace, templates=tuple(found))


add_axis(Axis(PROMPT_FILE, Stage.TEXTS, _variants, order=REPLACES))

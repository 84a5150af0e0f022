"""The options of ``eval.py`` for judging captions: ``--scorers A`` turns each captioning setting X into ``X@A``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from testbed.console.options import ManyWords
from testbed.errors import DefinitionError

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog

F = TypeVar("F", bound=Callable[..., Any])

SIMILARITY = "similarity"
_OPTIONS = (
    click.option(
        "--scorers",
        cls=ManyWords,
        metavar="NAME",
        help="Captioning settings: the judges, which score the captions; names, patterns, collections (decoders).",
    ),
    click.option(
        "--scoring",
        type=click.Choice([SIMILARITY, "clip_score"]),
        default=SIMILARITY,
        show_default=True,
        help="What judges compare captions with: references or images.",
    ),
)


def scorer_options(function: F) -> F:
    """The options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def as_scored(catalog: Catalog, settings: Sequence[str], scorers: Sequence[str], scoring: str) -> list[str]:
    """The names of settings, with each captioning setting expanded to one per scorer.

    Args:
        catalog: Where names are looked up.
        settings: Canonical names.
        scorers: As the user wrote them.
        scoring: One of the choices.

    Raises:
        DefinitionError: If scorers are given and a setting is not a captioning setting.
    """
    from testbed.registry.references import SettingReference
    from testbed.registry.select import select

    if not scorers:
        return list(settings)
    chosen = select(catalog.models, catalog.model_collections, scorers)
    names: dict[str, None] = {}
    for setting in settings:
        if SettingReference.parse(setting).judge and catalog.get_eval_setting(setting).scoring is not None:
            names.setdefault(setting)
            continue
        if catalog.get_eval_setting(setting).task != "captioning":
            raise DefinitionError(_why_not(catalog, setting))
        way = "" if scoring == SIMILARITY else f".{scoring}"
        for scorer in chosen:
            name = catalog.eval_settings.canonical(f"{setting}{way}@{scorer}")
            assert name is not None
            names.setdefault(name)
    return list(names)


def _why_not(catalog: Catalog, setting: str) -> str:
    """The message for a setting that is not a captioning setting."""
    captioning = f"{setting}.captioning"
    known = catalog.contains_eval_setting(captioning)
    remedy = f"use {captioning}" if known else "use clip-cc-bench or mscoco_captions.captioning, for example"
    task = catalog.get_eval_setting(setting).task
    return f"--scorers requires captioning settings; {setting} is for {task}; {remedy}"

"""Judging captions: ``--scorers A`` turns each captioning setting X into ``X@A``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.cli.options.run import SIMILARITY
from testbed.errors import DefinitionError

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog


def as_scored(catalog: Catalog, settings: Sequence[str], scorers: Sequence[str], scoring: str) -> list[str]:
    """The names of settings, with each captioning setting expanded to one per scorer.

    Args:
        catalog: Catalog to look names up in.
        settings: Canonical names.
        scorers: Names as the user wrote them.
        scoring: One of the choices of ``--scoring``.

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
    """Returns the message for a setting that is not a captioning setting."""
    captioning = f"{setting}.captioning"
    known = catalog.contains_eval_setting(captioning)
    remedy = f"use {captioning}" if known else "use clip-cc-bench or mscoco_captions.captioning, for example"
    task = catalog.get_eval_setting(setting).task
    return f"--scorers requires captioning settings; {setting} is for {task}; {remedy}"

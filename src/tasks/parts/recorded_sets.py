"""Data sets of recorded answers: a file of VLMEvalKit is called ``MODEL_SET.xlsx``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.tables.answers import is_prediction_table
from testbed.data.tables.known import has_table, known_tables
from testbed.data.tables.scores import is_table_of_scores
from testbed.errors import TestbedError, UnsupportedError
from testbed.eval_settings.base.questions import BENCHMARKS
from testbed.registry.references import SettingReference

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition
    from testbed.registry.catalog import Catalog

_WORDS = (".vlmevalkit", ".as_pandas")  # after the name of a set, in files that testbed has exported
# VLMEvalKit scores these by the tables that have the answers, which have other names.
_WITH_ANSWERS = {
    "MMBench_TEST_EN": "MMBench",
    "MMBench_TEST_CN": "MMBench_CN",
    "MMBench_TEST_EN_V11": "MMBench_V11",
    "MMBench_TEST_CN_V11": "MMBench_CN_V11",
}


def set_in_name(path: Path) -> str | None:
    """The set that the name of an answer file contains; None if it contains no known one.

    Known are VLMEvalKit's sets, and the tables in its folder.
    """
    _, *parts = _plain(path.stem).split("_")
    names = ("_".join(parts[index:]) for index in range(len(parts)))
    return next((name for name in names if _is_known(name)), None)


def require_own_set(model: ModelDefinition, setting: EvalSetting) -> None:
    """Checks that recorded answers are answers to a setting, as far as the name of their file shows.

    The questions in the file are compared when it is read. A table that has no name, ``tsv:/path/to/it.tsv``,
    and other settings take any file.

    Raises:
        UnsupportedError: If they belong to another set, or are VLMEvalKit's scores of answers.
    """
    path = recorded_file(model)
    if path is None:
        return
    if is_table_of_scores(path):
        raise UnsupportedError(f"{path.name} has VLMEvalKit's scores of answers; the answers are in the file beside it")
    said, sets = set_in_name(path), _sets_of(setting)
    known = [each for each in sets if _is_known(each)]
    if said is None or said in sets or _WITH_ANSWERS.get(said) in sets or not known or _has_no_name(setting):
        return
    raise UnsupportedError(
        f"{path.name} has answers to {said}, not to {known[0]}; if they are answers to that, call the file"
        f" MODEL_{known[0]}{path.suffix}"
    )


def pairs_of(catalog: Catalog, models: Sequence[str], settings: Sequence[str]) -> list[tuple[str, str]]:
    """Each model on each setting; recorded answers on the settings of their set alone, if there are such settings."""
    own = {setting: _sets_by_name(catalog, setting) for setting in settings}
    found: list[tuple[str, str]] = []
    for model in models:
        said = _said(catalog, model)
        names = {said, _WITH_ANSWERS.get(said)} if said is not None else set()
        meant = [setting for setting in settings if names & own[setting]]
        found += [(model, each) for each in meant or settings]
    return found


def recorded_file(model: Any) -> Path | None:
    """The file of VLMEvalKit's whose answers a model gives; None for other models."""
    path = getattr(model, "recorded", None)
    return path if isinstance(path, Path) and path.is_file() and is_prediction_table(path) else None


def _said(catalog: Catalog, model: str) -> str | None:
    try:
        path = recorded_file(catalog.get_model(model))
    except (TestbedError, OSError):  # whoever runs it says what is wrong
        return None
    return None if path is None else set_in_name(path)


def _sets_by_name(catalog: Catalog, setting: str) -> set[str]:
    try:
        return set(_sets_of(catalog.get_eval_setting(setting)))
    except (TestbedError, OSError):
        return set()


def _sets_of(setting: EvalSetting) -> list[str]:
    """Returns the possible names of a setting's data set."""
    dataset = setting.dataset
    names = [setting.task_options.get("data_set"), getattr(dataset, "data_set", None), getattr(dataset, "name", None)]
    texts = [each for each in (*names, SettingReference.parse(setting.name).name) if isinstance(each, str) and each]
    return list(dict.fromkeys(Path(_plain(text)).stem if text.endswith(".tsv") else _plain(text) for text in texts))


def _has_no_name(setting: EvalSetting) -> bool:
    return str(getattr(setting.dataset, "name", "")).endswith(".tsv")


def _plain(name: str) -> str:
    while name.endswith(_WORDS):
        name = name.rpartition(".")[0]
    return name


def _is_known(name: str) -> bool:
    return name in BENCHMARKS or name in known_tables() or has_table(name)

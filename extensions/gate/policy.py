"""The policy of a gate: a YAML file with the accepted losses of a new model."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.entities import Better
from testbed.errors import DataError
from testbed.yamltext import YamlError, from_yaml

MUST, SHOULD = "must", "should"
ALPHA = 0.05
_OF_FILE = ("alpha", "margin", "parameters", "rules")
_OF_RULE = ("setting", "margin", "tier", "score", "by", "better")
_EXAMPLE = "for example:\nmargin: 0.5\nrules:\n  - setting: digits"


@dataclass(frozen=True)
class Rule:
    """The accepted loss on some settings.

    Attributes:
        setting: Its name, or a pattern.
        margin: The accepted loss: in points for scores in percent, else in the unit of the score.
        tier: ``must``: the gate depends on it; ``should``: it is only reported.
        score: The score of each sample; None: the main one of the setting.
        by: Groups of samples to judge separately, as for ``testbed groups --by``; None: all together.
        better: Whether ``higher`` or ``lower`` scores are better; None: the score's declaration.
    """

    setting: str
    margin: float
    tier: str = MUST
    score: str | None = None
    by: str | None = None
    better: Better | None = None


@dataclass(frozen=True)
class Policy:
    """The requirements of a gate.

    Attributes:
        rules: At least one.
        alpha: The probability that a claim is wrong.
        parameters: Maximum number of parameters, as a multiple of the baseline's; None for any number.
    """

    rules: tuple[Rule, ...]
    alpha: float = ALPHA
    parameters: float | None = None


def read_policy(path: Path) -> Policy:
    """Reads a policy.

    Raises:
        DataError: If it cannot be read, or has unknown contents; the message says what is expected.
    """
    try:
        given = from_yaml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, YamlError) as error:
        raise DataError(f"{path} cannot be read as YAML: {' '.join(str(error).split())}") from error
    file = _mapping(given, f"{path}", _OF_FILE)
    rules = file.get("rules")
    if not isinstance(rules, list) or not rules:
        raise DataError(f"{path}: expected rules, a list of settings with margins; {_EXAMPLE}")
    usual = file.get("margin")
    return Policy(
        rules=tuple(_rule(rule, usual, f"{path}, rule {number}") for number, rule in enumerate(rules, start=1)),
        alpha=_number(file.get("alpha", ALPHA), f"{path}: alpha", above=0, below=0.5),
        parameters=None if file.get("parameters") is None else _number(file["parameters"], f"{path}: parameters", 0),
    )


def _rule(given: Any, margin: Any, where: str) -> Rule:
    rule = _mapping({"setting": given} if isinstance(given, str) else given, where, _OF_RULE)
    setting, own = rule.get("setting"), rule.get("margin", margin)
    if not isinstance(setting, str) or not setting:
        raise DataError(f"{where}: expected a setting or a pattern, got {setting!r}")
    if own is None:
        raise DataError(
            f"{where}: expected a margin, the loss on {setting} that is accepted, here or for the whole file"
        )
    return Rule(
        setting=setting,
        margin=_number(own, f"{where}: margin"),
        tier=_one_of(rule.get("tier", MUST), (MUST, SHOULD), f"{where}: tier"),
        score=_text(rule.get("score"), f"{where}: score"),
        by=_text(rule.get("by"), f"{where}: by"),
        better=None if rule.get("better") is None else _one_of(rule["better"], ("higher", "lower"), f"{where}: better"),
    )


def _mapping(given: Any, where: str, known: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise DataError(f"{where}: expected {', '.join(known)}, got {given!r:.80}; {_EXAMPLE}")
    for key in given:
        if key not in known:
            raise DataError(f"{where}: unknown key {key!r}; expected: {', '.join(known)}")
    return given


def _number(given: Any, what: str, above: float | None = None, below: float = math.inf) -> float:
    least = 0 if above is None else above
    good = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
    if not good or given < least or (above is not None and given == above) or given >= below:
        limits = f"above {above:g}" if above is not None else "of 0 or more"
        limits += f" and below {below:g}" if math.isfinite(below) else ""
        hint = "; write it without %: margins are in points, alpha is a fraction" if "%" in str(given) else ""
        raise DataError(f"{what}: expected a number {limits}, got {given!r:.40}{hint}")
    return float(given)


def _one_of(given: Any, known: Collection[str], what: str) -> Any:
    if given not in known:
        raise DataError(f"{what}: expected {' or '.join(known)}, got {given!r:.40}")
    return given


def _text(given: Any, what: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise DataError(f"{what}: expected a name, got {given!r:.40}")
    return given

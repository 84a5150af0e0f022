"""Reports of benchmarks, which `add_report` adds by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from testbed.answers.kinds import Kinds
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import Metric

Compute = Callable[[AnsweredQuestions, str], list[Metric]]
Computes = TypeVar("Computes", bound=Compute)


@dataclass(frozen=True)
class Report:
    """The metrics of a benchmark.

    Attributes:
        compute: From answered questions and the name of the scorer to the metrics.
        primary: The metric that a table shows, of all rows.
        published: The names that VLMEvalKit gives to the metrics, where they differ.
    """

    compute: Compute
    primary: str
    published: Mapping[str, str] = field(default_factory=dict)


REPORTS: Kinds[Report] = Kinds("report")


def add_report(name: str, primary: str, published: Mapping[str, str] | None = None) -> Callable[[Computes], Computes]:
    """Adds what the decorated function computes as a report, which settings name by the task option ``report``.

    Args:
        primary: The metric that a table shows, of all rows.
        published: The names that VLMEvalKit gives to the metrics, where they differ.

    Raises:
        DefinitionError: If one of testbed's own reports has this name.
    """

    def add(compute: Computes) -> Computes:
        REPORTS.add(name, Report(compute, primary, published or {}), compute)
        return compute

    return add

"""Benchmarks in VLMEvalKit's form: the class makes the questions, and its ``evaluate`` scores the stored answers."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.answers.published.choice import FAILURE
from testbed.entities import Metric, Score
from testbed.errors import DefinitionError
from testbed.eval_settings.base.vlmeval import VLMEvalBenchmark
from testbed.graph.nodes import Built
from testbed.metrics.scorers.caption_status import STATUS, shares
from testbed.metrics.scorers.reported import flat, reported_metrics
from testbed.models.base.capability import GenerationConfig
from testbed.paths import own_temporary
from testbed.standins.vlmevalkit.smp.file import dump, typed
from testbed.tasks.captioning import require_some
from testbed.tasks.parts.generation import TextTask, refusal_of, texts_and_status
from testbed.tasks.task_base import as_options, options_of

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

SCORER = "vlmeval_benchmark@2"
RULES_ALONE = {"model": "exact_matching"}

log = logging.getLogger("testbed")


@dataclass(frozen=True)
class BenchmarkOptions:
    """The task options of a benchmark's class.

    Attributes:
        judge: What ``evaluate`` is given.
        generation: Fields of `GenerationConfig`. They come before what a model says of its own generation.
    """

    judge: Mapping[str, Any] = field(default_factory=RULES_ALONE.copy)
    generation: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        as_options(GenerationConfig, self.generation, "the task option 'generation'")


class VLMEvalBenchmarkTask(TextTask):
    """A model answers the questions of a benchmark's class, which scores the answers."""

    name = "vlmeval_benchmark"
    options = BenchmarkOptions
    scorer = SCORER

    def build(self, graph: Graph) -> Built:
        """The model's answers to the class's prompts; text is generated as the model says, unless the setting does."""
        benchmark = _setting(graph.setting).benchmark
        own = graph.model.generation or {}
        config = GenerationConfig(**{**own, **options_of(graph.setting, BenchmarkOptions).generation})
        return Built(graph.row_answers(benchmark.prompt, config, benchmark.data_set, benchmark.forced))

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The class with all its code, and what ``evaluate`` is given."""
        return {**super().view_spec(setting), "benchmark": _setting(setting).benchmark, "judge": _judge(setting)}

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Returns what the class's ``evaluate`` reports; see `testbed.metrics.scorers.reported`.

        It gets the questions that have an answer, and VLMEvalKit's message of a failure in place of a refusal; what it
        prints goes to the log.

        Returns:
            The score ``status`` (0 an answer, 1 none, 2 a blank one or a refusal, 3 an error); the metrics of the
            report, its main one as ``score``, and ``coverage`` and ``empty``.

        Raises:
            DataError: If no sample has an answer, or the report has no numbers.
        """
        made = _setting(setting).benchmark.made
        texts, status = texts_and_status(values.outputs)
        require_some(status, values, setting)
        answered = [place for place, text in enumerate(texts) if text is not None]
        rows = [
            {"index": values.samples[place].id, **values.samples[place].target, **_answer(values.outputs[place])}
            for place in answered
        ]
        name = f"{'model' if model is None else model.name}_{made.dataset_name}"
        printed = io.StringIO()
        with own_temporary() as folder, contextlib.redirect_stdout(printed):
            path = write_answers(rows, Path(folder), re.sub(r"[^\w.+-]+", "_", name))
            report = made.evaluate(str(path), **_judge(setting))
            primary = _primary(made, report)
        if printed.getvalue().strip():
            log.debug("%s prints: %s", setting.name, printed.getvalue().strip())
        metrics = reported_metrics(report, len(rows), SCORER, primary)
        return [STATUS.score(status, SCORER)], [*metrics, *shares(status, SCORER)]


def write_answers(rows: list[dict[str, str]], folder: Path, name: str) -> Path:
    """Writes a table of answers as VLMEvalKit does: a workbook, whatever the texts are.

    Args:
        rows: The columns of each row.
        folder: Where to.
        name: The file's name, without its ending.

    Returns:
        The file.

    Raises:
        MissingExtraError: If openpyxl is not installed: classes expect a workbook, and write others beside it.
    """
    import pandas as pd

    path = folder / f"{name}.xlsx"
    dump(typed(pd.DataFrame(rows, dtype=object)), path)
    return path


def _answer(output: Mapping[str, Any]) -> dict[str, str]:
    """The columns of an answer."""
    records = (output.get("extra") or {}).get("extra_records")
    told = {} if records is None else {"extra_records": json.dumps(records, ensure_ascii=False)}
    return {"prediction": FAILURE if refusal_of(output) is not None else output["text"], **told}


def _setting(setting: EvalSetting) -> VLMEvalBenchmark:
    if not isinstance(setting, VLMEvalBenchmark):
        raise DefinitionError(f"{setting.name}: the task vlmeval_benchmark is that of VLMEvalBenchmark(name, cls)")
    return setting


def _judge(setting: EvalSetting) -> dict[str, Any]:
    return dict(options_of(setting, BenchmarkOptions).judge)


def _primary(made: Any, report: Any) -> dict[str, Any]:
    """The main metrics, where the class says which."""
    choose = getattr(made, "report_primary_metric", None)
    return dict(choose(flat(report)) or {}) if callable(choose) else {}


task = VLMEvalBenchmarkTask()

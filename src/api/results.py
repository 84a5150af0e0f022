"""Results of a store as pandas frames, and as a table in a notebook."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from testbed import extending
from testbed.console.options import as_stored
from testbed.console.output import table
from testbed.console.unread_answers import unread_lines
from testbed.db.store import Store
from testbed.entities import ELSEWHERE, OVERALL, REMARKS, Evaluation, Result
from testbed.errors import DataError, StoreError
from testbed.execution.report import Outcome
from testbed.formatting import cell_value
from testbed.metric_specs import MetricSpec, main_metric, spec_of

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from testbed.execution.report import Report
    from testbed.runner.until import UntilOutcome as Looks

Words = str | Iterable[str] | None  # names and patterns; None means all

ROWS, HEADS = 40, 40  # models and settings in a notebook's table
COMPUTED = "complete"
DONE = (COMPUTED, "stored", "derived", "scored")
COLUMNS = (
    *("model", "eval_setting", "metric", "slice", "value", "low", "high", "stderr", "n", "unit"),
    *("better", "status", "reason", "evaluation"),
)


def results(
    db: str | None = None,
    models: Words = None,
    eval_settings: Words = None,
) -> Results:
    """Returns stored results.

    Args:
        db: The store: a file or a database URL. Default: ``$TESTBED_DB``, else ``testbed.db``.
        models: Names or patterns; None means all.
        eval_settings: Names or patterns; None means all except parts of others, such as ``val.random-500``.

    Raises:
        StoreError: If there is no store.
        UnknownNameError: If a name or pattern matches nothing.
    """
    from testbed.db.parts.names import matching_names

    db = None if db is None else str(db)
    with Store.open(db) as store:
        found, own = (
            store.results.find(),
            {own_name.reference: own_name.name for own_name in reversed(store.names.own())},
        )
    asked = [own.get(as_stored(word), word) for word in words(models)]
    chosen = matching_names("model", asked, {result.model for result in found})
    wanted = matching_names("eval setting", words(eval_settings), {result.eval_setting for result in found})
    return Results(db, [result for result in found if result.model in chosen and result.eval_setting in wanted])


def _ordered(given: Words, known: Iterable[str], wanted: set[str]) -> list[str]:
    return [*dict.fromkeys(word for word in (*words(given), *known) if word in wanted)]


class Results:
    """Results of models on eval settings.

    A notebook shows them as a table of the main metrics. Installed extensions add methods: ``compare``, ``rank``,
    ``gate``, ``curves``, ``plot``, ``selective``, ``estimate``, ``choose_anchors`` and ``estimate_from_anchors`` come
    with testbed, see `testbed.extending`.

    Attributes:
        db: The store.
        rows: One result per metric, slice and cell.
        outcomes: How each cell of a run ended; empty for results that were only loaded.
        preprocessing: One line per image model of a run: how images are resized, cropped and normalized.
        left_out: Lines about what the data sets of a run leave out or miss, by data set and reason.
        remarks: Lines about a run's results that need a look, as `testbed run` prints them: accuracies at chance level,
            outputs that seem to be probabilities or are not finite, unreadable and refused samples, `left_out` …
        said: Those of the remarks that the run itself has reported.
        until: The outcome of a run with ``until`` for each model and setting; else None.
    """

    said: frozenset[str] = frozenset()
    until: pd.DataFrame | None = None

    def __init__(
        self,
        db: str | None,
        found: Sequence[Result],
        outcomes: Sequence[Outcome] = (),
        preprocessing: Sequence[str] = (),
        left_out: Sequence[str] = (),
        remarks: Sequence[str] | None = None,
    ) -> None:
        self.db = db
        self.outcomes = list(outcomes)
        self.preprocessing = list(preprocessing)
        self.left_out = list(left_out)
        self.remarks = list(left_out if remarks is None else remarks)
        self.rows = list(found)

    @classmethod
    def of_run(cls, db: str | None, report: Report) -> Results:
        """The results of a run."""
        from testbed.console.class_lines import (
            lines_of_class_orders,
            lines_of_numbers,
            lines_of_parts,
            lines_of_readings,
        )
        from testbed.console.model_lines import lines_of_models
        from testbed.console.run_remarks import first_unread, remarks_of
        from testbed.graph.cells import left_out_lines

        with Store.open(db) as store:
            done = [outcome.evaluation_id for outcome in report.of(*DONE) if outcome.evaluation_id is not None]
            found, unreadable = store.results.of(done), store.outputs.unreadable(done)
            unread = first_unread(store, unreadable)
            said = _doubts(store, report.of(COMPUTED))
            doubts = [*said, *_doubts(store, report.of(*(status for status in DONE if status != COMPUTED)))]
        results = cls(
            db,
            found,
            report.outcomes,
            [*lines_of_models(report), *lines_of_readings(report), *lines_of_numbers(report), *lines_of_parts(report)],
            left_out_lines(report.left_out),
            [
                *lines_of_class_orders(report),
                *doubts,
                *(line for kind in remarks_of(report, found, unreadable, unread) for line in kind.shown()),
            ],
        )
        results.said = frozenset(said)
        return results

    @classmethod
    def of_looks(cls, db: str | None, found: Looks) -> Results:
        """The results of a run with ``until``, from the last look at each model and setting."""
        from testbed.graph.cells import left_out_lines

        ids = {cell.evaluation_id for cell in found.cells if cell.evaluation_id is not None}
        outcomes = [outcome for one in found.reports for outcome in one.outcomes if outcome.evaluation_id in ids]
        outcomes += [Outcome(cell.model, cell.setting, "failed", cell.why) for cell in found.cells if cell.why]
        left_out = {name: parts for one in found.reports for name, parts in one.left_out.items()}
        with Store.open(db) as store:
            results = cls(db, store.results.of(sorted(ids)), outcomes, left_out=left_out_lines(left_out))
        results.until = _until_frame(found)
        return results

    # As frames ----------------------------------------------------------------------------------------------------

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each metric, of all samples (``slice`` is ``"overall"``) and of slices; and for each failed cell.

        Columns: ``model``, ``eval_setting``, ``metric``, ``slice``, ``value`` (a fraction, where it is a rate),
        ``low`` and ``high`` (95 %, see `testbed.metrics.inference.intervals.interval`), ``stderr``, ``n``, ``unit``,
        ``better`` (whether ``"higher"`` or ``"lower"`` values are better, or ``"neither"``; None if the metric does not
        declare it), ``status``, ``reason``, ``evaluation`` (its id).
        """
        import pandas as pd

        from testbed.metrics.inference.intervals import interval_of

        status = {(each.model, each.setting): each for each in self.outcomes}
        rows: list[tuple[Any, ...]] = []
        for row in self.rows:
            outcome = status.get((row.model, row.eval_setting))
            low, high = interval_of(row) or (None, None)
            rows.append(
                (
                    *(row.model, row.eval_setting, row.metric, row.slice, row.value, low, high, row.stderr),
                    *(row.n, row.unit, row.better, outcome.status if outcome else "stored", "", row.evaluation_id),
                )
            )
        rows += [
            (each.model, each.setting, *[None] * 9, each.status, each.reason, each.evaluation_id)
            for each in self.outcomes
            if each.status not in DONE
        ]
        frame = pd.DataFrame(rows, columns=list(COLUMNS))
        for name in ("value", "low", "high", "stderr"):
            frame[name] = pd.to_numeric(frame[name])
        return frame.astype({"n": "Int64", "evaluation": "Int64"})

    @property
    def failed(self) -> pd.DataFrame:
        """The cells that have no results: ``model``, ``eval_setting``, ``status``, ``reason``."""
        frame = self.frame
        missing = frame[frame["metric"].isna()]
        return missing[["model", "eval_setting", "status", "reason"]].reset_index(drop=True)

    @property
    def failure(self) -> str:
        """The first failure, in a line; empty without failures. Unsupported cells count if no cell has a result."""
        statuses = ("failed", "incomplete") if len(self) else ("failed", "incomplete", "unsupported")
        for outcome in self.outcomes:
            if outcome.status in statuses:
                said = "is unsupported" if outcome.status == "unsupported" else outcome.status
                return f"{outcome.model} on {outcome.setting} {said}: {outcome.reason}"
        return ""

    def samples(self, model: str, eval_setting: str) -> pd.DataFrame:
        """A row for each sample of a cell.

        Columns: ``sample`` (its id), ``target`` (a class's name, or what the data set gives), ``prediction`` and
        ``confidence`` where logits are stored, ``text`` where the model answers in text, each per-sample score by its
        name, ``error`` (why a sample could not be read, else None).

        Raises:
            StoreError: If the store has no outputs of the cell.
        """
        from testbed.api.samples import sample_frame

        with Store.open(self.db) as store:
            return sample_frame(store, self.evaluation(store, model, eval_setting))

    # For extensions -----------------------------------------------------------------------------------------------

    # The methods of testbed's own extensions, for type checkers and editors; those of others are Any.
    choose_anchors: Callable[..., pd.DataFrame]
    compare: Callable[..., pd.DataFrame]
    curves: Callable[..., pd.DataFrame]
    estimate: Callable[..., pd.DataFrame]
    estimate_from_anchors: Callable[..., pd.DataFrame]
    gate: Callable[..., pd.DataFrame]
    plot: Callable[..., dict[str, Figure]]
    rank: Callable[..., pd.DataFrame]
    selective: Callable[..., pd.DataFrame]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in extending.names(extending.RESULTS):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        method = extending.load(extending.RESULTS, name)
        bound = partial(method, self)
        bound.__doc__ = method.__doc__  # shown by notebooks
        return bound

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *extending.names(extending.RESULTS)})

    def chosen(self, models: Words, eval_settings: Words) -> tuple[list[str], list[str]]:
        """Returns the chosen models and settings of these results, named ones first, in the given order.

        Raises:
            StoreError: If none of the results has samples.
        """
        from testbed.db.parts.names import matching_names

        own = [row for row in self.rows if row.origin not in ELSEWHERE]
        if not own:
            raise StoreError("none of these results was measured here, so there are no samples to compare")
        known = [dict.fromkeys(result.model for result in own), dict.fromkeys(result.eval_setting for result in own)]
        wanted = matching_names("model", words(models), set(known[0]))
        on = matching_names("eval setting", words(eval_settings), set(known[1]), parts=True)
        return _ordered(models, known[0], wanted), _ordered(eval_settings, known[1], on)

    def evaluation(self, store: Store, model: str, eval_setting: str) -> Evaluation:
        """The evaluation that these results come from, else the reported one."""
        from testbed.stored_results.side_by_side import evaluation_of

        for row in self.rows:
            if (row.model, row.eval_setting) == (model, eval_setting):
                if row.origin in ELSEWHERE:
                    raise StoreError(f"{model} on {eval_setting} is {row.origin}; it has no samples")
                return store.evaluations.get(row.evaluation_id)
        return evaluation_of(store, model, eval_setting)

    def measured(self) -> frozenset[int]:
        """The evaluations of these results that were measured in this store."""
        return frozenset(row.evaluation_id for row in self.rows if row.origin not in ELSEWHERE)

    def with_outputs(self, models: Words, eval_settings: list[str], notes: list[str]) -> list[str]:
        """The chosen models that have outputs on all of some settings; explicitly named ones are never left out."""
        named, there = words(models), {(row.model, row.eval_setting) for row in self.rows}
        found = []
        for model in self.chosen(models, None)[0]:
            lacks = [setting for setting in eval_settings if (model, setting) not in there]
            if lacks and model not in named:
                notes.append(f"left out: {model} (no outputs on {', '.join(lacks)})")
            else:
                found.append(model)
        return found

    # As text ------------------------------------------------------------------------------------------------------

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """The main metric of each cell: the header, and a row for each model."""
        specs: dict[str, dict[MetricSpec, None]] = {}
        for row in self.rows:
            if row.slice == OVERALL:
                specs.setdefault(row.eval_setting, {}).setdefault(spec_of(row))
        main = {name: found.name for name, of in specs.items() if (found := main_metric(of)) is not None}
        values = {
            (row.model, row.eval_setting): cell_value(row.value, row.unit)
            for row in self.rows
            if row.slice == OVERALL and main[row.eval_setting] == row.metric
        }
        values |= {
            (outcome.model, outcome.setting): outcome.status for outcome in self.outcomes if outcome.status not in DONE
        }
        models, settings = ([*dict.fromkeys(names)] for names in zip(*values, strict=True)) if values else ([], [])
        heads = [f"{name} ({main[name]})" if name in main else name for name in settings]
        return heads, [[model, *(values.get((model, name), "–") for name in settings)] for model in models]

    def _shown(self) -> tuple[list[str], list[list[str]], str]:
        """The visible part of the table, and a line about the rest; empty if nothing is hidden."""
        heads, rows = self._table()
        if len(rows) <= ROWS and len(heads) <= HEADS:
            return heads, rows, ""
        parts = [f"{min(ROWS, len(rows)):,} of {len(rows):,} models", f"{min(HEADS, len(heads)):,} of {len(heads):,}"]
        said = f"{parts[0]}, {parts[1]} settings; .frame has all, testbed.results(…, models, eval_settings) chooses"
        return heads[:HEADS], [row[: HEADS + 1] for row in rows[:ROWS]], said

    def __repr__(self) -> str:
        heads, rows, rest = self._shown()
        if not rows:
            return "no results"
        shown = table(["model", *heads], rows, right=range(1, len(heads) + 1))
        return "\n".join([*unread_lines(self.rows), shown, *([rest] if rest else [])])

    def _repr_html_(self) -> str:
        """The table as HTML, for notebooks."""
        heads, rows, rest = self._shown()
        head = "".join(f"<th scope='col'>{html.escape(text)}</th>" for text in ["model", *heads])
        body = ""
        for name, *cells in rows:
            shown = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            body += f"<tr><th scope='row'>{html.escape(name)}</th>{shown}</tr>"
        notes = "".join(f"<p>{html.escape(line)}</p>" for line in [rest, self.failure] if line)
        before = "".join(f"<p>{html.escape(line)}</p>" for line in unread_lines(self.rows))
        return f"{before}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def __len__(self) -> int:
        return len({(row.model, row.eval_setting) for row in self.rows})


def words(given: Words) -> list[str]:
    """Names and patterns as a list; None means all."""
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _until_frame(found: Looks) -> pd.DataFrame:
    """Returns the outcome for each model on each setting; see `testbed.api.evaluate.evaluate`.

    Columns: ``model``, ``eval_setting``, ``metric``, ``value`` (a difference if models are compared) with ``low`` to
    ``high`` (of all samples, 95 % at all looks together), ``n`` of ``size`` samples, ``decided``, ``why`` (the reason
    if it was given up, else missing), ``looks`` and ``computed``: the samples that were computed.
    """
    import pandas as pd

    rows = []
    for cell in found.cells:
        row: dict[str, Any] = {"model": cell.model, "eval_setting": cell.setting}
        for name in ("metric", "value", "low", "high", "n"):
            row[name] = None if cell.estimate is None else getattr(cell.estimate, name)
        row |= {"size": None if cell.population is None else cell.population.size, "decided": cell.decided}
        rows.append({**row, "why": cell.why or None, "looks": cell.looked, "computed": cell.computed})
    return pd.DataFrame(rows)


def noted(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Returns a frame with notes in ``frame.attrs["notes"]``."""
    frame.attrs["notes"] = notes
    return frame


def require(fits: bool, message: str) -> None:
    """Checks an argument.

    Raises:
        DataError: If it is invalid.
    """
    if not fits:
        raise DataError(message)


def _doubts(store: Store, outcomes: Sequence[Outcome]) -> list[str]:
    """Lines about the outputs of evaluations, from this run or an earlier one, such as probabilities for logits."""
    ids = {outcome.evaluation_id for outcome in outcomes}
    evaluations = store.evaluations.find({outcome.model for outcome in outcomes}) if ids else []
    return [
        f"{evaluation.model} on {evaluation.eval_setting}: {line}"
        for evaluation in evaluations
        if evaluation.id in ids
        for line in (evaluation.environment or {}).get(REMARKS, ())
    ]

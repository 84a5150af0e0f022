"""``testbed show``: the evaluations of a cell."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.certificates import Certificate
from testbed.cli.options.stored import STORED_SETTING, model_argument
from testbed.cli.run.checks import certificate_as_object, describe_certificate, describe_samples
from testbed.console.columns import prose
from testbed.console.options import Argument, store_command
from testbed.console.output import count, print_json, table
from testbed.console.run_remarks import describe_not_finite
from testbed.console.unread_answers import ENOUGH, unread_share
from testbed.console.unread_samples import refusals_in_words, unreadable_in_words
from testbed.data.language.class_vocabulary import wordnet_names
from testbed.data.left_out import LeftOut
from testbed.db.connection import lookup
from testbed.db.connection.lookup import StoredCell, complete_cells_of
from testbed.entities import NOT_FINITE, OVERALL, PUBLISHED, REMARKS, Evaluation, Metric, current
from testbed.errors import StoreError, UnknownNameError
from testbed.formatting import interval, metric_value, percent
from testbed.metrics.inference.intervals import interval_of

if TYPE_CHECKING:
    from testbed.claims.agreement import ClaimComparison
    from testbed.db.store import Store

MOST_UNREAD = 5  # samples that are named


@store_command
@model_argument
@click.argument("setting", cls=Argument, required=False, **STORED_SETTING)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show all evaluations of the cell and how they differ, not only the reported one.",
)
@click.option(
    "--slices", is_flag=True, help="Also show the metrics of slices, such as each class; JSON always has them."
)
@click.option("--prompts", is_flag=True, help="Also show class names and prompt templates; with --json, only these.")
@click.option(
    "--profile", is_flag=True, help="Also show the measurements of testbed run --profile; with --json, only these."
)
def command(
    model: str,
    setting: str | None,
    everything: bool,
    slices: bool,
    prompts: bool,
    profile: bool,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Show every metric of a model on a setting."""
    if setting is None:
        raise click.UsageError(_one_word(db_url, model))
    cells = lookup.complete_cells(db_url, model, setting)
    if cells is None:
        cells = _ask_store(db_url, model, setting)
    if not cells:
        return _show_published(db_url, model, setting, as_json)
    counting = {evaluation.id for evaluation in current(cell.evaluation for cell in cells)}
    shown = [cell for cell in cells if everything or cell.evaluation.id in counting]
    about = _labels_and_prompts(db_url, cells) if everything or prompts else {}
    compared = _compared(db_url, shown)
    if as_json and prompts:
        print_json([_prompts_as_object(cell.evaluation, *about[cell.evaluation.id]) for cell in shown])
        return 0
    if as_json and profile:
        print_json([_names(cell.evaluation) | {"times": _times(cell.evaluation)} for cell in shown])
        return 0
    if as_json:
        print_json(
            [
                _as_object(cell, metric)
                | ({"label": about[cell.evaluation.id][0]} if everything else {})
                | {"published": [comparison.as_object() for comparison in compared if _is_of(comparison, cell, metric)]}
                for cell in shown
                for metric in cell.metrics
            ]
        )
        return 0
    for cell in shown:
        label, own = about.get(cell.evaluation.id, ("", None))
        click.echo(prose(_headline(cell, label)))
        if refused := refusals_in_words(cell.metrics):
            click.echo(prose(f"  {refused}"))
        for line in _unread(db_url, cell):
            click.echo(prose(f"  {line}"))
        if prompts:
            click.echo("\n".join(prose(f"  {line}") for line in _prompt_lines(own)))
        for line in _left_out(cell.evaluation):
            click.echo(prose(f"  {line}"))
        for line in (cell.evaluation.environment or {}).get(REMARKS, ()):
            click.echo(prose(f"  {line}"))
        for certificate in cell.certificates[-1:]:
            click.echo(prose(f"  {_verified(certificate)}"))
        click.echo(_metrics_table([metric for metric in cell.metrics if slices or metric.slice == OVERALL]))
        for line in _published_lines(compared, cell, slices):
            click.echo(prose(line))
        hidden = sum(metric.slice != OVERALL for metric in cell.metrics)
        if hidden and not slices:
            click.echo(f"{count(hidden, 'more metric')} of slices such as classes; --slices shows them too", err=True)
        if profile:
            _print_profile(cell.evaluation)
    if len(cells) > len(shown):
        click.echo(
            f"{count(len(cells) - len(shown), 'more evaluation')} of this cell stored; --all shows them too", err=True
        )
    return 0


def _compared(db_url: str | None, cells: list[StoredCell]) -> list[ClaimComparison]:
    """Compares the metrics of evaluations of a cell with published values."""
    if not cells or not lookup.has_claims(db_url, cells[0].evaluation.eval_setting):
        return []
    from testbed.claims.agreement import PublishedValues
    from testbed.db.store import Store

    first = cells[0].evaluation
    with Store.open(db_url) as store:
        results = store.results.of([cell.evaluation.id for cell in cells])
        return PublishedValues(store, [first.model], [first.eval_setting]).compare(results)


def _is_of(compared: ClaimComparison, cell: StoredCell, metric: Metric) -> bool:
    wanted = cell.evaluation.id, metric.name, metric.slice
    return (compared.evaluation_id, compared.metric, compared.slice) == wanted


def _published_lines(compared: list[ClaimComparison], cell: StoredCell, slices: bool) -> list[str]:
    """Published values of an evaluation's metrics, and whether they agree."""
    if not compared:
        return []
    from testbed.claims.agreement import in_words

    return [
        in_words(comparison, about=False)
        for metric in cell.metrics
        for comparison in compared
        if _is_of(comparison, cell, metric) and (slices or metric.slice == OVERALL)
    ]


def _labels_and_prompts(db_url: str | None, cells: list[StoredCell]) -> dict[int, tuple[str, dict[str, Any] | None]]:
    """The differences between the evaluations, and the prompts of each."""
    from testbed.db.store import Store
    from testbed.stored_results.labels import labels, prompts

    evaluations = [cell.evaluation for cell in cells]
    with Store.open(db_url) as store:
        found = labels(store, evaluations)
        return {evaluation.id: (found[evaluation.id], prompts(store, evaluation)) for evaluation in evaluations}


def _one_word(db_url: str | None, word: str) -> str:
    """Explains a single name: whether it is a setting or a model, and what to combine it with."""
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        done = [evaluation for evaluation in store.evaluations.find() if evaluation.status == "complete"]
    models = list(dict.fromkeys(evaluation.model for evaluation in done if evaluation.eval_setting == word))
    settings = list(dict.fromkeys(evaluation.eval_setting for evaluation in done if evaluation.model == word))
    both = "testbed show takes a model and a setting"
    for names, kind, option, example in (
        (models, "setting", "--on", f"testbed show '{models[0] if models else ''}' '{word}'"),
        (settings, "model", "--models", f"testbed show '{word}' '{min(settings, key=len, default='')}'"),
    ):
        if names:
            return (
                f"{both}; {word} is a {kind} with {count(len(names), 'stored result')}: {example} shows one,"
                f" testbed list results {option} '{word}' lists all"
            )
    return f"{both}: testbed show MODEL SETTING; testbed list results lists the stored results"


def _show_published(db_url: str | None, model: str, eval_setting: str, as_json: bool) -> int:
    """Prints what is published about a cell that was not measured here."""
    from testbed.claims.agreement import source_text
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        claims = store.claims.find([model], [eval_setting])
    if as_json:
        print_json([asdict(claim) | {"origin": PUBLISHED} for claim in claims])
        return 0
    click.echo(prose(f"{model} on {eval_setting}: published, not measured here"))
    sliced = any(claim.slice != OVERALL for claim in claims)
    rows = [
        [
            claim.metric,
            *([claim.slice] * sliced),
            f"{metric_value(claim.value, claim.unit)} †",
            source_text(claim),
            claim.row,
        ]
        for claim in claims
    ]
    click.echo(table(["metric", *(["slice"] * sliced), "value", "source", "place"], rows))
    return 0


def _ask_store(db_url: str | None, model: str, eval_setting: str) -> list[StoredCell]:
    """The evaluations of a cell; none if it has published values alone."""
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        cells = complete_cells_of(store, model, eval_setting)
        if not cells:
            store.names.require("model", model)
            store.names.require("eval setting", eval_setting)
            _explain_absence(store, model, eval_setting)
        return cells


def _explain_absence(store: Store, model: str, eval_setting: str) -> None:
    for evaluation in reversed(store.evaluations.find([model], [eval_setting])):
        if evaluation.status == "running":
            raise StoreError(
                f"{model} on {eval_setting} is not complete: a run is in progress or was interrupted; run the same"
                " command again to resume it"
            )
        raise StoreError(f"{model} on {eval_setting} is {evaluation.status}: {evaluation.error}")
    if not store.claims.find([model], [eval_setting]):
        raise UnknownNameError(
            f"the store has no evaluation of {model} on {eval_setting}; run: testbed run '{model}' --on"
            f" '{eval_setting}'"
        )


def _headline(cell: StoredCell, label: str) -> str:
    """The cell, the evaluation, and anything unusual about it."""
    evaluation, errors = cell.evaluation, cell.unreadable
    parts = [f"evaluation {evaluation.id}{f' ({label})' if label else ''}"]
    if evaluation.origin == "imported":
        parts.append(f"imported from {evaluation.source}")
    elif evaluation.origin == "derived":
        parts.append(f"derived from evaluation {evaluation.derived_from}")
    if evaluation.size:
        parts.append(f"{evaluation.size:,} samples")
    if evaluation.sample_limit:
        parts.append(f"limited to {evaluation.sample_limit:,}")
    if evaluation.dtype:
        parts.append(evaluation.dtype)
    if evaluation.random_weights:
        parts.append("RANDOM WEIGHTS")
    if errors:
        parts.append(unreadable_in_words(errors, [metric.scorer for metric in cell.metrics]))
    parts += [describe_not_finite(metric) for metric in cell.metrics if metric.name == NOT_FINITE]
    if evaluation.completed_at:
        parts.append(f"{evaluation.completed_at:%Y-%m-%d %H:%M} UTC")
    share = unread_share(cell.metrics)
    unread = f": {percent(share, 1)} % of the answers could not be read" if share > ENOUGH else ""
    return f"{evaluation.model} on {evaluation.eval_setting}{unread}\n  {', '.join(parts)}"


def _unread(db_url: str | None, cell: StoredCell) -> list[str]:
    """The samples that could not be read, a line for each of the first ones."""
    if not cell.unreadable:
        return []
    from testbed.db.store import Store
    from testbed.stored_results.unread import unread_samples

    with Store.open(db_url) as store:
        number, first = unread_samples(store, cell.evaluation, MOST_UNREAD)
    lines = [f"not read: {unread_sample.id}: {unread_sample.reason}" for unread_sample in first]
    return lines + ([f"not read: {number - len(first):,} more"] if number > len(first) else [])


def _left_out(evaluation: Evaluation) -> list[str]:
    """Lines about files that its data sets left out, one for each reason."""
    stored: dict[str, list[dict[str, Any]]] = (evaluation.environment or {}).get("left_out", {})
    return [f"data of {name}: {LeftOut.from_object(part)}" for name, parts in stored.items() for part in parts]


def _metrics_table(metrics: list[Metric]) -> str:
    rows = [
        [
            metric.name,
            _slice_in_words(metric.slice),
            metric_value(metric.value, metric.unit, metric.stderr),
            _interval(metric),
            "" if metric.n is None else f"{metric.n:,}",
        ]
        for metric in metrics
    ]
    return table(["metric", "slice", "value ± standard error", "95 % interval", "n"], rows, right=[2, 3, 4])


def _interval(metric: Metric) -> str:
    """The 95 % interval, in the unit of the value; empty if the spread is unknown."""
    ends = interval_of(metric)
    return interval(*ends, metric.unit) if ends else ""


def _slice_in_words(slice: str) -> str:
    """A slice in words; WordNet ids become class names."""
    kind, _, name = slice.partition("/")
    names = wordnet_names([name]) if kind == "class" else None
    return slice if names is None else f"{kind}/{name} ({names[0]})"


def _prompt_lines(prompts: dict[str, Any] | None) -> list[str]:
    """The class names and the templates of an evaluation, one line each."""
    if prompts is None:
        return ["no prompts: not zero-shot classification"]
    if "heads" in prompts:
        return [f"zero-shot heads from files instead of prompts; digests: {', '.join(prompts['heads'])}"]
    names, templates = prompts.get("class_names") or [], prompts.get("templates") or []
    lines = [f"{count(len(names), 'class name')}: {', '.join(names)}"] if names else []
    if isinstance(templates, dict):
        texts = [text for prompts_of_class in templates.values() for text in prompts_of_class]
        lines.append(f"{count(len(texts), 'prompt')} by class")
        return lines + [f"  {name}: {text}" for name, given in templates.items() for text in given]
    return [*lines, count(len(templates), "template"), *(f"  {template}" for template in templates)]


def _prompts_as_object(evaluation: Evaluation, label: str, prompts: dict[str, Any] | None) -> dict[str, Any]:
    given = {key: (prompts or {}).get(key) for key in ("class_names", "templates", "heads")}
    return {**_names(evaluation), "label": label, **given}


def _names(evaluation: Evaluation) -> dict[str, Any]:
    return {"evaluation": evaluation.id, "model": evaluation.model, "eval_setting": evaluation.eval_setting}


def _times(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Prints where the time of each run with ``--profile`` went."""
    times: list[dict[str, Any]] = (evaluation.environment or {}).get("times", [])
    return times


def _print_profile(evaluation: Evaluation) -> None:
    from testbed.cli.run.times import print_times
    from testbed.execution.report import Times

    if times := _times(evaluation):
        click.echo("\nThe passes that computed it (a pass may compute several evaluations):")
        print_times([Times.from_object(record) for record in times])
    else:
        click.echo("\nNo measurements: it was computed without --profile.")


def _verified(certificate: Certificate) -> str:
    """The latest comparison with recomputed outputs, and the reason for it."""
    why = f" after {'; '.join(certificate.because[:2])}" if certificate.because else ""
    moment = f"{certificate.created_at:%Y-%m-%d %H:%M} UTC" if certificate.created_at else ""
    told = "verified" if certificate.equal else "DIFFERED at its last verification,"
    return f"{told} {moment}{why}: {describe_certificate(certificate)}{describe_samples(certificate)}"


def _as_object(cell: StoredCell, metric: Metric) -> dict[str, Any]:
    evaluation = cell.evaluation
    ends = interval_of(metric) or (None, None)
    verified = {"certificate": certificate_as_object(cell.certificates[-1])} if cell.certificates else {}
    return {
        "model": evaluation.model,
        "eval_setting": evaluation.eval_setting,
        "metric": metric.name,
        "slice": metric.slice,
        "value": metric.value,
        "n": metric.n,
        "stderr": metric.stderr,
        "low": ends[0],
        "high": ends[1],
        "clusters": metric.clusters,
        "unit": metric.unit,
        "better": metric.better,
        "lowest": metric.lowest,
        "highest": metric.highest,
        "scorer": metric.scorer,
        "origin": evaluation.origin,
        "dtype": evaluation.dtype,
        "sample_limit": evaluation.sample_limit,
        "random_weights": evaluation.random_weights,
        "evaluation": evaluation.id,
        "fingerprint": evaluation.fingerprint,
        "left_out": (evaluation.environment or {}).get("left_out", {}),
        **verified,
    }

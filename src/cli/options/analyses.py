"""The analyses of ``db.py``: their options and the modules that implement them. See docs/analyses.md."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from testbed.console.completion import stored
from testbed.console.options import ManyWords

F = TypeVar("F", bound=Callable[..., Any])

EVERY_DECODER = ""  # the value of --borda without an argument

_OPTIONS = (
    click.option(
        "--models",
        cls=ManyWords,
        metavar="NAME",
        shell_complete=stored("model"),
        help="With --save-logits, --save-texts, --rescore, --verify-store, --grid, --rank, --agreement,"
        " --hardest, --confusions, --groups, --borda and --export-clip-cc: only these models; names, or (except with"
        " --save-…) patterns.",
    ),
    click.option(
        "--eval-settings",
        cls=ManyWords,
        metavar="NAME",
        shell_complete=stored("eval setting"),
        help="With --rescore and --verify-store: only these eval settings. With --compare and --rank: all of these."
        " With --borda and --export-clip-cc: these settings with decoders.",
    ),
    click.option(
        "--compare",
        cls=ManyWords,
        metavar="A B SETTING",
        help="Compare two models or more on a setting (or on --eval-settings), sample by sample.",
    ),
    click.option(
        "--rank",
        cls=ManyWords,
        metavar="SETTING",
        help="Rank models on a setting, or by their mean over several (names or patterns), with intervals of the"
        " ranks, and ties.",
    ),
    click.option(
        "--borda",
        cls=ManyWords,
        is_flag=False,
        flag_value=EVERY_DECODER,
        metavar="[SETTING]",
        help="Rank captioners by Borda count over settings, one for each decoder (names or patterns).  [default: all"
        " with a decoder; --metric hm_cf]",
    ),
    click.option(
        "--better",
        type=click.Choice(["higher", "lower"]),
        help="With --rank, --groups, --borda and --grid: whether higher or lower values are better, for a metric that"
        " does not declare it.",
    ),
    click.option(
        "--agreement",
        metavar="SETTING",
        help="How far models agree: error consistency, shared errors and predicted classes of each pair, and how many"
        " models get each sample right.",
    ),
    click.option(
        "--compare-recorded",
        nargs=2,
        metavar="MODEL SETTING",
        help="Compare what VLMEvalKit recorded beside replay:FILE with the scores of these answers here: each number of"
        " its reports, and each answer that is scored otherwise.",
    ),
    click.option("--hardest", metavar="SETTING", help="The samples that most models get wrong."),
    click.option("--confusions", metavar="SETTING", help="The classes that are most often confused with each other."),
    click.option(
        "--groups", metavar="SETTING", help="Means over groups of samples: the worst and the best group of each model."
    ),
    click.option(
        "--by",
        metavar="WHAT",
        help="With --groups: class, group, a slice of the samples, or a column of the CSV. With --confusions: model, to"
        " list each model separately.",
    ),
    click.option(
        "--slices-from",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --groups: a CSV with a column id and columns of groups.",
    ),
    click.option(
        "--calibrate",
        metavar="SETTING",
        help="Correct the scores that rules or judges gave with people's labels of some of the same answers.",
    ),
    click.option(
        "--labels",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --calibrate: a CSV with the columns id and label (0 to 1), and if need be model and annotator.",
    ),
    click.option(
        "--method",
        type=click.Choice(["ppi", "post-stratified", "rogan-gladen"]),
        default="ppi",
        show_default=True,
        help="With --calibrate: ppi and post-stratified for labels of answers drawn at random, rogan-gladen for labels"
        " chosen by truth.",
    ),
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=20,
        show_default=True,
        metavar="N",
        help="With --hardest, --confusions and --compare-recorded: at most N lines (for each model or file).",
    ),
    click.option(
        "--score",
        metavar="NAME",
        help="With the analyses except --confusions and --borda: the per-sample score.  [default: the main one of the"
        " settings, such as top1]",
    ),
)


def analysis_options(function: F) -> F:
    """The options of the analyses."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def _lazily(module: str, name: str) -> Callable[[dict[str, Any]], int]:
    """A function that is imported on its first call, so that other actions need not import numpy."""

    def act(given: dict[str, Any]) -> int:
        done: int = getattr(import_module(f"testbed.cli.analyses.{module}"), name)(given)
        return done

    return act


ACTIONS = {
    "compare": _lazily("compare", "run_compare"),
    "compare_recorded": _lazily("compare_recorded", "run_compare_recorded"),
    "rank": _lazily("rank", "run_rank"),
    "borda": _lazily("borda", "run_borda"),
    "agreement": _lazily("agreement", "run_agreement"),
    "hardest": _lazily("mistakes", "run_hardest"),
    "confusions": _lazily("mistakes", "run_confusions"),
    "groups": _lazily("groups", "run_groups"),
    "calibrate": _lazily("calibrate", "run_calibrate"),
}


def note(text: str) -> None:
    """Prints a note to stderr, such as which models were left out."""
    click.echo(f"note: {text}", err=True)

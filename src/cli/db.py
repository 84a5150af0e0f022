"""``db.py`` / ``testbed db``: queries and edits the results store, without importing torch or a model library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.analyses import ACTIONS as ANALYSES
from testbed.cli.options.analyses import analysis_options
from testbed.cli.store import edit, files
from testbed.cli.store.edit import MODEL, SETTING
from testbed.cli.store.status import status
from testbed.cli.store.upkeep import ACTIONS as UPKEEP
from testbed.cli.store.upkeep import salvage, upgrade, upkeep_options
from testbed.cli.store.verify_store import run_verify_store, verify_store_options
from testbed.console.options import (
    ManyWords,
    ManyWordsCommand,
    data_root_option,
    run_command,
    set_up_logging,
    store_options,
    use,
)
from testbed.console.output import count, print_json
from testbed.inputs import Inputs
from testbed.paths import expanded

if TYPE_CHECKING:
    from testbed.db.names import Kind


class _Command(ManyWordsCommand):
    """Takes the path of a checkpoint as eval.py does: the store has it in full."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_with_full_path(word) for word in args])


def _with_full_path(word: str) -> str:
    arch, _, path = word.partition(",")
    file = expanded(path)
    return f"{arch},{file.absolute()}" if ("/" in path or file.suffix) and os.path.isfile(file) else word


@click.command(cls=_Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--print-eval", nargs=2, metavar="MODEL SETTING", help="Print the metrics of a model on a setting.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="With --print-eval, --save-logits and --export-clip-benchmark: all evaluations of a cell and what tells them"
    " apart, not only the reported one.",
)
@click.option("--show-prompts", is_flag=True, help="With --print-eval: also the class names and prompt templates.")
@click.option("--profile", is_flag=True, help="With --print-eval: also what eval.py --profile measured.")
@click.option(
    "--why",
    nargs=2,
    metavar="A B",
    help="Show what differs between two evaluations (by id), an evaluation and 'today', or MODEL SETTING and today.",
)
@click.option(
    "--status",
    is_flag=True,
    help="Show the runs on the store, on all machines, and what is under way, was stopped or has failed.",
)
@click.option("--slices", is_flag=True, help="With --print-eval: also the metrics of slices, such as each class.")
@click.option("--list-models-db", is_flag=True, help="List the models in the store.")
@click.option("--list-eval-settings-db", is_flag=True, help="List the eval settings in the store.")
@click.option("--list-models-registry", is_flag=True, help="List the models that can be run.")
@click.option("--list-eval-settings-registry", is_flag=True, help="List the eval settings that can be run.")
@click.option("--list-parent-eval-settings-registry", is_flag=True, help="List the eval settings that have no parent.")
@click.option(
    "--save-texts", nargs=2, metavar="SETTING DIR", help="Write the captions of all models on a setting to JSON files."
)
@click.option(
    "--save-logits", nargs=2, metavar="SETTING DIR", help="Write the logits of all models on a setting to files."
)
@analysis_options
@click.option(
    "--rescore", is_flag=True, help="Compute today's metrics from the stored outputs; earlier ones are kept as history."
)
@click.option(
    "--judge",
    cls=ManyWords,
    metavar="NAME",
    help="With --rescore and --eval-settings X: have stored answers to X judged, as eval.py does on X@NAME; several"
    " judges are a panel.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([*files.LOGIT_FORMS, "table", "markdown", "latex"]),
    help="With --save-logits: npz (the default), csv or parquet. With --grid: table (the default), markdown or latex.",
)
@click.option(
    "--grid",
    cls=ManyWords,
    metavar="PATTERN",
    help="Print models × settings; averages such as avg_corruptions are columns too.",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="With --grid, --serve and --borda: the metric.  [default: with --grid, the main one of each setting; with"
    " --serve, top1]",
)
@click.option("--serve", is_flag=True, help="Show the results as a web page on this machine, until Ctrl-C.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --serve: the address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="With --serve: the port; 0 picks a free one.",
)
@click.option("--add-model", cls=ManyWords, metavar="NAME", help="Add models of the registry to the store.")
@click.option(
    "--add-eval-setting", cls=ManyWords, metavar="NAME", help="Add eval settings of the registry to the store."
)
@click.option("--remove-model", cls=ManyWords, metavar="NAME", help="Hide models and their evaluations.")
@click.option("--remove-eval-setting", cls=ManyWords, metavar="NAME", help="Hide eval settings and their evaluations.")
@click.option("--remove-evaluation", nargs=2, metavar="MODEL SETTING", help="Hide the evaluations of a cell.")
@click.option("--restore-model", cls=ManyWords, metavar="NAME", help="Undo --remove-model.")
@click.option("--restore-eval-setting", cls=ManyWords, metavar="NAME", help="Undo --remove-eval-setting.")
@click.option("--restore-evaluation", nargs=2, metavar="MODEL SETTING", help="Undo --remove-evaluation.")
@click.option(
    "--purge", is_flag=True, help="Permanently delete what was removed, including outputs (needs --override)."
)
@click.option("--rename-model", nargs=2, metavar="OLD NEW", help="Rename a model in the store.")
@click.option("--rename-eval-setting", nargs=2, metavar="OLD NEW", help="Rename an eval setting in the store.")
@click.option(
    "--import-results",
    metavar="FILE",
    help="Import a published table: ImageNet-testbed's CSV, or a CSV, JSON or folder of JSON files of CLIP benchmark"
    " or CLIP-CC-Bench; or a store from before the first release.",
)
@click.option(
    "--model-types",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --import-results: a CSV of model types.",
)
@click.option(
    "--export-csv",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write top-1 of all models on all settings, in the format of ImageNet-testbed's table.",
)
@click.option(
    "--export-clip-benchmark",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE.csv",
    help="Write the results in CLIP benchmark's format: a folder with a JSON file for each, or a CSV table.",
)
@click.option("--dump-classnames", is_flag=True, help="With --export-clip-benchmark DIR: also the class names.")
@click.option("--dump-templates", is_flag=True, help="With --export-clip-benchmark DIR: also the prompt templates.")
@click.option(
    "--export-clip-cc",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write caption scores in CLIP-CC-Bench's format: a CSV and a summary for each captioner and decoder.",
)
@click.option(
    "--export-vlmevalkit",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write answers and scores in VLMEvalKit's format: for each model and set a table of predictions and its"
    " scores.",
)
@click.option(
    "--export-verdicts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what judges said (--eval-settings X@NAME) as a CSV of labels, by which X@labels:FILE scores without"
    " the judge.",
)
@click.option(
    "--suggest-labels",
    type=(click.IntRange(min=1), click.Path()),
    metavar="N FILE",
    help="Write N answers of each model, drawn at random, to a CSV for people to label (--eval-settings X), for"
    " --calibrate and X@labels:FILE.",
)
@click.option(
    "--scale",
    type=click.Choice(["unit", "raw"]),
    default="unit",
    show_default=True,
    help="With --export-clip-cc: similarities from 0 to 1, or unchanged cosines.",
)
@upkeep_options
@verify_store_options
@click.option(
    "--override",
    is_flag=True,
    help="Confirm --purge; let --add-… and --import-results take names that are not in the registry.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show where errors come from.")
@store_options
@data_root_option
def command(verbose: bool, data_root: str | None, **given: Any) -> int:
    """Query and edit the results store.

    \b
    Examples:
      python db.py --print-eval digits-cnn digits
      python db.py --print-eval digits-cnn digits --json
      python db.py --save-logits digits out/ --models digits-cnn
      python db.py --list-models-registry | grep resnet
    """
    use(Inputs.from_environment().but(data_root=data_root))
    set_up_logging(verbose, lambda line: click.echo(line, err=True))
    asked = [name for name in _ACTIONS if given[name]]
    if not asked:
        raise click.UsageError("no action given; --help lists the actions")
    given["verbose"] = verbose
    codes = [_ACTIONS[name](given) for name in asked]
    return max(codes, default=0)


# Showing ----------------------------------------------------------------------------------------------------------


def _print_eval(given: dict[str, Any]) -> int:
    from testbed.cli.store.show import print_evaluation

    model, setting = given["print_eval"]
    return print_evaluation(
        *(given["db_url"], model, setting, given["everything"], given["slices"]),
        show_prompts=given["show_prompts"],
        profile=given["profile"],
        as_json=given["as_json"],
    )


def _why(given: dict[str, Any]) -> int:
    from testbed.cli.analyses.why import explain

    return explain(given)


def _list_db(kind: Kind, given: dict[str, Any]) -> int:
    from testbed.db.connection import lookup

    names = lookup.names(given["db_url"], kind)
    if names is None:
        from testbed.db.store import Store

        with Store.open(given["db_url"]) as store:
            names = store.list_names(kind)
    if given["as_json"]:
        extra = "model_type" if kind == MODEL else "parent"
        print_json(
            [{"name": each.name, "evaluations": each.evaluations, extra: getattr(each, extra)} for each in names]
        )
    else:
        for each in names:
            click.echo(each.name)
        click.echo(f"{count(len(names), kind)} in the store", err=True)
    return 0


def _list_registry(kind: Kind, given: dict[str, Any], parents_only: bool = False) -> int:
    from testbed.registry import registry

    registry.load(given["plugins"])
    table: Any = registry.models if kind == MODEL else registry.eval_settings
    names = table.names()
    if parents_only:
        names = [name for name in names if table.get(name).parent_eval_setting is None]
    if given["as_json"]:
        print_json([{"name": name, "source": table.source(name)} for name in names])
    else:
        for name in names:
            click.echo(name)
        click.echo(f"{count(len(names), kind)} in the registry", err=True)
    return 0


def _rescore(given: dict[str, Any]) -> int:
    from testbed.cli.store.rescore import run_rescore

    return run_rescore(given)


# Files and upkeep -------------------------------------------------------------------------------------------------


def _grid(given: dict[str, Any]) -> int:
    from testbed.cli.analyses.grid import run_grid

    return run_grid(given)


def _serve(given: dict[str, Any]) -> int:
    from testbed.cli.serve import run_serve

    return run_serve(given)


_ACTIONS: dict[str, Any] = {
    "upgrade": upgrade,
    "salvage": salvage,
    "import_results": files.import_table,
    "add_model": lambda given: edit.add(MODEL, given["add_model"], given),
    "add_eval_setting": lambda given: edit.add(SETTING, given["add_eval_setting"], given),
    "rename_model": lambda given: edit.rename(MODEL, given["rename_model"], given),
    "rename_eval_setting": lambda given: edit.rename(SETTING, given["rename_eval_setting"], given),
    "remove_model": lambda given: edit.remove(MODEL, given["remove_model"], given),
    "remove_eval_setting": lambda given: edit.remove(SETTING, given["remove_eval_setting"], given),
    "remove_evaluation": edit.remove_evaluation,
    "restore_model": lambda given: edit.restore(MODEL, given["restore_model"], given),
    "restore_eval_setting": lambda given: edit.restore(SETTING, given["restore_eval_setting"], given),
    "restore_evaluation": edit.restore_evaluation,
    "purge": edit.purge,
    "status": status,
    "print_eval": _print_eval,
    "why": _why,
    "list_models_db": lambda given: _list_db(MODEL, given),
    "list_models_registry": lambda given: _list_registry(MODEL, given),
    "list_eval_settings_db": lambda given: _list_db(SETTING, given),
    "list_eval_settings_registry": lambda given: _list_registry(SETTING, given),
    "list_parent_eval_settings_registry": lambda given: _list_registry(SETTING, given, parents_only=True),
    **ANALYSES,
    "rescore": _rescore,
    "save_logits": files.save_logits,
    "save_texts": files.save_texts,
    "export_csv": files.export_csv,
    "export_clip_benchmark": files.export_clip_benchmark,
    "export_clip_cc": files.export_clip_cc,
    "export_vlmevalkit": files.export_vlmevalkit,
    "export_verdicts": files.export_verdicts,
    "suggest_labels": files.suggest_labels,
    **UPKEEP,
    "verify_store": run_verify_store,
    "grid": _grid,
    "serve": _serve,
}


def main() -> None:
    """The program."""
    run_command(command)

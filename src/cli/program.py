"""The program ``testbed``: its commands, each in a file of its own, which is imported when the command is called."""

from __future__ import annotations

import click

from testbed.console.options import Group, run_command, version_option

_EXPORTS = "testbed.cli.exports"
_STORE = "testbed.cli.store"
SECTIONS = {
    "Evaluate": {
        "run": "testbed.cli.eval:run",
        "watch": "testbed.cli.watch",
        "rescore": "testbed.cli.rescore",
        "corrupt": "testbed.cli.corrupt",
    },
    "Look at results": {
        "list": "testbed.cli.program:lists",
        "show": "testbed.cli.show",
        "grid": "testbed.cli.analyses.grid",
        "why": "testbed.cli.analyses.why",
        "published": "testbed.cli.program:published",
        "explain": "testbed.cli.explain",
        "serve": "testbed.cli.serve",
        "site": "testbed.cli.site",
        "figures": "testbed.cli.figures",
    },
    "Analyse": {
        "rank": "testbed.cli.analyses.rank",
        "compare": "testbed.cli.analyses.compare",
        "gate": "testbed.cli.analyses.gate",
        "anchors": "testbed.cli.program:anchors",
        "estimate": "testbed.cli.estimates.label_free",
        "groups": "testbed.cli.analyses.groups",
        "ood": "testbed.cli.shifts.ood",
        "mce": "testbed.cli.shifts.mce",
        "factors": "testbed.cli.shifts.factors",
        "hardest": "testbed.cli.analyses.hardest",
        "suspects": "testbed.cli.estimates.suspects",
        "confusions": "testbed.cli.analyses.confusions",
        "agreement": "testbed.cli.analyses.agreement",
        "borda": "testbed.cli.analyses.borda",
        "calibrate": "testbed.cli.analyses.calibrate",
        "selective": "testbed.cli.analyses.selective",
        "compare-recorded": "testbed.cli.analyses.compare_recorded",
    },
    "Store and files": {
        "store": "testbed.cli.program:store",
        "import": "testbed.cli.importing",
        "people": "testbed.cli.shifts.people",
        "export": "testbed.cli.program:export",
        "publish": f"{_EXPORTS}.publish",
    },
}


@version_option
@click.command(cls=Group, sections=SECTIONS)
def command() -> None:
    """Evaluate models, and query what is stored; COMMAND --help tells more."""


@click.command(
    cls=Group,
    sections={
        "Commands": {
            "models": "testbed.cli.lists:models",
            "settings": "testbed.cli.lists:settings",
            "results": "testbed.cli.lists:results",
        }
    },
)
def lists() -> None:
    """Models and settings that can be run or are stored, and results."""


@click.command(
    cls=Group,
    sections={
        "Anchors": {
            "choose": "testbed.cli.estimates.anchors:choose",
            "estimate": "testbed.cli.estimates.anchors:estimate",
        }
    },
)
def anchors() -> None:
    """A few samples that tell the score of all."""


@click.command(
    cls=Group,
    sections={
        "Store": {
            "fetch": "testbed.cli.published:fetch",
            "add": "testbed.cli.published:add",
        },
        "Compare": {
            "show": "testbed.cli.published:show",
            "disagree": "testbed.cli.published:disagree",
            "coverage": "testbed.cli.published:coverage",
            "prefer": "testbed.cli.published:prefer",
        },
    },
)
def published() -> None:
    """What others published, beside your own results."""


@click.command(
    cls=Group,
    sections={
        "testbed's own forms": {
            "logits": f"{_EXPORTS}.logits",
            "texts": f"{_EXPORTS}.texts",
            "verdicts": f"{_EXPORTS}.verdicts",
            "answers": f"{_EXPORTS}.verdicts:answers",
        },
        "Forms of others": {
            "csv": f"{_EXPORTS}.csv",
            "clip-benchmark": f"{_EXPORTS}.clip_benchmark",
            "webdataset": f"{_EXPORTS}.webdataset",
            "clip-cc": f"{_EXPORTS}.clip_cc",
            "vlmevalkit": f"{_EXPORTS}.vlmevalkit",
            "every-eval-ever": f"{_EXPORTS}.every_eval_ever",
            "model-card": f"{_EXPORTS}.model_card",
            "inspect": f"{_EXPORTS}.inspect",
        },
    },
)
def export() -> None:
    """Results, outputs, verdicts and data sets as files."""


@click.command(
    cls=Group,
    sections={
        "State and damage": {
            "status": f"{_STORE}.status",
            "check": f"{_STORE}.check:check",
            "repair": f"{_STORE}.check:repair",
            "salvage": f"{_STORE}.check:salvage",
            "verify": f"{_STORE}.verify",
        },
        "Copies and versions": {
            "backup": f"{_STORE}.copies:backup",
            "copy": f"{_STORE}.copies:copy",
            "merge": f"{_STORE}.copies:merge",
            "upgrade": f"{_STORE}.copies:upgrade",
        },
        "Contents": {
            "add": f"{_STORE}.edit:add",
            "rename": f"{_STORE}.edit:rename",
            "remove": f"{_STORE}.edit:remove",
            "restore": f"{_STORE}.edit:restore",
            "purge": f"{_STORE}.gc:purge",
            "gc": f"{_STORE}.gc",
        },
    },
)
def store() -> None:
    """The store itself: status, damage, copies, names."""


def main() -> None:
    """The program."""
    run_command(command)

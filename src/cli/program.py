"""The program ``testbed``: its commands, each in a file of its own, which is imported when the command is called."""

from __future__ import annotations

import click

from testbed.console.options import Group, run_command, version_option

_EXPORTS = "testbed.cli.exports"
_STORE = "testbed.cli.store"
SECTIONS = {
    "Evaluate": {
        "run": "testbed.cli.eval:run",
        "watch": "testbed.extensions.watching.commands.watch",
        "rescore": "testbed.cli.rescore",
        "corrupt": "testbed.cli.corrupt",
    },
    "Look at results": {
        "list": "testbed.cli.program:lists",
        "show": "testbed.cli.show",
        "grid": "testbed.extensions.analyses.commands.grid",
        "why": "testbed.extensions.analyses.commands.why",
        "published": "testbed.cli.program:published",
        "explain": "testbed.extensions.explain.commands.explain",
        "serve": "testbed.extensions.explorer.commands.serve",
        "site": "testbed.extensions.explorer.commands.site",
        "figures": "testbed.cli.figures",
    },
    "Analyse": {
        "rank": "testbed.extensions.analyses.commands.rank",
        "compare": "testbed.extensions.analyses.commands.compare",
        "gate": "testbed.extensions.gate.commands.gate",
        "anchors": "testbed.cli.program:anchors",
        "estimate": "testbed.extensions.estimates.commands.label_free",
        "groups": "testbed.extensions.analyses.commands.groups",
        "ood": "testbed.extensions.analyses.commands.ood",
        "mce": "testbed.extensions.analyses.commands.mce",
        "factors": "testbed.extensions.analyses.commands.factors",
        "hardest": "testbed.extensions.analyses.commands.hardest",
        "suspects": "testbed.extensions.estimates.commands.suspects",
        "confusions": "testbed.extensions.analyses.commands.confusions",
        "agreement": "testbed.extensions.analyses.commands.agreement",
        "borda": "testbed.extensions.analyses.commands.borda",
        "calibrate": "testbed.extensions.analyses.commands.calibrate",
        "selective": "testbed.extensions.analyses.commands.selective",
        "compare-recorded": "testbed.extensions.vlmevalkit.commands.compare_recorded",
    },
    "Store and files": {
        "store": "testbed.cli.program:store",
        "import": "testbed.extensions.exchange.commands.importing",
        "people": "testbed.extensions.exchange.commands.people",
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
            "choose": "testbed.extensions.estimates.commands.anchors:choose",
            "estimate": "testbed.extensions.estimates.commands.anchors:estimate",
        }
    },
)
def anchors() -> None:
    """A few samples that tell the score of all."""


@click.command(
    cls=Group,
    sections={
        "Store": {
            "fetch": "testbed.extensions.published.commands.published:fetch",
            "add": "testbed.extensions.published.commands.published:add",
        },
        "Compare": {
            "show": "testbed.extensions.published.commands.published:show",
            "disagree": "testbed.extensions.published.commands.published:disagree",
            "coverage": "testbed.extensions.published.commands.published:coverage",
            "prefer": "testbed.extensions.published.commands.published:prefer",
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

"""``testbed explain``: finds the protocols that give a published number."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import model_argument, note, setting_argument
from testbed.console.columns import line_width
from testbed.console.options import ManyWords, data_root_option, plugin_option, store_command, use, use_own_names
from testbed.console.output import count, fitted, print_json, say
from testbed.entities import FRACTION
from testbed.errors import TestbedError
from testbed.formatting import difference, percent
from testbed.inputs import active

if TYPE_CHECKING:
    from testbed.extensions.explain.explanation import Explanation, VariantResult
    from testbed.extensions.explain.sampling import SampledValue

WIDTH = 80
SHOWN = 12  # excluded variants, the closest first
FIRST_WORDS = 30  # characters of a reason that distinguish kinds of reasons


@store_command
@model_argument
@setting_argument
@click.option(
    "--published",
    "words",
    cls=ManyWords,
    metavar="VALUE",
    help="The published value in percent: 76.13, or top1=76.13 top5=92.86.  [default: those in the store]",
)
@click.option("--source", metavar="NAME", help="Use the stored values of this source.")
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    metavar="N",
    help="The maximum number of images to run through a network.  [default: 2 evaluations; for"
    " fewer than 25,000 samples 50,000, but at most 6 evaluations or 10,000; 0: none]",
)
@click.option(
    *("--prompts", "--templates-file"),
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also try the prompts in this file: {class: [prompts]} as in CuPL, or templates by data set.",
)
@click.option("--device", default="cpu", show_default=True, metavar="DEVICE", help="The model's device.")
@click.option(
    "--ask",
    is_flag=True,
    help="Ask a model its questions again in other ways, and judges about its answers; prints the maximum number of"
    " requests.",
)
@click.option(
    "--thorough", is_flag=True, help="Run images, and decide each variant, even if one already gives the value."
)
@click.option("--all", "everything", is_flag=True, help="List all excluded variants.")
@plugin_option
@data_root_option
def command(
    model: str,
    setting: str,
    words: Sequence[str],
    source: str | None,
    samples: int | None,
    prompts: Path | None,
    device: str,
    ask: bool,
    thorough: bool,
    everything: bool,
    plugins: Sequence[str],
    db_url: str | None,
    as_json: bool,
) -> int:
    """Explain why a published number differs from yours.

    Tries common differences: scoring and class order on the stored outputs, prompts on the stored image embeddings,
    preprocessing on some of the images. Prints the variants that give the published value, and the excluded ones.

    \b
    Examples:
      testbed explain resnet50 val --published 76.13
      testbed explain ViT-B-16,openai imagenet1k --source mteb
    """
    from testbed.data.language.prompts import templates_file
    from testbed.db.store import Store
    from testbed.extensions.explain.asking.race import ask as ask_again
    from testbed.extensions.explain.axis import Stage
    from testbed.extensions.explain.cell import EvaluatedCell
    from testbed.extensions.explain.published import claimed, typed
    from testbed.extensions.explain.search import explain
    from testbed.registry import registry

    if words and source is not None:
        raise TestbedError("give either --published or --source")
    values = typed(words)
    if prompts is not None:
        use(active().but(templates=templates_file(prompts)))
    registry.load(plugins)
    use_own_names(db_url)
    with Store.open(db_url, "write" if ask else "read") as store:
        origin = "as given"
        if not values:
            values, origin = claimed(store, model, setting, source)
        stages = [stage for stage in Stage if samples != 0 or stage != Stage.IMAGES]
        found = explain(
            store,
            registry,
            model,
            setting,
            values,
            samples=samples,
            device=device,
            stages=stages,
            say=note,
            thorough=thorough,
        )
        ask_again(EvaluatedCell.open(store, registry, model, setting), found, ask, samples, device, note)
    if as_json:
        print_json(_as_object(found, origin))
    else:
        _print(found, origin, everything)
    return 0


def _print(found: Explanation, origin: str, everything: bool) -> None:
    for target in found.targets:
        gap = difference(target.stored - target.value, FRACTION)
        click.echo(
            f"{target.metric}: published {_number(target.value, target.rounding)} ({origin}); stored"
            f" {percent(target.stored)} on {count(found.samples, 'sample')}; {gap}"
        )
    shown = [row for row in found.rows if row.verdict != "excluded"]
    excluded = [row for row in found.rows if row.verdict == "excluded"]
    kept = excluded if everything else excluded[:SHOWN]
    if not found.agrees:
        _print_rows(found, [*shown, *kept])
        if len(kept) < len(excluded):
            say(f"… and {len(excluded) - len(kept):,} more that are excluded (--all)")
        if found.combinations:
            click.echo(f"\nCombinations ({found.combinations_tried:,} tried):")
            _print_rows(found, found.combinations if everything else found.combinations[:SHOWN])
        _print_rest(found)
    _wrapped(found.sentence())
    _print_commands(found)


def _print_rows(found: Explanation, rows: Sequence[VariantResult]) -> None:
    if not rows:
        return
    header = [*(target.metric for target in found.targets), "± 95 %", "verdict", "variant"]
    lines = [[*map(_value, row.estimates), _width(row), row.verdict, row.name] for row in rows]
    click.echo("\n" + fitted(header, lines, range(len(found.targets) + 1), min(WIDTH, line_width() or WIDTH)))


def _value(estimate: SampledValue) -> str:
    return percent(min(max(estimate.value, 0.0), 1.0))


def _width(row: VariantResult) -> str:
    from testbed.extensions.explain.explanation import Z

    widest = max(row.estimates, key=lambda each: each.error)
    return "exact" if widest.exact and not widest.samples else percent(widest.half_width(Z))


def _print_rest(found: Explanation) -> None:
    reasons: dict[str, list[str]] = {}
    for axis, why in found.not_tried.items():
        reasons.setdefault(why, []).append(axis)
    click.echo()
    for why, names in reasons.items():
        _wrapped(f"Not tried: {', '.join(names)}: {why}.")
    for (axis, _), failed in groupby(found.failed, lambda each: (each[0].axis, each[1][:FIRST_WORDS])):
        several = list(failed)
        _wrapped(f"Not tried: {axis}: {', '.join(variant.name for variant, _ in several)}: {several[0][1]}.")
    if found.combinations_left:
        left = count(found.combinations_left, "combination")
        _wrapped(f"Not tried: {left} with too many new texts to embed, or more images than --samples allows.")
    if found.idle:
        _wrapped(f"No effect here: {', '.join(map(str, found.idle))}.")
    share = 100 * found.forwards / max(found.samples, 1)
    _wrapped(
        f"Read {count(found.images_read, 'image')}, ran the network on {count(found.forwards, 'image')}"
        f" ({share:.1f} % of an evaluation), embedded {count(found.texts, 'text')}."
        + (f" Sent {_requests(found)}." if found.requests else "")
    )


def _requests(found: Explanation) -> str:
    return " and ".join(f"{count(number, 'request')} to {name}" for name, number in found.asked.items())


def _print_commands(found: Explanation) -> None:
    from testbed.extensions.explain.named import command_for

    best = found.giving[0] if found.giving and not found.agrees else None
    if best is not None and not found.explained and len(best.variants) > 1:
        return
    made = command_for(found.model, found.eval_setting, best.variants) if best is not None else None
    if made:
        click.echo(f"  {made}")


def _number(value: float, rounding: float) -> str:
    """A published number with its digits."""
    digits = 2
    while digits < 12 and rounding and 100 * rounding < 0.49 * 10.0**-digits:
        digits += 1
    return percent(value, digits)


def _wrapped(text: str) -> None:
    width = min(WIDTH, line_width() or WIDTH)
    click.echo(textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False))


def _as_object(found: Explanation, origin: str) -> dict[str, Any]:
    from testbed.extensions.explain.named import command_for

    def row(each: VariantResult) -> dict[str, Any]:
        return {
            "variants": [{"axis": v.axis, "name": v.name, "stage": v.stage.name.lower()} for v in each.variants],
            "values": {
                target.metric: {"value": e.value, "error": e.error, "samples": e.samples}
                for target, e in zip(found.targets, each.estimates, strict=True)
            },
            "verdict": each.verdict,
            "command": command_for(found.model, found.eval_setting, each.variants),
        }

    return {
        "model": found.model,
        "eval_setting": found.eval_setting,
        "source": origin,
        "published": {
            target.metric: {"value": target.value, "rounding": target.rounding, "stored": target.stored}
            for target in found.targets
        },
        "samples": found.samples,
        "agrees": found.agrees,
        "explained": found.explained,
        "sentence": found.sentence(),
        "variants": [row(result) for result in found.rows],
        "combinations": [row(combination) for combination in found.combinations],
        "combinations_tried": found.combinations_tried,
        "combinations_left": found.combinations_left,
        "samples_that_decide_most": found.enough,
        "expected_by_chance": found.by_chance,
        "not_tried": found.not_tried,
        "failed": {str(variant): why for variant, why in found.failed},
        "change_nothing": [str(each) for each in found.idle],
        "images_read": found.images_read,
        "forward_passes": found.forwards,
        "texts_embedded": found.texts,
        "requests": found.requests,
        "requests_to": found.asked,
    }

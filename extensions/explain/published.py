"""The published values to explain: as typed, or from the claims in the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal, InvalidOperation

from testbed.claims.agreement import DEFINITION, rounding
from testbed.claims.names import eval_setting, weights
from testbed.db.store import Store
from testbed.entities import FRACTION, OVERALL, Claim
from testbed.errors import StoreError
from testbed.extensions.explain.cell import reported

MAIN = "top1"

Value = tuple[float, float]  # a fraction, and half a unit of its last printed digit


def typed(words: Sequence[str]) -> dict[str, Value]:
    """Parses typed values: ``76.13``, ``76.13%``, ``top5=92.86``, in percent.

    Raises:
        StoreError: If a word is invalid.
    """
    found: dict[str, Value] = {}
    for word in words:
        metric, equals, text = word.rpartition("=")
        metric = metric if equals else MAIN
        number = text.strip().removesuffix("%")
        try:
            value = Decimal(number)
        except InvalidOperation:
            raise StoreError(
                f"--published expects a number in percent, such as 76.13 or top5=92.86; got {word!r}"
            ) from None
        if not value.is_finite() or not 0 <= value <= 100:
            raise StoreError(f"--published expects a number from 0 to 100, in percent; got {word!r}")
        if 0 < value <= 1 and not text.strip().endswith("%"):
            raise StoreError(
                f"--published is in percent: write {(100 * value).normalize():f} for the fraction {value}, or {value}%"
            )
        if metric in found:
            raise StoreError(f"--published has two values of {metric}")
        found[metric] = float(value / 100), _half(value) / 100
    return found


def claimed(store: Store, model: str, setting: str, source: str | None = None) -> tuple[dict[str, Value], str]:
    """Finds the published values of a cell in the store, from one source.

    Args:
        store: The store with the claims.
        model: The model; includes claims about its weights under other names.
        setting: The eval setting.
        source: The name of the source; default the only one with values.

    Returns:
        Metric → value, and the source with its file.

    Raises:
        StoreError: If there are none, or several sources.
    """
    name, _ = eval_setting(setting)
    wanted = weights(model)
    claims = [each for each in store.claims.find(eval_settings=[name]) if weights(each.model) == wanted]
    cell = reported(store, model, setting)
    metrics = {metric.name for metric in store.results.metrics(cell.id)}
    able = [each for each in claims if _is_measured(each, metrics) and (source is None or _source(each) == source)]
    # Values in a model's definition are used if no other source has published any.
    able = [each for each in able if _source(each) != DEFINITION or source is not None] or able
    sources = list(dict.fromkeys(map(_source, able)))
    if not able:
        of = f" from {source}" if source else ""
        raise StoreError(
            f"the store has no published accuracy{of} of {model} on {setting}; give it with --published, or add a table"
            " with testbed published fetch or add"
        )
    if len(sources) > 1:
        values = ", ".join(f"{text}: {_first(able, text)}" for text in sources)
        raise StoreError(f"several sources have a value ({values}); choose one with --source")
    found: dict[str, Value] = {}
    for claim in able:
        found.setdefault(claim.metric, (claim.value, rounding(claim)))
    assert able[0].source is not None
    return found, f"{sources[0]}, {able[0].source.file}"


def _is_measured(claim: Claim, metrics: Collection[str]) -> bool:
    return claim.slice == OVERALL and claim.unit == FRACTION and claim.metric in metrics


def _source(claim: Claim) -> str:
    assert claim.source is not None
    return claim.source.name


def _first(claims: Iterable[Claim], source: str) -> str:
    claim = next(each for each in claims if _source(each) == source)
    return f"{claim.metric} {claim.published}"


def _half(printed: Decimal) -> float:
    """Half a unit of the last digit of a printed number."""
    exponent = printed.as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent) if isinstance(exponent, int) else 0.0

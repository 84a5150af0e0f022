"""Prints the outcome of checks of stored evaluations, as text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from testbed.console.output import count, say, say_some
from testbed.entities import are_new
from testbed.errors import RunError

if TYPE_CHECKING:
    from testbed.certificates import Certificate
    from testbed.execution.report import CheckResult

SHOWN = 10


def require_amount(text: str | None, option: str = "--verify") -> None:
    """Rejects an invalid value of ``--verify`` (or another option) before anything runs."""
    if text is None:
        return
    from testbed.runner.recompute import amount

    try:
        amount(text, option)
    except RunError as error:
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from None


def print_checks(checks: Sequence[CheckResult]) -> None:
    """Prints how many stored evaluations were checked, why, and which of them differ."""
    looked = [check for check in checks if check.certificate is not None]
    equal = [check for check in looked if check.result == "equal"]
    if looked:
        samples = sum(check.certificate.samples for check in looked if check.certificate is not None)
        told = f"Checked {count(len(looked), 'stored evaluation')} on {count(samples, 'sample')}"
        reasons = _reasons(looked)
        new = are_new(sorted({name for check in looked if check.certificate for name in check.certificate.new_metrics}))
        differ = f"{len(equal)} equal{_at_most(equal)}, {len(looked) - len(equal)} differ"
        say(f"{told}{f' ({reasons})' if reasons else ''}: {differ}{f'; {new}' if new else ''}.")
    differing = [f"Differs: {_name(check)}: {_moved(check)}" for check in looked if check.result == "differs"]
    say_some(differing, SHOWN, "Differs: {} more")
    unchecked: dict[str, list[str]] = {}
    for check in checks:
        if check.certificate is None:
            unchecked.setdefault(check.reason, []).append(_name(check))
    lines = [
        f"Not checked: {names[0] if len(names) == 1 else f'{len(names)} evaluations'}: {why}"
        for why, names in unchecked.items()
    ]
    say_some(lines, SHOWN, "Not checked: {} more")


def _at_most(equal: Sequence[CheckResult]) -> str:
    """The upper bound for the share of differing samples, given that none of the compared ones differ."""
    shares = [check.certificate.may_differ for check in equal if check.certificate is not None]
    known = [share for share in shares if share is not None]
    return f" (at most {100 * max(known):.2g} % of their samples may differ, at 95 % confidence)" if any(known) else ""


def describe_certificate(certificate: Certificate) -> str:
    """A comparison in one line."""
    parts = [f"{certificate.differing} of {count(certificate.samples, 'sample')} differ"]
    if certificate.largest_difference is not None:
        parts.append(f"largest relative difference {certificate.largest_difference:.2g}")
    if certificate.flips is not None:
        parts.append(f"{count(certificate.flips, 'answer')} flipped")
    if certificate.same_metrics is False:
        changes = f": {'; '.join(certificate.metric_changes)}" if certificate.metric_changes else ""
        parts.append(f"the metrics computed from the stored outputs differ{changes}")
    return "; ".join(filter(None, [", ".join(parts), are_new(certificate.new_metrics)]))


def describe_samples(certificate: Certificate) -> str:
    """The ids of the differing samples that the certificate has; begins with a semicolon."""
    ids = certificate.differing_samples
    if not ids:
        return ""
    more = f" and {certificate.differing - len(ids):,} more" if certificate.differing > len(ids) else ""
    return f"; {'sample' if len(ids) == 1 and not more else 'samples'} {', '.join(ids)}{more}"


def check_as_object(check: CheckResult) -> dict[str, Any]:
    """A check as JSON."""
    certificate = check.certificate
    return {
        "model": check.model,
        "eval_setting": check.eval_setting,
        "evaluation": check.evaluation,
        "because": list(check.because),
        "result": check.result,
        "reason": check.reason or None,
        "samples": certificate.samples if certificate else 0,
        "differing": certificate.differing if certificate else None,
        "flips": certificate.flips if certificate else None,
        "largest_difference": _finite(certificate.largest_difference) if certificate else None,
        "same_metrics": certificate.same_metrics if certificate else None,
        "may_differ": certificate.may_differ if certificate else None,
        "new_metrics": certificate.new_metrics if certificate else [],
        "metric_changes": certificate.metric_changes if certificate else [],
    }


def certificate_as_object(certificate: Certificate) -> dict[str, Any]:
    """A comparison as JSON."""
    return {
        "equal": certificate.equal,
        "samples": certificate.samples,
        "differing": certificate.differing,
        "differing_samples": certificate.differing_samples,
        "flips": certificate.flips,
        "flip_rate": certificate.flip_rate,
        "largest_difference": _finite(certificate.largest_difference),
        "tolerance": certificate.tolerance,
        "same_metrics": certificate.same_metrics,
        "may_differ": certificate.may_differ,
        "new_metrics": certificate.new_metrics,
        "metric_changes": certificate.metric_changes,
        "because": list(certificate.because),
        "created_at": certificate.created_at.isoformat() if certificate.created_at else None,
    }


def _finite(value: float | None) -> float | str | None:
    return value if value is None or value != float("inf") else "inf"


def _name(check: CheckResult) -> str:
    return f"{check.model} on {check.eval_setting}"


def _moved(check: CheckResult) -> str:
    assert check.certificate is not None
    why = f"{'; '.join(check.because)}: " if check.because else ""
    after = "; recomputed" if check.because else ""
    return f"{why}{describe_certificate(check.certificate)}{after} (before: evaluation {check.evaluation})"


def _reasons(checks: Sequence[CheckResult]) -> str:
    counted = Counter(reason for check in checks for reason in check.because)
    shown = [reason for reason, _ in counted.most_common(3)]
    return "; ".join(shown) + (f" and {len(counted) - 3} more" if len(counted) > 3 else "")

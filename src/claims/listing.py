"""Published values as a list: who reports what for which cell, when, where and under which conditions."""

from __future__ import annotations

from typing import Any

from testbed.entities import Claim, ClaimSource

HOST = "https://github.com"
NOTHING = "nothing is published for this cell"


def link(source: ClaimSource) -> str:
    """The address of a source's file at its commit; empty if its repository is not known."""
    if not source.repository or not source.path:
        return ""
    if not source.revision:
        return f"{HOST}/{source.repository}"
    return f"{HOST}/{source.repository}/blob/{source.revision}/{source.path}"


def conditions(claim: Claim) -> str:
    """The conditions of a measurement in words, such as prompts and image size; empty if the file has none."""
    return "; ".join(f"{key} {text}" for key, text in claim.protocol.items())


def listed(claim: Claim) -> dict[str, Any]:
    """A claim as an object for JSON and the explorer."""
    assert claim.source is not None
    return {
        **{"model": claim.model, "eval_setting": claim.eval_setting, "metric": claim.metric, "slice": claim.slice},
        **{"value": claim.value, "unit": claim.unit, "printed": claim.published, "n": claim.n},
        **{"source": claim.source.name, "date": claim.source.date, "conditions": claim.protocol},
        **{"file": claim.source.file, "row": claim.row, "link": link(claim.source), "why": claim.why},
    }

"""The document of disagreements: between sources, and between measured and published values."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from testbed.claims.agreement import PublishedValues, differing, in_words
from testbed.claims.compare import ClaimPair, disagreements
from testbed.claims.names import mapped_now
from testbed.db.store import Store
from testbed.entities import OVERALL, Claim

PATH = "disagreements"
BY = 1.0  # minimum difference of a listed pair, in points


class Disagreements:
    """The pairs of `testbed published disagree`, and published values that differ from measured ones.

    Args:
        store: The results store.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def paths(self) -> Iterator[str]:
        """The path of the document, if anything is published."""
        if self.store.claims.order():
            yield PATH

    def document(self, path: str) -> Any:
        """Returns the document."""
        if path != PATH:
            raise KeyError(path)
        found = disagreements(mapped_now(self.store, self.store.claims.find()))
        return {
            "sources": [
                {
                    "names": [disagreement.first, disagreement.second],
                    "summary": disagreement.summary(BY),
                    "pairs": [_pair(pair) for pair in disagreement.beyond(Decimal(repr(BY)))],
                }
                for disagreement in found
            ],
            "measured": self._measured(),
        }

    def _measured(self) -> list[dict[str, Any]]:
        published = PublishedValues.of_measured(self.store)
        if not published:
            return []
        compared = published.compare(self.store.results.find(slices=[OVERALL]))
        return [
            {
                "model": comparison.model,
                "setting": comparison.eval_setting,
                "evaluation": comparison.evaluation_id,
                "line": in_words(comparison, about=False),
            }
            for comparison in differing(compared)
        ]


def _pair(pair: ClaimPair) -> dict[str, Any]:
    return {
        "points": float(pair.points),
        "setting": pair.first.eval_setting,
        "metric": pair.first.metric,
        "slice": "" if pair.first.slice == OVERALL else pair.first.slice,
        "values": [_value(pair.first), _value(pair.second)],
    }


def _value(claim: Claim) -> dict[str, Any]:
    assert claim.source is not None
    return {"model": claim.model, "value": claim.value, "where": f"{claim.source.file}, {claim.row}"}

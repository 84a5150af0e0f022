"""Names of stored items that an evaluation is scored with, as its identity records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.data.language.class_vocabulary import READ_AS
from testbed.graph.cells import ItemNode
from testbed.models.base.class_reading import ClassReading

SCORED_BY = "scored_by"  # in what determines the metrics: the judge, as it was
SUBLIST = "class_sublist"
TEXTS, ITEMS, IMAGES = "texts", "items", "images"


def as_recorded(nodes: Sequence[ItemNode], texts: str = TEXTS) -> dict[str, Any]:
    """The nodes of some items for an identity; ``texts`` is the key of embeddings of texts."""
    by_role = {node.role: node.node for node in nodes}
    found: dict[str, Any] = {texts: by_role.pop(TEXTS)} if TEXTS in by_role else {}
    if by_role:
        found[ITEMS] = by_role
    return found


def scorer_of(identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """The judge of an evaluation: ``encoder`` (names its text embeddings), ``images`` (its image embeddings) and more.

    Args:
        identity: The identity in full.
    """
    found: dict[str, Any] | None = identity.get("view", {}).get(SCORED_BY)
    return found


def recorded_nodes(identity: Mapping[str, Any]) -> dict[str, str]:
    """Role → the name under which the items are stored that an evaluation of this identity is scored with."""
    scorer = scorer_of(identity) or {}
    found = {TEXTS: scorer.get("encoder") or identity.get(TEXTS), **identity.get(ITEMS, {}), **scorer.get(ITEMS, {})}
    return {role: node for role, node in found.items() if node}


def recorded_view(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The part of what determines the metrics that stays when an evaluation is scored again.

    That is the judge, and the outputs that the classes of the data were read as.
    """
    found, view = scorer_of(identity), identity.get("view") or {}
    read = {key: view[key] for key in (SUBLIST, READ_AS)} if READ_AS in view else {}
    return read if found is None else {SCORED_BY: found, **read}


def view_of_reading(read: ClassReading, among_present: bool) -> dict[str, Any]:
    """The outputs that stand for the classes of the data, as a part of what determines the metrics."""
    vocabulary = read.known.vocabulary
    return {
        SUBLIST: read.columns(among_present),
        READ_AS: {
            "outputs": vocabulary.title if vocabulary.published else list(vocabulary.ids),
            "among": "present" if among_present else "all",
        },
    }


def outputs_read(identity: Mapping[str, Any]) -> list[int] | None:
    """The outputs that count, where the classes of the data were matched to them by name."""
    view = identity.get("view") or {}
    return view[SUBLIST] if READ_AS in view else None

"""The sources of published values, for a bibliography."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from testbed.entities import ClaimSource


def bibliography(sources: Iterable[ClaimSource]) -> list[dict[str, Any]]:
    """Returns an entry for each source at each commit, with its files."""
    found: dict[tuple[str, str, str], list[ClaimSource]] = {}
    for source in sources:
        found.setdefault((source.name, source.repository, source.revision), []).append(source)
    return [
        {
            **{"name": name, "repository": repository, "revision": revision},
            "date": max(file.date for file in files),
            "files": [file.path for file in files],
        }
        for (name, repository, revision), files in found.items()
    ]

"""Documents of published values: their sources, and who reports what for which cell."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from testbed.claims.listing import conditions, link
from testbed.claims.names import mapped_now, short_names
from testbed.db.store import Store
from testbed.entities import OVERALL, Claim
from testbed.extensions.explorer.documents import number_in
from testbed.extensions.explorer.overview import Overview

SOURCES = "claims/sources"
MODELS = "claims/models"
PER_DOCUMENT = 16  # models


class Claims:
    """Documents of published values.

    ``claims/sources`` has the files of each source; ``claims/models`` the models of each source, by their positions in
    the index, and its numbers of values about each, and about models that are not in the index; ``claims/K`` what is
    published about sixteen models of the index.

    Args:
        store: The results store.
        overview: The models.
    """

    def __init__(self, store: Store, overview: Overview) -> None:
        self.store = store
        self.overview = overview

    def paths(self) -> Iterator[str]:
        """The path of every document, if anything is published."""
        if self.store.claims.order():
            yield from (SOURCES, MODELS)
            yield from (f"claims/{number}" for number in range(-(-len(self._models()) // PER_DOCUMENT)))

    def document(self, path: str) -> Any:
        """Returns one of these."""
        if path == SOURCES:
            return [
                {"name": of.name, "date": of.date, "file": of.path, "form": of.form, "rows": of.rows, "link": link(of)}
                for of in self.store.claims.sources()
            ]
        if path == MODELS:
            return self._by_source()
        kind, _, number = path.partition("/")
        if kind != "claims":
            raise KeyError(path)
        models = self._models()[PER_DOCUMENT * number_in(number) :][:PER_DOCUMENT]
        if not models:
            raise KeyError(path)
        found: dict[str, list[Any]] = {model: [] for model in models}
        files = [name for name, short in self._short.items() if short in found]
        for claim in mapped_now(self.store, self.store.claims.find([*models, *files])):
            if claim.model in found:
                found[claim.model].append(_row(claim))
        return found

    def _by_source(self) -> dict[str, dict[str, Any]]:
        places = {name: place for place, name in enumerate(self._models())}
        places |= {name: places[short] for name, short in self._short.items() if short in places}
        found: dict[str, dict[str, Any]] = {}
        for source, model, number in self.store.claims.counts():
            of = found.setdefault(source, {"models": [], "values": [], "others": 0})
            if model in places:
                of["models"].append(places[model])
                of["values"].append(number)
            else:
                of["others"] += number
        return found

    @cached_property
    def _short(self) -> dict[str, str]:
        return short_names(self.store, (model for _, model, _ in self.store.claims.counts()))

    def _models(self) -> list[str]:
        return list(self.overview.document("index")["models"]["name"])


def _row(claim: Claim) -> list[Any]:
    assert claim.source is not None
    part = "" if claim.slice == OVERALL else claim.slice
    about = [claim.eval_setting, claim.metric, part, claim.value, claim.unit, claim.n, conditions(claim)]
    return [*about, claim.source.name, claim.source.date, f"{claim.source.path}, {claim.row}", link(claim.source)]

"""The explorer as a web application: its files, the documents of a store, and pictures. It reads, and never writes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from testbed.db.store import Store
from testbed.errors import MissingExtraError, TestbedError
from testbed.extensions.explorer.documents import Explorer, as_json, number_in
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.files import asset, assets
from testbed.extensions.explorer.guard import Guard
from testbed.stored_results.pictures import CLEAN, OWN, Pictures, warm

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from testbed.registry.catalog import Catalog

INDEX = "index.html"
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_CACHE = 96 << 20  # bytes of cached documents
_FRESH = 2.0  # seconds before a store is checked for changes
_FILES = (b"<html ", b'<html data-documents="json" ')  # makes the page fetch its documents


class LiveExplorer:
    """The documents of the store's current state.

    Args:
        db_url: The store.
        catalog: The registry.
        metric: The metric to show first; None for each setting's main one.
        shown: The store's name on the page.
        pinned: The pinned models; None for the default.
    """

    def __init__(
        self,
        db_url: str | None,
        catalog: Catalog,
        metric: str | None,
        shown: str,
        pinned: Sequence[str] | None = None,
    ) -> None:
        self._db_url, self._catalog, self._metric, self._shown = db_url, catalog, metric, shown
        self._pinned = pinned
        self._lock = Lock()
        self._store: Store | None = None
        self._state: Any = None
        self._asked = 0.0
        self._explorer: Explorer | None = None
        self._pictures: Pictures | None = None
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def document(self, path: str) -> bytes:
        """Returns a document as JSON; documents are cached until the store changes.

        Raises:
            KeyError: If there is no document at this path.
            TestbedError: If the store cannot be read.
        """
        with self._lock:
            explorer, _ = self._current()
            if path not in self._kept:
                self._keep(path, as_json(explorer.document(path)))
            self._kept.move_to_end(path)
            return self._kept[path]

    def picture(self, number: int, position: int, which: str) -> bytes | str:
        """Returns a JPEG, or the reason why there is none.

        Raises:
            KeyError: If the setting is unknown.
            TestbedError: If the store cannot be read.
        """
        with self._lock:
            explorer, pictures = self._current()
            samples = samples_part(explorer).samples_of(number)
        return pictures.picture(samples, position, which)

    def warm(self) -> None:
        """Imports the dependencies of pictures in another thread, so that the first picture does not wait."""
        Thread(target=warm, name="warm", daemon=True).start()

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _keep(self, path: str, content: bytes) -> None:
        self._kept[path] = content
        self._bytes += len(content)
        while self._bytes > _CACHE and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1])

    def _current(self) -> tuple[Explorer, Pictures]:
        """The explorer of the current store, rebuilt after a change."""
        now = time.monotonic()
        if self._explorer is None or self._pictures is None or now - self._asked > _FRESH:
            self._refresh()
            self._asked = now
        assert self._explorer is not None
        assert self._pictures is not None
        return self._explorer, self._pictures

    def _refresh(self) -> None:
        if self._store is None:
            self._store = Store.open(self._db_url)
        state = self._store.results.state()
        if self._explorer is None or state != self._state:
            self._explorer = make_explorer(self._store, self._catalog, self._metric, self._shown, pinned=self._pinned)
            self._pictures = Pictures(self._store, self._catalog)
            self._state = state
            self._kept.clear()
            self._bytes = 0


def make_app(served: LiveExplorer, host: str) -> Guard:
    """Creates the application.

    Raises:
        MissingExtraError: If Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse, Response
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("starlette", "serve", "testbed serve") from None

    def file(request: Request) -> Response:
        name = request.path_params.get("name") or INDEX
        if name not in assets():
            return PlainTextResponse("not found", 404)
        content = asset(name).replace(*_FILES) if name == INDEX else asset(name)
        return _answer(content, _TYPES[name.rpartition(".")[2]])

    def document(request: Request) -> Response:
        return _answer(served.document(request.path_params["path"]), "application/json")

    def picture(request: Request) -> Response:
        asked = request.path_params
        which = CLEAN if asked.get("clean") else OWN
        found = served.picture(number_in(asked["number"]), number_in(asked["position"]), which)
        if isinstance(found, str):
            return PlainTextResponse(found, 404)
        return Response(found, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=60"})

    def _answer(content: bytes, kind: str) -> Response:
        return Response(content, media_type=f"{kind}; charset=utf-8", headers={"Cache-Control": "no-store"})

    def unreadable(request: Request, error: Exception) -> Response:
        return PlainTextResponse(str(error), 503)

    def unknown(request: Request, error: Exception) -> Response:
        return PlainTextResponse("not found", 404)

    def clean_picture(request: Request) -> Response:
        request.path_params["clean"] = True
        return picture(request)

    app = Starlette(
        routes=[
            Route("/", file),
            Route("/data/{path:path}.json", document),
            Route("/pictures/{number}/{position}-clean.jpg", clean_picture),
            Route("/pictures/{number}/{position}.jpg", picture),
            Route("/{name}", file),
        ],
        exception_handlers={TestbedError: unreadable, KeyError: unknown},
    )
    return Guard(app, host)

"""The explorer's pages from each of the servers that may show them."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.extensions.explorer.commands.serve import Page


@contextlib.contextmanager
def running(page: Page) -> Iterator[str]:
    """``testbed serve``."""
    thread = threading.Thread(target=page.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{page.port}"
    page.shutdown()
    thread.join(timeout=30)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@contextlib.contextmanager
def plain_server(folder: Path) -> Iterator[str]:
    """A web server that knows nothing but files."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()

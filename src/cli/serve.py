"""``db.py --serve``: the web page on this machine; each request reads the store."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click

from testbed.errors import TestbedError

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve_as_asked(given: dict[str, Any]) -> int:
    """``--serve`` with ``--host`` and ``--port``, until Ctrl-C."""
    from testbed.db.store import Store

    with Store.open(given["db_url"]) as store:
        shown = store.display_url
    server = make_server(given["db_url"], given["host"], given["port"], given["metric"] or "top1", shown)
    host, port = server.server_address[:2]
    name = f"[{host!s}]" if ":" in str(host) else str(host)
    click.echo(f"the results in {shown} are at http://{name}:{port}/ (Ctrl-C ends it)")
    if given["host"] not in LOOPBACK:
        click.echo("note: anyone who reaches this machine can read them", err=True)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
    return 0


def make_server(db_url: str | None, host: str, port: int, metric: str, shown: str) -> ThreadingHTTPServer:
    """A listening server that serves only the page and its data.

    Args:
        db_url: The store.
        host: The address to listen on.
        port: The port; 0 picks a free one.
        metric: The metric to show.
        shown: The store's name on the page.

    Raises:
        TestbedError: If the address or port is not available.
    """
    handler = type("_Page", (_Handler,), {"db_url": db_url, "metric": metric, "shown": shown, "host": host})
    try:
        return ThreadingHTTPServer((host, port), handler)
    except OSError as error:
        raise TestbedError(f"cannot listen on {host}:{port}: {error.strerror or error}; try another --port") from error


class _Handler(BaseHTTPRequestHandler):
    db_url: str | None
    metric: str
    shown: str
    host: str

    def do_GET(self) -> None:
        """A file of the page, or the data."""
        from testbed.plotting.site import PAGES, page, script, site_data

        # Prevents DNS rebinding: a foreign page whose host name resolves to this machine must not read the results.
        asked_for = self.headers.get("Host", "").rpartition(":")[0].strip("[]") or self.headers.get("Host", "")
        if self.host in LOOPBACK and asked_for not in LOOPBACK:
            self.send_error(403, "only this machine may read this page")
            return
        name = self.path.partition("?")[0].lstrip("/") or "index.html"
        if name == "data.js":
            try:
                content = script({**site_data(self.db_url, self.metric), "source": self.shown})
            except TestbedError as error:
                self.send_error(503, "the results cannot be read", str(error))  # the short message must be ASCII
                return
        elif name in ("index.html", *PAGES):
            content = page("site.html" if name == "index.html" else name)
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", f"{TYPES['.' + name.rpartition('.')[2]]}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""

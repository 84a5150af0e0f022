"""``testbed serve``: serves the explorer on this machine; its pages follow the store."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import note_parts, pin_option, shown_first_option
from testbed.console.options import data_root_option, plugin_option, store_command, use_own_names
from testbed.errors import MissingExtraError, TestbedError

if TYPE_CHECKING:
    import uvicorn

    from testbed.registry.catalog import Catalog

_SECONDS = 2  # for pending requests at shutdown


@store_command
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="The port; 0 picks a free one."
)
@shown_first_option
@pin_option
@plugin_option
@data_root_option
def command(
    host: str, port: int, metric: str | None, pins: Sequence[str], plugins: Sequence[str], db_url: str | None
) -> int:
    """Show results in the browser, on this machine, until Ctrl-C."""
    from testbed.db.store import Store
    from testbed.extensions.explorer.defaults import known_models
    from testbed.extensions.explorer.guard import is_loopback
    from testbed.registry import registry

    registry.load(plugins)
    use_own_names(db_url)
    with Store.open(db_url) as store:
        shown = store.display_url
        note_parts(store)
        pinned = known_models(store, pins) or None
    page = Page(db_url, host, port, metric, shown, registry, pinned)
    name = f"[{page.host}]" if ":" in page.host else page.host
    click.echo(f"the results in {shown} are at http://{name}:{page.port}/ (press Ctrl-C to stop)")
    if not is_loopback(host):
        click.echo("note: anyone who can reach this machine can read them", err=True)
    try:
        page.serve_forever()
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    return 0


class Page:
    """A server for the page, its documents and pictures of samples.

    Args:
        db_url: The store.
        host: The address to listen on.
        port: The port; 0 picks a free one.
        metric: The metric to show first; None for each setting's main one.
        shown: The store's name on the page.
        catalog: The registry, loaded.
        pinned: The pinned models; None for the default.

    Raises:
        MissingExtraError: If the extra ``serve`` is not installed.
        TestbedError: If the address or port is not available.
    """

    def __init__(
        self,
        db_url: str | None,
        host: str,
        port: int,
        metric: str | None,
        shown: str,
        catalog: Catalog,
        pinned: Sequence[str] | None = None,
    ) -> None:
        from testbed.extensions.explorer.app import LiveExplorer, make_app

        self._served = LiveExplorer(db_url, catalog, metric, shown, pinned)
        self._server = _server(make_app(self._served, host))
        self._socket = _listening(host, port)
        self.host, self.port = self._socket.getsockname()[:2]

    def serve_forever(self) -> None:
        """Answers requests until `shutdown`, or Ctrl-C, which raises KeyboardInterrupt."""
        self._served.warm()
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._served.close()

    def shutdown(self) -> None:
        """Stops `serve_forever` in another thread."""
        self._server.should_exit = True


def _server(app: Any) -> uvicorn.Server:
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "serve", "testbed serve") from None
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=_SECONDS,
        )
    )


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends answers without delay only if the protocol is given; otherwise each takes 40 ms more.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()
    except OSError as error:
        made.close()
        raise TestbedError(f"cannot listen on {host}:{port}: {error.strerror or error}; try another --port") from error
    return made

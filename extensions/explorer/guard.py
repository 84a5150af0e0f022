"""Prevents other pages in the same browser from reading the explorer's server.

Three measures: requests from pages of other sites are refused; so are those that name another host (DNS
rebinding); and the headers of every answer restrict it to pages of this server.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
HEADERS = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self' data: blob: 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?", re.IGNORECASE)
_OWN = (None, "same-origin", "none")  # values of Sec-Fetch-Site; old browsers and programs do not send it


def is_loopback(host: str) -> bool:
    """Returns whether an address is reachable only from this machine."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


class Guard:
    """An application that accepts only requests from its own pages or from a person.

    Args:
        app: The application behind it.
        host: The address that it listens on. On a loopback address, requests must name this machine; on others, any
            address, a name of this machine, or one without a dot, which nobody can register.
    """

    def __init__(self, app: Callable[..., Any], host: str) -> None:
        self.app = app
        self.local = is_loopback(host)
        self.names = LOOPBACK | {host.lower()} | (frozenset() if self.local else _names())

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Passes a request on, or refuses it."""
        from starlette.responses import PlainTextResponse

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # only HTTP is supported
            await send({"type": "websocket.close"})
            return
        if reason := self._refusal(scope):
            await PlainTextResponse(reason, 403)(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)

    def _refusal(self, scope: Mapping[str, Any]) -> str | None:
        """The reason for refusing a request; None to accept it."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
        if len(hosts) != 1 or not self._is_named(hosts[0]):
            if self.local:
                return "only this machine may read this page, by the address that testbed serve printed"
            return "open this page by the address of the machine or its short name; --host NAME allows a longer one"
        if "origin" in headers and headers["origin"].partition("://")[2] != hosts[0]:
            return "pages of another site may not read this"
        if headers.get("sec-fetch-site") not in _OWN and not _opens_page(scope, headers):
            return "pages of another site may not read this"
        return None

    def _is_named(self, given: str) -> bool:
        """Returns whether the host of a request belongs to this server."""
        found = _HOST.fullmatch(given)
        if found is None:
            return False
        name = (found[1] or found[2]).lower()
        return name in self.names or (not self.local and ("." not in name or _is_address(name)))


def _opens_page(scope: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
    """Returns whether the request is a link to the page itself, which contains no results."""
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return opened and scope["path"] == "/" and scope["method"] == "GET"


def _names() -> frozenset[str]:
    return frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

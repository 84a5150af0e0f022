"""A web server on this machine with files, which may hang up early, move files or refuse."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        if server.status:
            self.send_error(server.status)
            return
        if self.path in server.moved:
            self.send_response(302)
            self.send_header("Location", server.moved[self.path])
            self.end_headers()
            return
        content = server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = 0
        given = self.headers.get("Range")
        if given and self.headers.get("If-Range") == server.tag:
            start = int(given.removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if server.tag:
            self.send_header("ETag", server.tag)
        for name, value in server.said.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = len(content)
        if server.cuts:
            end = start + server.cuts.pop(0)
        self.wfile.write(content[start:end])

    def do_HEAD(self):
        self.send_response(200 if self.path in self.server.files else 404)
        for name, value in self.server.said.items():
            self.send_header(name, value)
        if self.server.tag:
            self.send_header("ETag", self.server.tag)
        self.send_header("Content-Length", str(len(self.server.files.get(self.path, b""))))
        self.end_headers()

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serving(files: Mapping[str, bytes]) -> Iterator[ThreadingHTTPServer]:
    """A web server with files by path; ``cuts`` are after how many bytes it hangs up, ``said`` are further headers."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.files, served.said = dict(files), {}
    served.asked, served.cuts, served.moved, served.tag, served.status = [], [], {}, '"one"', 0
    served.url = f"http://127.0.0.1:{served.server_port}"
    thread = threading.Thread(target=served.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield served
    finally:
        served.shutdown()
        thread.join()
        served.server_close()


def files_below(folder: Path, at: str) -> dict[str, bytes]:
    """The files of a folder by the paths under which a server has them."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {f"{at}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in found}

"""A server like OpenAI's, for tests: it answers chat completions as a function says, and notes what it was asked."""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image


@dataclass(frozen=True)
class Reply:
    """What the server says: JSON, or a text as it is; after some seconds."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class Asked:
    """What the server was asked."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    path: str

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts of the last message."""
        content = self.body["messages"][-1]["content"]
        return [{"type": "text", "text": content}] if isinstance(content, str) else content

    @property
    def image(self) -> Image.Image:
        """The first picture of the last message."""
        url = next(each["image_url"]["url"] for each in self.parts if each["type"] == "image_url")
        return Image.open(io.BytesIO(base64.b64decode(url.partition("base64,")[2])))


Behaviour = Callable[[Asked], Reply]


class ChatServer:
    """A server; ``behave`` says what it replies, and may be replaced at any time."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.asked: list[Asked] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(body, headers, self.path)
                server.asked.append(asked)
                reply = server.behave(asked)
                time.sleep(reply.seconds)
                data = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
                self.send_response(reply.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except (BrokenPipeError, ConnectionResetError):  # who asked has given up
                    self.close_connection = True

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def take(self) -> list[Asked]:
        """What was asked since this was last called."""
        taken, self.asked = self.asked, []
        return taken

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(behave: Behaviour) -> Iterator[ChatServer]:
    """A server within."""
    server = ChatServer(behave)
    try:
        yield server
    finally:
        server.close()


def completion(text: str | None, finish_reason: str = "stop", **more: Any) -> dict[str, Any]:
    """The JSON of an answer."""
    message = {"role": "assistant", "content": text, **more}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1750000000,
        "model": "toy-2026-11-01",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def failure(message: str, status: int, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    """A reply with an error, as OpenAI writes them."""
    return Reply({"error": {"message": message, "type": "some", **more}}, status, headers or {})

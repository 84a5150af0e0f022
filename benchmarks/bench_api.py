"""Asking a served model 32 questions at a time against one at a time, where an answer takes 100 ms.

    python benchmarks/bench_api.py [--questions 64] [--together 32] [--milliseconds 100] [--repeats 3]

The server is a thread of this process that only waits, so the ratio is what the client itself leaves of the 32.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click
from paired import compare, machine

from testbed.models.api import ApiModel
from testbed.models.base.capability import GenerationConfig, Message
from testbed.models.base.definition import LoadOptions
from testbed.workers.kernels.answering import Answerer

ANSWER = {"choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}


def serve(seconds: float) -> str:
    """Starts a server that answers after some time; returns its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # one packet an answer: two would wait for each other (Nagle)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(seconds)
            data = json.dumps(ANSWER).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


@click.command()
@click.option("--questions", default=64, show_default=True)
@click.option("--together", default=32, show_default=True)
@click.option("--milliseconds", default=100, show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(questions: int, together: int, milliseconds: int, repeats: int) -> None:
    """Prints the ratio of the two times, and how many times as fast that is."""
    click.echo(machine())
    loaded = ApiModel("model", "model", serve(milliseconds / 1000)).load(LoadOptions())
    messages = [Message([f"Is {number} a prime?"]) for number in range(questions)]

    def ask(size: int) -> None:
        answers = Answerer("model", GenerationConfig(), size, 0).answer(loaded, messages)
        assert all(isinstance(entry, dict) and entry["text"] == "yes" for entry in answers)

    what = f"{questions} questions of {milliseconds} ms, {together} at a time"
    ratio = compare(what, lambda: ask(together), lambda: ask(1), repeats)
    click.echo(f"{1 / ratio:.1f} times as fast")


if __name__ == "__main__":
    main()

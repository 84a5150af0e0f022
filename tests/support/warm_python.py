"""Programs run in processes forked from one that has imported torch already: as real as others, and seconds faster.

No models or settings are defined beforehand; each program does so anew. Started as a program itself, this file is that
process: a request a line, an answer a line, as JSON.
"""

from __future__ import annotations

import ast
import gc
import importlib.util
import json
import multiprocessing.forkserver
import multiprocessing.util
import os
import runpy
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

HEAVY = (
    *("torch", "torchvision", "alembic.command", "sqlalchemy.orm", "rich.progress", "click", "PIL.Image"),
    *("scipy.stats", "pandas", "sklearn.linear_model", "nltk", "safetensors.torch", "sqlalchemy.dialects.sqlite"),
    *(
        "testbed.cli.eval",
        "testbed.cli.db",
        "testbed.cli.program",
        "testbed.cli.run.dry_run",
        "testbed.runner.run",
        "testbed.execution.inline",
    ),
    *("testbed.runner.recompute", "testbed.workers.kernels.images", "testbed.workers.messages"),
    "testbed.tasks.judged_answers",
)

EXTRAS = ("transformers", "sentence_transformers", "timm", "open_clip", "openai", "openpyxl")


class WarmPython:
    """The client: runs programs, one at a time."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, script: Path, words: Sequence[str], folder: Path, environment: Mapping[str, str], anew: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """What running a script in a folder gives; with testbed imported anew where another checkout runs."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        out, err = folder / ".stdout", folder / ".stderr"
        request = {"argv": [str(script), *words], "folder": str(folder), "environment": dict(environment), "anew": anew}
        self._server.stdin.write(json.dumps({**request, "out": str(out), "err": str(err)}) + "\n")
        self._server.stdin.flush()
        code = json.loads(self._server.stdout.readline())
        told = [path.read_text() for path in (out, err)]
        out.unlink()
        err.unlink()
        return subprocess.CompletedProcess(request["argv"], code, *told)

    def close(self) -> None:
        """Ends the server."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=30)


def serve() -> None:
    """Forks a process for each request and answers with its exit code."""
    for name in HEAVY:
        __import__(name)
    for name in EXTRAS:
        if importlib.util.find_spec(name):
            __import__(name)
    gc.freeze()  # or else a collection in each process would copy the memory that they share
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            become(**request)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def become(argv: list[str], folder: str, environment: dict[str, str], anew: bool, out: str, err: str) -> None:
    """Turns this process into the program; never returns."""
    for name in [name for name in sys.modules if anew and name.partition(".")[0] == "testbed"]:
        del sys.modules[name]
    code: object = 1
    try:
        for path, descriptor in ((os.devnull, 0), (out, 1), (err, 2)):
            os.dup2(
                os.open(path, os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor
            )
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv, sys.path[0] = argv, os.path.dirname(argv[0])
        fork_the_fork_server()
        runpy.run_path(argv[0], run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def fork_the_fork_server() -> None:
    """Has the server from which the program's workers are forked be forked from here, too, with torch imported."""
    ours, theirs = socket.socketpair()
    waiting = os.fork()
    if waiting == 0:
        ours.close()
        given, descriptors, *_ = socket.recv_fds(theirs, 1 << 16, 2)
        if given:
            preload, more = ast.literal_eval(given.decode())
            multiprocessing.forkserver.main(*descriptors, preload, **more)
        os._exit(0)
    theirs.close()
    spawn = multiprocessing.util.spawnv_passfds

    def start(path: bytes, words: Sequence[str], descriptors: Sequence[int]) -> int:
        if "forkserver import main" not in words[-1]:
            return spawn(path, words, descriptors)
        multiprocessing.util.spawnv_passfds = spawn  # another one starts anew
        call = ast.parse(words[-1]).body[1].value
        more = [each.value for each in call.keywords]
        socket.send_fds(ours, [f"({ast.unparse(call.args[2])}, {ast.unparse(more[0])})".encode()], descriptors)
        return waiting

    multiprocessing.util.spawnv_passfds = start


if __name__ == "__main__":
    serve()

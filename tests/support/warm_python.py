"""Programs run in processes forked from one that has imported torch already: as real as others, and seconds faster.

Testbed's own models and settings are defined beforehand; each program loads the plug-ins. Started as a program itself,
this file is that process, which all processes of a test run share: a request a line, an answer a line, as JSON.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import faulthandler
import gc
import importlib.util
import json
import multiprocessing.forkserver
import multiprocessing.util
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
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
    *("testbed.runner.recompute", "testbed.workers.kernels.images", "testbed.workers.kernels.messages"),
    "testbed.tasks.judged_answers",
)

LIMIT = 400  # seconds for a program; a test has 600

WITHOUT_WORKERS = ("db.py", "given.py")
STARTING_WORKERS = frozenset({"run", "watch", "corrupt", "rescore", "verify"})  # commands of testbed
LARGE_PAGE, MADV_COLLAPSE = 1 << 21, 25

EXTRAS = ("transformers", "sentence_transformers", "timm", "open_clip", "openai", "openpyxl")


class WarmPython:
    """The client: runs programs, one at a time.

    Args:
        address: Of the server's socket. The first that needs the server starts it, and ends it.
    """

    def __init__(self, address: Path) -> None:
        self._address = address
        self._server: subprocess.Popen[bytes] | None = None
        self._connect()

    def _connect(self) -> None:
        self._link = self._connected()
        self._answers = self._link.makefile("r")

    def run(
        self, script: Path, words: Sequence[str], folder: Path, environment: Mapping[str, str], anew: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """What running a script in a folder gives; with testbed imported anew where another checkout runs.

        One that hangs is ended, and its standard error then holds what each of its threads was doing.
        """
        # Under names that no source file says: those count as files that a program may read.
        out, err = (folder / f"{name}-{os.getpid()}" for name in (".stdout", ".stderr"))
        request = {"argv": [str(script), *words], "folder": str(folder), "environment": dict(environment), "anew": anew}
        self._link.sendall(json.dumps({**request, "files": [os.devnull, str(out), str(err)]}).encode() + b"\n")
        try:
            self._answers.readline()  # its number
            code = json.loads(self._answers.readline())
        except BaseException:  # a test's time is over, say: the next program is not to be given this one's answer
            self._answers.close()
            self._link.close()
            self._connect()
            raise
        told = [path.read_text() for path in (out, err)]
        out.unlink()
        err.unlink()
        return subprocess.CompletedProcess(request["argv"], code, *told)

    def start(self, text: str, words: Sequence[str], folder: Path) -> StartedProgram:
        """Starts a program, given as text, that imports no module of the tests and starts no workers."""
        number = len(list(folder.glob("given-*")))
        home = folder / f"given-{number}"
        home.mkdir()
        (home / "given.py").write_text(text)
        return StartedProgram(self._connected(), home, words)

    def _connected(self) -> socket.socket:
        """A connection to the server; the one who started it may have ended it, and then this client starts another."""
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(FileExistsError):
                self._address.with_suffix(".started").touch(exist_ok=False)
                self._server = subprocess.Popen([sys.executable, __file__, str(self._address)], stdin=subprocess.PIPE)
            link = socket.socket(socket.AF_UNIX)
            try:
                link.connect(str(self._address))
                return link
            except (FileNotFoundError, ConnectionRefusedError):
                link.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def close(self) -> None:
        """Ends what serves this client, and the server if it has started it."""
        self._answers.close()
        self._link.close()
        if self._server is not None:
            assert self._server.stdin is not None
            self._address.unlink()
            self._address.with_suffix(".started").unlink()
            self._server.stdin.close()
            self._server.wait(timeout=30)


class StartedProgram:
    """A program that runs beside the test, with pipes to it, as `subprocess.Popen` of a Python has them.

    Args:
        link: A connection to the server.
        home: Has the program, and gets its pipes.
        words: The program's arguments.
    """

    def __init__(self, link: socket.socket, home: Path, words: Sequence[str]) -> None:
        pipes = [home / name for name in ("stdin", "stdout", "stderr")]
        for pipe in pipes:
            os.mkfifo(pipe)
        argv = [str(home / "given.py"), *words]
        request = {"argv": argv, "folder": os.getcwd(), "environment": dict(os.environ), "anew": False}
        self.returncode: int | None = None
        self._link = link
        self._link.sendall(json.dumps({**request, "files": [str(pipe) for pipe in pipes]}).encode() + b"\n")
        self._answers = self._link.makefile("r")
        self.pid = int(self._answers.readline())
        self.stdin = pipes[0].open("w")  # in the order in which the program opens them: each waits for the other
        self.stdout, self.stderr = pipes[1].open(), pipes[2].open()

    def poll(self) -> int | None:
        """Its exit code if it has ended."""
        if self.returncode is None and select.select([self._link], [], [], 0)[0]:
            self.returncode = int(self._answers.readline())
        return self.returncode

    def kill(self) -> None:
        """Ends it, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        """Waits for its end; returns what is left to read of its output and errors, which must fit into pipes."""
        self.stdin.close()
        if self.returncode is None:
            self._link.settimeout(timeout)
            self.returncode = int(self._answers.readline())
        return self.stdout.read(), self.stderr.read()

    def close(self) -> None:
        """Ends it if that is needed, and closes what led to it."""
        self.kill()
        for each in (self.stdin, self.stdout, self.stderr, self._answers, self._link):
            each.close()


def serve(address: str) -> None:
    """Forks a process for each client, until standard input ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    for name in HEAVY:
        __import__(name)
    for name in EXTRAS:
        if importlib.util.find_spec(name):
            __import__(name)
    warm_up()
    gc.freeze()  # or else a collection in each process would copy the memory that they share
    ask_for_large_pages()
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        link, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(link)
        link.close()


def warm_up() -> None:
    """Does once what each program would do for itself with the same outcome, which is half of a small run's time.

    The definition files are imported (each program still asks for them), a toy is evaluated, and what SQLAlchemy makes
    of a statement is kept for all databases of a kind. What was noted of files and reads meanwhile is forgotten.
    """
    from places import ROOT
    from toy import toy_catalog, toy_model, toy_setting

    from testbed.execution.progress import SilentProgress
    from testbed.graph.options import RunOptions
    from testbed.installed import installed_points
    from testbed.provenance import uses
    from testbed.registry import registry
    from testbed.runner.run import run
    from testbed.tracing import access_log, own_code, versions

    registry._state = "own definitions"  # or else a definition that looks at the registry would load the plug-ins
    registry._load_rooms()
    registry._state = "empty"
    here = sys.path[0]
    for sys.path[0] in (str(ROOT), str(ROOT / "tests" / "support" / "bin")):  # the folders of the programs
        installed_points(own_code.PLUGIN_GROUP)
    sys.path[0] = here
    share_statements()
    before = [set(noted) for noted in (access_log._noted, access_log._fresh)]
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(db_url=f"sqlite:///{folder}/store.db", executor="inline")
        for _ in range(2):
            run(toy_catalog(toy_model(), toy_setting()), options, ["toy"], ["toy-all"], SilentProgress())
    for noted, kept in zip((access_log._noted, access_log._fresh), before, strict=True):
        noted.intersection_update(kept)
    versions.forget()
    uses._named_files.cache_clear()
    assert threading.active_count() == 1  # a fork would lose the others, and what they have locked


def share_statements() -> None:
    """Lets all databases of a kind share what SQLAlchemy makes of a statement; it does so for each connection alone."""
    from sqlalchemy.engine import Engine
    from sqlalchemy.engine.default import DefaultDialect
    from sqlalchemy.util import LRUCache

    statements, begin = LRUCache(4096), Engine.__init__

    def __init__(self: Engine, *words: object, **more: object) -> None:
        begin(self, *words, **more)
        self._compiled_cache = statements

    def kind(self: DefaultDialect) -> tuple[object, ...]:
        return type(self), self.paramstyle, self.server_version_info

    Engine.__init__ = __init__
    DefaultDialect.__hash__ = lambda self: hash(type(self))
    DefaultDialect.__eq__ = lambda self, other: isinstance(other, DefaultDialect) and kind(self) == kind(other)


def answer(link: socket.socket) -> None:
    """Forks a process for each request and answers with its exit code; never returns."""
    for line in link.makefile("r"):
        pid = os.fork()
        if pid == 0:
            os.close(link.fileno())
            become(**json.loads(line))
        link.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        link.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(argv: list[str], folder: str, environment: dict[str, str], anew: bool, files: list[str]) -> None:
    """Turns this process into the program; never returns."""
    sys.argv, sys.path[0] = argv, os.path.dirname(argv[0])
    for name in [name for name in sys.modules if anew and name.partition(".")[0] == "testbed"]:
        del sys.modules[name]
    code: object = 1
    try:
        for descriptor, path in enumerate(files):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC if descriptor else os.O_RDONLY), descriptor)
        faulthandler.dump_traceback_later(LIMIT, exit=True, file=2)
        os.chdir(folder)
        if not anew:  # a program begins now: what lies there already is not a result of it
            sys.modules["testbed.provenance.uses"]._BEGAN = time.time()
        os.environ.clear()
        os.environ.update(environment)
        if may_start_workers(argv):
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


def ask_for_large_pages() -> None:
    """Has Linux keep this process's 600 MB in pages of 2 MB, where it can: each fork then takes 20 ms instead of 50."""
    with contextlib.suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for line in Path("/proc/self/maps").read_text().splitlines():
            addresses, access, _, _, file, *name = line.split()
            start, end = (int(each, 16) for each in addresses.split("-"))
            start, end = -(-start // LARGE_PAGE) * LARGE_PAGE, end // LARGE_PAGE * LARGE_PAGE
            if access == "rw-p" and file == "0" and name in ([], ["[heap]"]) and start < end:
                advise(start, end - start, MADV_COLLAPSE)


def may_start_workers(argv: Sequence[str]) -> bool:
    """Checks whether a program may fork workers; where this is wrong, it only takes longer to start them."""
    name, words = os.path.basename(argv[0]), argv[1:]
    if "inline" in words:
        return "--workers" in words  # that read images
    return name not in WITHOUT_WORKERS and (name != "testbed" or not STARTING_WORKERS.isdisjoint(words))


def fork_the_fork_server() -> None:
    """Has the server from which the program's workers are forked be forked from here, too, with torch imported."""
    ours, theirs = socket.socketpair()
    waiting = os.fork()
    if waiting == 0:
        ours.close()
        given, descriptors, *_ = socket.recv_fds(theirs, 1 << 16, 2)
        if given:
            fork_servers_by(fork_a_workers_fork_server)
            become_a_fork_server(given.decode(), descriptors)
        os._exit(0)
    theirs.close()

    def start(words: str, descriptors: Sequence[int]) -> int:
        socket.send_fds(ours, [words.encode()], descriptors)
        return waiting

    fork_servers_by(start)


def fork_servers_by(start: Callable[[str, Sequence[int]], int]) -> None:
    """Has the next fork server be started by a function of its words and descriptors, not by a new Python."""
    spawn = multiprocessing.util.spawnv_passfds

    def instead(path: bytes, words: Sequence[str], descriptors: Sequence[int]) -> int:
        if "forkserver import main" not in words[-1]:
            return spawn(path, words, descriptors)
        multiprocessing.util.spawnv_passfds = spawn  # another one starts anew
        return start(words[-1], descriptors)

    multiprocessing.util.spawnv_passfds = instead


def become_a_fork_server(words: str, descriptors: Sequence[int]) -> None:
    """Serves as the fork server that a new Python would be, told the same words."""
    call = ast.parse(words).body[1].value
    preload, more = ast.literal_eval(call.args[2]), ast.literal_eval(call.keywords[0].value)
    multiprocessing.forkserver.main(*descriptors, preload, **more)


def fork_a_workers_fork_server(words: str, descriptors: Sequence[int]) -> int:
    """Forks, from a worker that has no job's files yet, the server of the processes that read images for it."""
    pid = os.fork()
    if pid == 0:
        try:
            kept = sorted({0, 1, 2, *descriptors})
            for before, after in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
                os.closerange(before + 1, after)  # the run must see that the worker has ended
            multiprocessing.forkserver._forkserver.__init__()  # its lock is held by who asks for the server
            sys.modules.pop("testbed.process.fork_server", None)  # which ends this one with the worker
            become_a_fork_server(words, descriptors)
        finally:
            os._exit(0)
    return pid


if __name__ == "__main__":
    serve(sys.argv[1])

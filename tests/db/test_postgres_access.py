"""Postgres as docs/clusters.md sets it up: roles, passwords, TLS, bounded connections."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest
from stored_cells import put, samples_of, saying

from testbed.db.connection import engine
from testbed.db.store import Store, upgrade
from testbed.errors import ReadOnlyStoreError, StoreError, StoreUnreachableError

SAMPLES = samples_of([0, 1])


@pytest.fixture
def roles(root: Path) -> Iterator[Any]:
    """A function from a role to its URL, on a server where the page's SQL was executed."""
    admin, owner = re.findall(
        r"```sql\n(.*?)```", (root / "docs" / "clusters.md").read_text(encoding="utf-8"), re.DOTALL
    )
    with postgres_server.own_server() as server:

        def url(role: str) -> str:
            return f"postgresql://testbed_{role}@127.0.0.1:{server.port}/testbed"

        for address, statements in ((server.url, admin), (url("owner"), owner)):
            with psycopg.connect(address, autocommit=True) as connection:
                for statement in filter(str.strip, statements.split(";")):
                    connection.execute(statement)
        yield url


def test_an_owner_makes_the_store_a_writer_writes_and_a_reader_reads(roles: Any) -> None:
    for role in ("reader", "writer"):
        with pytest.raises(StoreError):  # neither may make tables
            upgrade(roles(role))
    assert upgrade(roles("owner"))[0] is None
    assert upgrade(roles("owner")) == (upgrade(roles("owner"))[1],) * 2
    with Store.open(roles("writer"), "write") as store:
        store.leases.begin_run("eval.py")
        evaluation = put(store, "net", "shown", SAMPLES, saying([0, 1]))
        assert store.leases.lease([evaluation.id], 0, 4).free == {evaluation.id: [(2, 4)]}
        store.leases.end_run("complete")
        store.removal.hide_evaluation(evaluation.id)
        store.removal.purge()
        put(store, "net", "shown", SAMPLES, saying([0, 1]))
    with Store.open(roles("reader")) as store:
        assert [each.metric for each in store.results.find()] == ["top1"]
        assert len(store.leases.runs()) == 1
    with Store.open(roles("reader"), "write") as store, pytest.raises(ReadOnlyStoreError, match="permission denied"):
        put(store, "other", "shown", SAMPLES, saying([0, 1]))


@pytest.fixture
def certificates() -> Iterator[Path]:
    """A folder with key.pem and certificate.pem for 127.0.0.1, which the user that runs the server can read."""
    folder = Path(tempfile.mkdtemp(prefix="testbed-tls-", dir="/tmp"))
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run([*words.split(), *files], check=True, capture_output=True)
    (folder / "key.pem").chmod(0o600)
    if user := postgres_server.ordinary_user():
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, user)
    yield folder
    shutil.rmtree(folder)


def test_a_password_comes_from_a_file_and_the_connection_is_encrypted(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(variable, raising=False)
    options = f"-c ssl=on -c ssl_cert_file={certificates}/certificate.pem -c ssl_key_file={certificates}/key.pem"
    with postgres_server.own_server(options, login="scram-sha-256") as server:
        url = f"{server.url}?sslmode=verify-full&sslrootcert={certificates}/certificate.pem"
        with pytest.raises(StoreUnreachableError, match="password"):
            Store.create(url)
        passwords = tmp_path / "pgpass"
        passwords.write_text(f"127.0.0.1:{server.port}:postgres:postgres:secret\n")
        passwords.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(passwords))
        with Store.create(url) as store, store.database.engine.connect() as connection:
            query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            assert connection.exec_driver_sql(query).scalar_one() is True
        (tmp_path / "other.pem").write_text("no certificate")
        with pytest.raises(StoreError, match="certificate"):
            Store.open(f"{server.url}?sslmode=verify-full&sslrootcert={tmp_path}/other.pem")


def test_a_process_has_few_connections(postgres_url: str, postgres_template: str) -> None:
    most = []
    with postgres_server.database(postgres_url, postgres_template) as url, Store.open(url) as store:

        def look() -> None:
            with store.database.reading() as session:
                of_us = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                most.append(session.connection().exec_driver_sql(of_us).scalar_one())

        threads = [threading.Thread(target=look) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(most) == 20
    assert max(most) <= engine.CONNECTIONS

"""A Ray cluster on this machine's loopback addresses, one process tree for each node, so that a node can be killed."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FIRST_NODE, PATIENCE = 2, 60.0


@dataclass
class RayNodes:
    """A cluster.

    Attributes:
        address: Of its head.
        environment: The variables that its users need.
        nodes: Address of each node → the processes of the node are this one's group.
    """

    address: str
    environment: Mapping[str, str]
    folder: Path
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def add(self, cpus: int) -> str:
        """Starts one more node; the first one is the head. Returns its address."""
        ip = f"127.0.0.{FIRST_NODE + len(self.nodes)}"
        head = ["--head", "--port", self.address.rpartition(":")[2], "--include-dashboard=false"]
        joins = ["--address", self.address]
        words = ["start", "--block", "--node-ip-address", ip, "--num-cpus", str(cpus), "--num-gpus", "0"]
        words += ["--object-store-memory", "100000000", "--disable-usage-stats", *(joins if self.nodes else head)]
        with (self.folder / f"{ip}.log").open("wb") as log:
            self.nodes[ip] = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", *words],
                env=dict(self.environment),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return ip

    def wait(self) -> None:
        """Waits until all nodes are there."""
        end = time.monotonic() + PATIENCE
        for ip in self.nodes:
            while "Ray runtime started" not in (log := (self.folder / f"{ip}.log").read_text()):
                assert time.monotonic() < end, log
                assert self.nodes[ip].poll() is None, log
                time.sleep(0.1)

    def kill(self, ip: str) -> None:
        """Kills a node with everything that runs there, as if its power went."""
        node = self.nodes[ip]
        for pid in [node.pid, *descendants(node.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait()


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"\nPPid:\t{pid}\n" in status.read_text():
                found.append(int(status.parent.name))
    return [each for child in found for each in (child, *descendants(child))]


@contextlib.contextmanager
def ray_nodes(*cpus: int, **variables: str) -> Iterator[RayNodes]:
    """A cluster of nodes with so many CPUs each, whose processes have these variables."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:  # sockets: short
        yield from _ray_nodes(Path(folder), cpus, variables)


def _ray_nodes(folder: Path, cpus: Sequence[int], variables: Mapping[str, str]) -> Iterator[RayNodes]:
    with socket.socket() as probe:
        probe.bind((f"127.0.0.{FIRST_NODE}", 0))
        port = probe.getsockname()[1]
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment = {**os.environ, **token, **variables, "RAY_TMPDIR": str(folder)}
    cluster = RayNodes(f"127.0.0.{FIRST_NODE}:{port}", environment, folder)
    try:
        for each in cpus:
            cluster.add(each)
            cluster.wait()
        yield cluster
    finally:
        for ip in reversed(cluster.nodes):
            cluster.kill(ip)

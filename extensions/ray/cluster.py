"""The Ray cluster of a run: connection and nodes."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.calls import reason_of
from testbed.errors import MissingExtraError, RunError
from testbed.execution.resources import require_compiler
from testbed.process.signals import ENDING
from testbed.provenance.libraries import NUMERIC
from testbed.provenance.manifest import LIBRARY, Today

log = logging.getLogger("testbed")

ENV_ADDRESS = "RAY_ADDRESS"
KNOCK_SECONDS = 5.0
# Workers get these variables from the process that started the run, in addition to those of their node.
PREFIXES = ("TESTBED_", "HF_", "TRANSFORMERS_", "TORCH_HOME", "OMP_", "MKL_", "LMUData")
SUFFIXES = ("_API_KEY", "_API_BASE", "_BASE_URL")


@dataclass(frozen=True)
class Node:
    """A machine of a cluster that can take workers.

    Attributes:
        id: Its id in Ray.
        address: Its address, for display.
        cpus: Number of CPUs that Ray may use there.
        gpus: Number of GPUs.
        gpu_name: The kind of GPU, by Ray's name; empty without a GPU.
        processor: Name of its processor.
    """

    id: str
    address: str
    cpus: int
    gpus: int
    gpu_name: str
    processor: str = ""


def connect(address: str | None, verbose: bool) -> Any:
    """Connects to a cluster, or starts one on this machine if none is running; returns the package ``ray``.

    Args:
        address: Address such as ``"10.0.0.1:6379"``; None: that of ``$RAY_ADDRESS``, else of this machine, else a new
            one.
        verbose: Whether to show Ray's own messages.

    Raises:
        MissingExtraError: If Ray is not installed.
        RunError: If the cluster does not answer.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster started here sends no usage reports
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "--executor ray") from error
    if ray.is_initialized():
        return ray
    level = logging.INFO if verbose else logging.ERROR
    where = address or os.environ.get(ENV_ADDRESS)
    try:
        _knock(where)
        with _own_signals():
            ray.init(
                address=address, logging_level=level, log_to_driver=False, include_dashboard=None if where else False
            )
    except Exception as error:  # of many kinds, some of them not Ray's own
        raise RunError(
            f"no Ray cluster answers{f' at {where}' if where else ''} ({reason_of(error)}). Start one with"
            " 'ray start --head' and give its address as --ray-address HOST:PORT; a cluster with tokens also needs the"
            " variables RAY_AUTH_MODE and RAY_AUTH_TOKEN"
        ) from error
    return ray


def nodes(ray: Any) -> list[Node]:
    """The nodes that can take workers."""
    found = []
    for node in ray.nodes():
        resources = node["Resources"]
        cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
        if node["Alive"] and (cpus or gpus):
            kinds = [name.partition(":")[2] for name in resources if name.startswith("accelerator_type:")]
            found.append(Node(node["NodeID"], node["NodeManagerAddress"], cpus, gpus, kinds[0] if kinds else ""))
    return found


def checked(ray: Any, found: Sequence[Node], plugins: tuple[str, ...], compiles: bool) -> list[Node]:
    """Compares the code and versions of each node with this machine's: results must not depend on the node.

    Returns:
        The nodes with their processors, without lost ones, which Ray still lists for some seconds.

    Raises:
        RunError: If a node has other versions, another testbed or other plug-in files, or no compiler.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    record = Today([Path(plugin) for plugin in plugins]).record_of((LIBRARY, name) for name in NUMERIC)
    survey = ray.remote(num_cpus=0, max_retries=2)(survey_node)
    on_gpus = any(item.gpus for item in found)  # then the workers that compile are only there

    def asked_of(node: Node) -> Any:
        compiles_for = ("cuda" if on_gpus else "cpu") if compiles and bool(node.gpus) == on_gpus else None
        place = NodeAffinitySchedulingStrategy(node.id, soft=False)
        return survey.options(scheduling_strategy=place).remote(record, plugins, compiles_for)

    asked = [asked_of(item) for item in found]
    there = []
    for node, answer in zip(found, asked, strict=True):
        try:
            differences, processor = ray.get(answer)
        except (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError):
            continue
        except Exception as error:
            reason = str(getattr(error, "cause", None) or error).strip().rpartition("\n")[2]
            raise RunError(f"the Ray node {node.address} cannot run testbed: {reason}") from error
        if differences:
            raise RunError(
                f"the Ray node {node.address} differs from this machine: {'; '.join(differences)}. Install the same"
                " versions on all nodes, and keep plug-in files on a file system that all of them see"
            )
        there.append(replace(node, processor=processor))
    return there


def survey_node(
    record: Mapping[str, Any], plugins: Sequence[str], compiles_for: str | None = None
) -> tuple[list[str], str]:
    """Runs on a node: returns its differences from the machine that starts the run, and its processor's name.

    Raises:
        RunError: If networks have to be compiled for a device without a compiler.
    """
    from testbed.execution.cell_record import device_names

    absent = [plugin for plugin in plugins if not os.path.exists(plugin)]
    if absent:
        return [f"missing file {name}" for name in absent], ""
    if compiles_for is not None:
        require_compiler(compiles_for)
    found = Today([Path(plugin) for plugin in plugins]).differences(record)
    return found, device_names(["cpu"])[0]


def environment() -> dict[str, str]:
    """The variables of this process that workers on other machines get."""
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIXES) or name.endswith(SUFFIXES)}


class Notices(io.TextIOBase):
    """A stream for Ray's own messages on standard output, shown by -v."""

    def write(self, text: str) -> int:
        """Logs a line."""
        if text.strip():
            log.debug("Ray: %s", text.strip())
        return len(text)


def _knock(address: str | None) -> None:
    """Raises an OSError if nothing listens at HOST:PORT: Ray itself would retry for minutes."""
    host, _, port = (address or "").rpartition("//")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Restores the handler of SIGTERM, which Ray replaces, so that a terminated run stores its results."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in usual.items():
            if handler is not None:
                signal.signal(number, handler)

"""Identifies a model's weights by content, and explains why they are not available."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import socket
import sys
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from testbed.calls import first_line
from testbed.errors import TestbedError, WeightsError, message_of

SHARDS = ".index.json"  # ends the name of the list of a sharded checkpoint's parts
SUFFIXES = (".pth", ".pt", ".safetensors", ".bin", ".ckpt")  # of checkpoints
PROBE_SECONDS = 5.0
_SEED = 0
_REFUSED = re.compile(
    r"(?:Unsupported global: GLOBAL|unsupported GLOBAL) (\S+)|allowlisted .* but got <class '([^']+)'>"
)


@dataclass(frozen=True)
class Weights:
    """A model's weights.

    Attributes:
        id: Their content, such as ``sha256:…`` of a file, ``state:…`` of a loaded network, or
            ``random:0`` for an untrained network made from seed 0.
        size_bytes: Their approximate size in memory.
        state: The digest of a loaded network's numbers alone.
        structure: The rest of a loaded network, as a JSON value.
    """

    id: str
    size_bytes: int
    state: str | None = None
    structure: Any = None


class WeightsSource(Protocol):
    """A model's weight files, downloaded if necessary."""

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The files, downloaded if they are missing and ``fetch`` is set; None if they are missing and it is not.

        Raises:
            WeightsError: If they are not available; the message names the file and its place.
        """
        ...


@dataclass(frozen=True)
class LocalFiles:
    """Weights in existing files."""

    paths: tuple[Path, ...]

    def files(self, fetch: bool) -> Sequence[Path]:
        """The files."""
        for path in self.paths:
            if path.is_dir():
                raise WeightsError(f"{path} {why_not_a_file(path)}")
            if not path.is_file():
                raise WeightsError(f"the weights {path} do not exist")
        return self.paths


def why_not_a_file(path: Path) -> str:
    """Explains why a path is not a checkpoint file, and for a folder what to name instead."""
    if not path.is_dir():
        return "does not exist"
    if (path / ".metadata").is_file():  # as torch.distributed.checkpoint writes it: a pickle, which is not opened
        return (
            "is a folder of torch.distributed.checkpoint; write one file from it first: python -m"
            f" torch.distributed.checkpoint.format_utils dcp_to_torch {path} FILE.pth"
        )
    index = next((entry.name for entry in sorted(path.iterdir()) if entry.name.endswith(SHARDS)), None)
    if index is not None:
        return f"is a folder with the parts of a sharded checkpoint ({index}): join them in one file, and name that"
    held = sorted(entry.name for entry in path.iterdir() if entry.suffix in SUFFIXES and entry.is_file())
    if not held:
        return "is a folder without checkpoint files"
    more = f" or another of its {len(held)}" if len(held) > 1 else ""
    return f"is a folder; name a file in it, such as {path / held[0]}{more}"


def of_files(paths: Sequence[Path]) -> Weights:
    """Returns weights identified by the content of their files."""
    from testbed.data.content import remembered_digest
    from testbed.tracing import access_log

    access_log.declare(paths)
    digests = sorted(remembered_digest(path) for path in paths)
    content = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()[:32]
    return Weights(f"sha256:{content}", sum(path.stat().st_size for path in paths))


def note_loaded(name: str, source: str | WeightsSource | None) -> None:
    """Notes which versions of weight files were loaded: they may have been replaced since they were hashed."""
    from testbed.tracing import access_log, versions

    if source is None or isinstance(source, str):
        return
    with access_log.watch(None), contextlib.suppress(TestbedError):
        for path in map(os.path.abspath, source.files(False) or ()):
            access_log.add(access_log.model(name), access_log.FILE, path, versions.version_of(path))


def of_state(state: Mapping[str, Any]) -> Weights:
    """Returns weights identified by the names, types, shapes and bytes of a state dict."""
    import torch

    from testbed.identity.describe import describe

    hasher, size = hashlib.sha256(), 0
    for name in sorted(state):
        value = state[name]
        hasher.update(f"{name}\0".encode())
        if isinstance(value, torch.Tensor):
            flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            hasher.update(f"{value.dtype}{tuple(value.shape)}\0".encode())
            hasher.update(flat.numpy().data)
            size += value.numel() * value.element_size()
        else:
            hasher.update(repr(describe(value)).encode())
    return Weights(f"state:{hasher.hexdigest()[:32]}", size)


def of_network(network: Any) -> Weights:
    """Returns the weights of a loaded network: from its state dict and structure, or from another object's fields.

    Args:
        network: The result of a loader. All parts of a tuple, such as (network, tokenizer), are included.
    """
    from testbed.identity.describe import digest
    from testbed.models.base.structure import structure_of

    if isinstance(network, tuple) and type(network) is tuple and network:
        first, *rest = [_of_part(part, index) for index, part in enumerate(network)]
        content = digest([first.id, *(holder.id for holder in rest)])
        states, structures = ([getattr(holder, name) for holder in (first, *rest)] for name in ("state", "structure"))
        return Weights(f"{first.id.partition(':')[0]}:{content}", first.size_bytes, digest(states), structures)
    if _has_state(network):
        state, structure = of_state(network.state_dict()), structure_of(network)
        return Weights(f"state:{digest([state.id, digest(structure)])}", state.size_bytes, state.id, structure)
    return Weights(f"object:{digest(network)}", 0)


def _of_part(part: Any, place: int) -> Weights:
    """A part of what a loader returns; those beside the first one may have no state."""
    from testbed.identity.describe import digest
    from testbed.models.base.structure import companion_of

    if place == 0 or _has_state(part):
        return of_network(part)
    companion = companion_of(part)
    return Weights(digest(companion), 0, None, companion)


def _has_state(thing: Any) -> bool:
    return callable(getattr(thing, "state_dict", None))


# Loading ----------------------------------------------------------------------------------------------------------


class _Tee(io.StringIO):
    """Records what is written, and passes it on."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes to both."""
        self._stream.write(text)
        return super().write(text)

    def flush(self) -> None:
        """Flushes the stream."""
        self._stream.flush()


def plain(error: BaseException) -> str:
    """The first line of an error message, without terminal colours and torch's advice on unsafe loading."""
    if (refused := object_refused(error)) is not None:
        return (
            f"it holds the object {refused}, which is neither a tensor nor a plain value; it is not opened, because"
            " that could run code"
        )
    if _is_of_weights_only(error):
        return "it is not a file that torch.save writes, or it is damaged"
    text = re.sub(r"\x1b\[[0-9;]*m", "", message_of(error)).strip()
    return first_line(text)


def object_refused(error: BaseException) -> str | None:
    """The name of the object in a file that ``torch.load(…, weights_only=True)`` refused; None if it was not that."""
    named = _REFUSED.search(str(error)) if _is_of_weights_only(error) else None
    return None if named is None else named[1] or named[2]


def _is_of_weights_only(error: BaseException) -> bool:
    return type(error).__name__ == "UnpicklingError" and "weights_only" in str(error)


@contextlib.contextmanager
def loading(name: str) -> Iterator[None]:
    """Turns errors of loaders into a one-line `WeightsError` that names the missing file and its place.

    What a loader leaves to chance, such as a head without weights, gets the same numbers in each process and each run.
    The source and target of torch.hub's downloads are taken from its output. Output of loaders goes to the standard
    error, because the standard output is for results.
    """
    from testbed.tracing.patches import see_safetensors

    see_safetensors()
    said = _Tee(sys.stderr)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said), _same_numbers():
            yield
    except TestbedError:
        raise
    except Exception as error:
        first = plain(error)
        tried = re.search(r'Downloading: "(?P<url>[^"]+)" to (?P<path>\S+)', said.getvalue())
        if tried:
            raise cannot_fetch(name, tried["url"], Path(tried["path"]), first) from error
        raise WeightsError(f"{name}: the model cannot be loaded: {type(error).__name__}: {first}") from error


@contextlib.contextmanager
def _same_numbers() -> Iterator[None]:
    """Draws the same random numbers each time, and leaves the generators as they were."""
    import random

    import numpy as np

    states = random.getstate(), np.random.get_state()
    drawing: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if "torch" in sys.modules:  # what answers in text may do without
        from testbed.devices import seeded

        drawing = seeded(_SEED)
    with drawing:
        random.seed(_SEED)
        np.random.seed(_SEED)
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])


@contextlib.contextmanager
def no_downloads() -> Iterator[None]:
    """Refuses every connection that this thread's Python code opens, and silences what loaders print."""
    hub = sys.modules.get("huggingface_hub.constants")
    offline = getattr(hub, "HF_HUB_OFFLINE", None)
    connect, owner = socket.socket.connect, threading.get_ident()

    def refuse(self: socket.socket, address: Any) -> None:
        if threading.get_ident() != owner:
            return connect(self, address)
        raise ConnectionRefusedError("downloads are disabled here")

    quiet = io.StringIO()
    socket.socket.connect = refuse  # type: ignore[method-assign, assignment]
    if hub is not None:
        hub.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            yield
    finally:
        del socket.socket.connect  # restores the inherited method, in C
        if hub is not None:
            hub.HF_HUB_OFFLINE = offline  # type: ignore[attr-defined]


def only_weights() -> contextlib.AbstractContextManager[None]:
    """Restricts torch.load to tensors: some libraries still let it run code."""
    return with_variable("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")


@contextlib.contextmanager
def with_variable(name: str, value: str) -> Iterator[None]:
    """Sets an environment variable, and restores its value afterwards."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def cannot_fetch(name: str, url: str, place: Path | str, reason: str) -> WeightsError:
    """The error for missing weights that cannot be downloaded."""
    return WeightsError(
        f"{name}: its weights cannot be downloaded ({reason}). On a machine with network access get {url}"
        f" and put it at {place}; or use --random-weights to run the architecture untrained"
    )


def require_host(name: str, url: str, place: Path | str) -> None:
    """Checks within seconds that a download is possible; the hubs' own clients retry for most of a minute.

    Raises:
        WeightsError: If the host (or the proxy before it) does not answer.
    """
    if "huggingface" in url and os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        raise cannot_fetch(name, url, place, "HF_HUB_OFFLINE is set")
    parts = urllib.parse.urlsplit(url)
    proxies = {key.lower(): value for key, value in os.environ.items() if key.lower().endswith("_proxy") and value}
    proxy = proxies.get(f"{parts.scheme}_proxy") or proxies.get("all_proxy")
    if proxy:
        parts = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    reason = _unreachable(host, port)
    if reason:
        raise cannot_fetch(name, url, place, f"{host} cannot be reached: {reason}")


def _unreachable(host: str, port: int) -> str | None:
    """Explains why a host does not answer, or None if it does. Uses a thread, because the name lookup may hang."""
    answers: list[str | None] = []

    def probe() -> None:
        try:
            socket.create_connection((host, port), timeout=PROBE_SECONDS).close()
            answers.append(None)
        except OSError as error:
            answers.append(error.strerror or str(error))

    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    thread.join(PROBE_SECONDS)
    return answers[0] if answers else f"no answer within {PROBE_SECONDS:.0f} s"

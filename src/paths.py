"""Places of testbed's files: the cache folder, the data root, the folders of predictions and tables."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

from testbed.errors import DataError
from testbed.inputs import active, is_url

ENV_DB = "TESTBED_DB"
ENV_CACHE = "TESTBED_CACHE"
ENV_PAYLOADS = "TESTBED_PAYLOADS"

# Begins the names of testbed's own temporary folders. Their content is never an input of a result.
OWN_TEMPORARY = "testbed-scratch-"
_LONGEST = 100  # two names, their hashes and a suffix must stay under the 255 characters of a file name
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_RESERVED = {"con", "prn", "aux", "nul", *(f"com{i}" for i in range(10)), *(f"lpt{i}" for i in range(10))}


def own_temporary() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder of testbed's own, for what is handed to code that takes files, removed when it is left."""
    return tempfile.TemporaryDirectory(prefix=OWN_TEMPORARY)


def cache_dir(*parts: str) -> Path:
    """The folder for what can be computed again: trained digits models, content hashes, lists of names.

    It is ``$TESTBED_CACHE``, else ``$XDG_CACHE_HOME/testbed``, else ``~/.cache/testbed``; it is made if missing.
    """
    folder = Path(cache_root()).joinpath(*parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"the cache folder {folder} cannot be made ({error.strerror}); set {ENV_CACHE} to a folder you can write"
        ) from error
    return folder


def cache_root() -> str:
    """The path of the cache folder, whether it is there or not."""
    root = os.environ.get(ENV_CACHE)
    if root is None:
        root = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "testbed")
    return root


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path with the user's folder for ``~``; of a user that is not known here (``~nobody/x``) as it is written."""
    try:
        return Path(os.path.expanduser(path))
    except ValueError:  # no name that a user can have
        return Path(path)


def is_file(path: Path) -> bool:
    """Checks whether there is a file of that name; accepts names of any length."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file to read: a pipe would keep its reader waiting, and a device may have no end.

    Raises:
        OSError: If it cannot be opened, or is something else.
    """
    # An ordinary open of a pipe would wait for a writer.
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)))
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        stack.pop_all()
    return file


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file; errors as for `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that a reader sees the old content or the new one, never half of it."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def data_root(given: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder that holds the data sets: the given one, else that of the active `Inputs`, else None.

    Raises:
        DataError: If it is a URL.
    """
    root = data_root_text(given)
    if root is not None and is_url(root):
        raise DataError(f"the data root is {root}, but only data sets called wds/… are read from a URL; give a folder")
    return Path(root) if root else None


def data_root_text(given: str | os.PathLike[str] | None = None) -> str | None:
    """The data root as it was written: a folder, the URL of one, either with ``{dataset}`` in it; or None."""
    root = str(given) if given is not None else active().data_root
    return root if not root or is_url(root) else os.path.expanduser(root)


def predictions_root() -> Path | None:
    """Returns the folder of recorded predictions, from the active `Inputs`; None where it is not set."""
    root = active().predictions
    return expanded(root) if root else None


def lmu_data_root() -> Path:
    """Returns VLMEvalKit's folder of tables: that of the active `Inputs`, else ``~/LMUData``."""
    return expanded(active().lmu_data or "~/LMUData")


def fill_root(root: str, dataset: str) -> str:
    """A data root with the name of a data set for ``{dataset}``, and with ``-`` for ``/`` for ``{dataset_cleaned}``."""
    return root.replace("{dataset_cleaned}", dataset.replace("/", "-")).replace("{dataset}", dataset)


def fitting(plain: str, name: str) -> str:
    """A part of a file's name, if it is short enough; else `safe_name` of what it stands for, which is cut."""
    return plain if len(plain.encode()) <= _LONGEST else safe_name(name)


def safe_name(name: str) -> str:
    """A file name that is valid on every system and unique, even if case is ignored.

    A valid name is not changed. Other names get a hash suffix, and so do names that seem to have one, or that contain
    the double underscore that joins the names of a setting and a model.
    """
    plain = re.sub(r"[^A-Za-z0-9._+,=@-]+", "_", name).strip("._")[:_LONGEST].rstrip("._")
    reserved = plain.lower().split(".")[0] in _RESERVED
    fit = plain == name == name.lower() and not reserved and not re.search(r"__|-[0-9a-f]{8}$", name)
    if fit:
        return plain
    return f"{'_' if reserved else ''}{plain or 'name'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"

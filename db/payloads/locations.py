"""Locations of outputs outside the database, and which files may be read and deleted as outputs.

A row refers to its file, and anyone with write access to the database can change the row. So a file counts as
outputs only if testbed would give its name and folder to the outputs of that row, at a place where testbed writes
outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import StoreError

# Stores whose URLs name a bucket, not a host, so that a row cannot make this machine connect to an arbitrary host.
_BUCKETS = frozenset("s3 s3a gs gcs az abfs abfss memory".split())
_trusted = set(_BUCKETS)
_WORD = re.compile(r"[\w.+-]+")
_NAME = re.compile(r"[\w.+-]+-[0-9]+-[0-9a-f]+\.bin(?:\.[0-9]+-[0-9a-f]{8}\.part)?")


@dataclass(frozen=True)
class Location:
    """The location of a payload outside the database, according to its row.

    Attributes:
        uri: The file.
        kind: The kind of outputs.
        start: The first sample.
        checksum: Checksum of the bytes.
        size: Number of bytes.
    """

    uri: str
    kind: str
    start: int
    checksum: str
    size: int

    @classmethod
    def of(cls, row: Any) -> Location:
        """The location in a row with these columns, or in a mapping of them."""
        value = row.__getitem__ if isinstance(row, Mapping) else lambda name: getattr(row, name)
        return cls(*map(value, ("uri", "kind", "start", "checksum", "size_bytes")))

    @property
    def folder(self) -> str:
        """The name of its evaluation's folder."""
        return self.uri.rpartition("/")[0].rpartition("/")[2]

    @property
    def base(self) -> str:
        """The URL that contains that folder."""
        return self.uri.rpartition("/")[0].rpartition("/")[0]

    def check(self) -> None:
        """Checks that the outputs of this row can have this location; raises ValueError if they cannot."""
        if not isinstance(self.size, int) or self.size < 0:
            raise ValueError("the row does not have their length")
        if not self._is_named_like_outputs():
            raise ValueError("this is not the file name for the outputs of this row")
        scheme = self.uri.partition("://")[0]
        if not is_local(self.uri) and scheme not in _trusted:
            raise ValueError(
                f"only the row refers to a URL of {scheme[:20]}; if that is right, set TESTBED_PAYLOADS to"
                f" a URL of {scheme[:20]}"
            )

    def is_deletable(self, fingerprint: str, owner: str, trusted: Iterable[str]) -> bool:
        """Returns whether a file is certainly one of this store's outputs.

        Args:
            fingerprint: The evaluation's fingerprint.
            owner: The folder that only this store makes for the evaluation.
            trusted: URLs that the user declared as locations of this store's outputs.
        """
        if not self._is_named_like_outputs():
            return False
        ours = re.fullmatch(rf"{re.escape(fingerprint)}-[0-9a-f]{{8}}", self.folder) is not None
        return self.folder == owner or (ours and self.base in trusted)

    def _is_named_like_outputs(self) -> bool:
        parts = (self.kind, self.checksum, self.folder)
        plain = all(_WORD.fullmatch(part) and part.strip(".") for part in parts) and "::" not in self.uri
        return plain and self.uri.rpartition("/")[2] == f"{self.kind}-{self.start}-{self.checksum}.bin"


def trust(base: str) -> None:
    """Allows outputs at URLs of this one's scheme from now on, since the user has named it."""
    if not is_local(base):
        _trusted.add(base.partition("://")[0])


def is_outputs_name(name: str) -> bool:
    """Returns whether a file name is one of outputs, including partially written ones."""
    return _NAME.fullmatch(name) is not None


def is_local(uri: str) -> bool:
    """Returns whether a URI is a path of this machine, or a file URL."""
    return uri.startswith(("file:", "/"))


def path_of(uri: str) -> str:
    """The path of a local URI."""
    return uri.removeprefix("file://")


def refuse_memory(url: str) -> None:
    """Rejects a location in the memory of a process, where other processes cannot find outputs.

    Raises:
        StoreError: If it is in memory.
    """
    if url.partition("://")[0] == "memory":
        raise StoreError(
            f"outputs at {url} would be in the memory of the process that writes them, and lost with it; give a"
            " folder"
            " or the URL of an object store"
        )


def refuse_secrets(url: str) -> None:
    """Rejects a URL for outputs that contains a password, which would be stored with them for every reader.

    Raises:
        StoreError: If it does; the message omits the URL.
    """
    scheme, _, rest = url.partition("://")
    rest = re.sub(r"\[[0-9a-fA-F:.]*\]", "", rest)  # an IPv6 address
    place = rest.partition("/")[0]
    login = place.rpartition("@")[0]
    port = place.rpartition("@")[2].partition(":")[2]
    if ":" in login or not re.fullmatch("[0-9]*", port) or re.search("[?#]|::", rest) or ":" in scheme:
        raise StoreError(
            f"the URL for outputs ({scheme.partition(':')[0][:20]}://…) contains a password or parameters, which"
            " would"
            " be stored with all outputs, for everybody who reads the store; leave them out, and put them"
            " where the package for that kind of URL looks for them, such as ~/.aws/credentials, its variables or"
            " fsspec's configuration (~/.config/fsspec)"
        )

"""Where outputs lie that are kept outside the database, and which files may be read and deleted as such.

A row names its file, and whoever can write to the database can change the row. So a file counts as outputs only if its
name and its folder are those that testbed gives to the outputs of that row, and only where testbed writes outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import StoreError

# Stores whose URLs name a bucket, not a machine: a row cannot make this one connect to a machine of its choice.
_BUCKETS = frozenset("s3 s3a gs gcs az abfs abfss memory".split())
_trusted = set(_BUCKETS)
_WORD = re.compile(r"[\w.+-]+")
_NAME = re.compile(r"[\w.+-]+-[0-9]+-[0-9a-f]+\.bin(?:\.[0-9]+-[0-9a-f]{8}\.part)?")


@dataclass(frozen=True)
class Location:
    """The place of a payload outside the database, as its row says.

    Attributes:
        uri: The file.
        kind: The kind of outputs.
        start: The first sample.
        checksum: Of the bytes.
        size: How many bytes.
    """

    uri: str
    kind: str
    start: int
    checksum: str
    size: int

    @classmethod
    def of(cls, row: Any) -> Location:
        """That of a row with these columns, or of a mapping of them."""
        value = row.__getitem__ if isinstance(row, Mapping) else lambda name: getattr(row, name)
        return cls(*map(value, ("uri", "kind", "start", "checksum", "size_bytes")))

    @property
    def folder(self) -> str:
        """The name of the folder, which is that of its evaluation."""
        return self.uri.rpartition("/")[0].rpartition("/")[2]

    @property
    def base(self) -> str:
        """The URL below which that folder is."""
        return self.uri.rpartition("/")[0].rpartition("/")[0]

    def check(self) -> None:
        """Checks that outputs of this row can lie there.

        Raises:
            ValueError: If they cannot.
        """
        if not isinstance(self.size, int) or self.size < 0:
            raise ValueError("the row does not say how long they are")
        if not self._is_named_like_outputs():
            raise ValueError("this is not the name that the outputs of this row have")
        scheme = self.uri.partition("://")[0]
        if not is_local(self.uri) and scheme not in _trusted:
            raise ValueError(
                f"the row alone says that they are at a URL of {scheme[:20]}; if that is right, set TESTBED_PAYLOADS to"
                f" a URL of {scheme[:20]}"
            )

    def is_deletable(self, fingerprint: str, owner: str, trusted: Iterable[str]) -> bool:
        """Whether a file is certainly one of this store's outputs.

        Args:
            fingerprint: Of the evaluation.
            owner: The folder that this store, and no other one, makes for the evaluation.
            trusted: URLs of which the user says that this store's outputs lie there.
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
    """From now on, outputs may be at URLs of this one's scheme, since the user has named it."""
    if not is_local(base):
        _trusted.add(base.partition("://")[0])


def is_outputs_name(name: str) -> bool:
    """Whether a file's name is one that outputs have, or have while they are being written."""
    return _NAME.fullmatch(name) is not None


def is_local(uri: str) -> bool:
    """Whether a URI is a path of this machine, or a file URL."""
    return uri.startswith(("file:", "/"))


def path_of(uri: str) -> str:
    """The path that a local URI names."""
    return uri.removeprefix("file://")


def refuse_memory(url: str) -> None:
    """Refuses a place that is in the memory of a process, where outputs are lost that others are to find.

    Raises:
        StoreError: If it is one.
    """
    if url.partition("://")[0] == "memory":
        raise StoreError(
            f"outputs at {url} would be in the memory of the process that writes them, and lost with it; give a folder"
            " or the URL of an object store"
        )


def refuse_secrets(url: str) -> None:
    """Refuses a URL for outputs that holds a password, which would be stored with each of them for every reader.

    Raises:
        StoreError: Without the URL.
    """
    scheme, _, rest = url.partition("://")
    rest = re.sub(r"\[[0-9a-fA-F:.]*\]", "", rest)  # an address
    place = rest.partition("/")[0]
    login = place.rpartition("@")[0]
    port = place.rpartition("@")[2].partition(":")[2]
    if ":" in login or not re.fullmatch("[0-9]*", port) or re.search("[?#]|::", rest) or ":" in scheme:
        raise StoreError(
            f"the URL for outputs ({scheme.partition(':')[0][:20]}://…) has a password or parameters in it, which would"
            " be stored with all outputs, for everybody who reads the store; leave them out, and put them where the"
            " package for that kind of URL looks for them, such as ~/.aws/credentials, its variables or fsspec's"
            " configuration (~/.config/fsspec)"
        )

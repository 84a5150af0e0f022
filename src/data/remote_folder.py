"""A folder on a web server, whose files are copied into the cache folder on demand.

Only used if the user gave its URL as a data root; URLs in data are never followed.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.errors import DataError
from testbed.identity.describe import digest_bytes
from testbed.inputs import is_url
from testbed.paths import cache_dir, write_atomically

_BLOCK = 1 << 20
_ATTEMPTS = 3  # each resumes where the last one failed
_TIMEOUT = 60  # seconds without a response
_HUB = re.compile(r"https://huggingface\.co/(datasets/[^/]+/[^/]+)(?:/(?:tree|blob|raw|resolve)/(.+))?")

logger = logging.getLogger(__name__)


class RemoteFolder:
    """A folder on a web server, and its local copy.

    Copied files are not requested again, nor are missing ones; delete the copy to start over.

    Args:
        url: ``http(s)://…``. For a data set on the Hugging Face hub, the page of its files,
            ``https://huggingface.co/datasets/USER/NAME/tree/BRANCH``, or of a folder in there.

    Attributes:
        local: The copy.

    Raises:
        DataError: If it is not such a URL.
    """

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if not is_url(url) or not parts.hostname or parts.query or parts.fragment:
            raise DataError(f"{url!r} is not the URL of a folder; give one such as https://HOST/FOLDER")
        if parts.username is not None or parts.password is not None:
            raise DataError(
                f"the URL of a folder on {parts.hostname} contains a user name or a password, which would be stored"
            )
        self.url = url.rstrip("/")
        self.local = cache_dir("remote") / f"{parts.hostname}-{digest_bytes(self.url.encode())[:16]}"
        self._hub = _HUB.fullmatch(self.url)

    def url_of(self, name: str) -> str:
        """The URL of a file; on the hub, text files and large files (tar archives) have different URLs."""
        quoted = urllib.parse.quote(name)
        if self._hub is None:
            return f"{self.url}/{quoted}"
        kind = "raw" if name.endswith(".txt") else "resolve"
        return f"https://huggingface.co/{self._hub[1]}/{kind}/{self._hub[2] or 'main'}/{quoted}"

    def fetch(self, name: str, optional: bool = False) -> Path | None:
        """The local copy of a file, downloaded if necessary.

        Args:
            name: The file's path relative to the folder.
            optional: True to return None if the server does not have it, instead of raising an error.

        Raises:
            DataError: If it cannot be downloaded completely.
        """
        if name.startswith("/") or ".." in name.split("/"):
            raise DataError(f"{name!r} leaves {self.url}")
        path = self.local / name
        absent = path.with_name(path.name + ".absent")
        if path.is_file() or (optional and absent.exists()):
            return path if path.is_file() else None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            (self.local / "URL").write_text(self.url + "\n", encoding="utf-8")
            with _alone(self.local / ".lock"):
                if path.is_file():  # copied by another process
                    return path
                self.require_online(url := self.url_of(name))
                if download_file(url, path, "without a connection, give a local folder as data root"):
                    return path
                if optional:
                    write_atomically(absent, b"")
                    return None
        except OSError as error:
            raise DataError(
                f"{self.url_of(name)} cannot be saved in {self.local}: {error.strerror or error}"
            ) from error
        raise DataError(f"{self.url_of(name)} does not exist (HTTP 404)")

    def require_online(self, url: str) -> None:
        """Checks that the user does not forbid downloads from the hub; raises DataError if HF_HUB_OFFLINE does."""
        if self._hub is not None and offline():
            raise DataError(f"{url} is not in the cache folder, and HF_HUB_OFFLINE forbids downloads")


def offline() -> bool:
    """Checks whether HF_HUB_OFFLINE forbids downloads from the Hugging Face hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def download_file(url: str, path: Path, remedy: str, sha256: str | None = None) -> bool:
    """Downloads a file under a temporary name, resuming an earlier download, and renames it when it is complete.

    Args:
        url: The URL of the file.
        path: The target file; its folder exists.
        remedy: The end of the message if it cannot be downloaded.
        sha256: Its digest, in hexadecimal digits, if known.

    Returns:
        False if the server does not have it.

    Raises:
        DataError: If it cannot be downloaded completely, or has another digest.
    """
    part = path.with_name(path.name + ".part")
    fault = ""
    for _ in range(_ATTEMPTS):
        try:
            if _attempt(url, part):
                if sha256 is not None and (digest := _sha256(part)) != sha256:
                    part.unlink()
                    raise DataError(f"{url} has the SHA-256 {digest}, not the published {sha256}; it was removed")
                os.replace(part, path)
                _tag_of(part).unlink(missing_ok=True)
                return True
            fault = "the connection was interrupted"
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                return False
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink(missing_ok=True)
            elif error.code < 500:
                raise DataError(f"{url} is not available: {_refusal(error)}") from error
            fault = _refusal(error)
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            reason: Any = getattr(error, "reason", None) or error
            fault = str(getattr(reason, "strerror", None) or reason or type(error).__name__)
    size = part.stat().st_size if part.exists() else 0
    kept = f"; {size:,} bytes were downloaded; run the same command again to resume" if size else ""
    raise DataError(f"{url} is not available: {fault}{kept}; {remedy}")


def size_of(url: str) -> int | None:
    """Returns the size of a file in bytes, from the server's headers; None if it does not report it."""
    request = urllib.request.Request(
        url, headers={"User-Agent": "testbed", "Accept-Encoding": "identity"}, method="HEAD"
    )
    try:
        with _opener().open(request, timeout=_TIMEOUT) as answer:
            length = answer.headers.get("Content-Length")
    except (OSError, http.client.HTTPException):
        return None
    return int(length) if length and length.isdecimal() else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refusal(error: urllib.error.HTTPError) -> str:
    if error.code in (401, 403):
        return (
            f"the server says {error.code}: it is private, or its terms must be accepted first; download it yourself"
            " and give its folder as data root"
        )
    return f"the server says {error.code} {error.reason}"


def _attempt(url: str, part: Path) -> bool:
    """Downloads the missing part of a file; False if the connection ended early."""
    headers = {"User-Agent": "testbed", "Accept-Encoding": "identity"}
    tag = _read(_tag_of(part))
    have = part.stat().st_size if tag and part.exists() else 0
    if have:  # If-Range: if the file has changed, the server sends the new one from the beginning
        headers.update({"Range": f"bytes={have}-", "If-Range": tag})
    with _opener().open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT) as answer:
        if not (answer.status == 206 and (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-")):
            have = 0
        length = answer.headers.get("Content-Length")
        _write_tag(part, answer.headers)
        if length is not None and int(length) > _BLOCK * 10:
            logger.info("fetching %s (%s MB)", url, f"{int(length) / 1e6:,.0f}")
        with part.open("r+b" if have else "wb") as file:
            file.seek(have)
            file.truncate()
            try:
                while block := answer.read(_BLOCK):
                    file.write(block)
            except http.client.IncompleteRead as cut:
                file.write(cut.partial)
                return False
            return length is None or file.tell() == have + int(length)


def _tag_of(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def _write_tag(part: Path, headers: Any) -> None:
    """Saves the version tag of a file, which is needed to resume its download."""
    etag = headers.get("ETag") or ""
    tag = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified") or ""
    _tag_of(part).write_text(tag, encoding="utf-8")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Refuses redirects to other protocols, and from a secure to an insecure one."""
        if not is_url(newurl) or (req.full_url.startswith("https:") and not newurl.startswith("https:")):
            raise DataError(f"{req.full_url} redirects to {newurl}, which is not followed: its protocol is less secure")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Redirects)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Gives one process at a time the right to download files into a folder, if the system supports locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # a network folder without locks
            pass
        yield

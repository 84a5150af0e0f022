"""Chosen frames of videos, kept in the cache folder: a video is decoded once for all models and questions.

A file has the frames of one choice from one video as JPEG files. It can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from testbed.identity.describe import digest_bytes
from testbed.paths import cache_dir, write_atomically

FOLDER = "frames"  # of the cache
MOST = 16 << 30  # bytes of all files; the oldest are removed first
_HEADER = 8  # bytes of the length of the header


def place_of(what: object) -> Path:
    """The file of a choice of frames, by all that determines them, as JSON: video, choice, decoder."""
    return cache_dir(FOLDER) / f"{digest_bytes(json.dumps(what).encode())[:32]}.jpegs"


def read(path: Path) -> tuple[dict[str, Any], list[bytes]] | None:
    """Reads what `write` wrote; None if it is missing or damaged."""
    try:
        data = path.read_bytes()
        end = _HEADER + int.from_bytes(data[:_HEADER], "big")
        header = json.loads(data[_HEADER:end])
        pictures = []
        for size in header["sizes"]:
            pictures.append(data[end : end + size])
            end += size
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (header["facts"], pictures) if end == len(data) else None


def write(path: Path, facts: dict[str, Any], pictures: list[bytes]) -> None:
    """Keeps pictures, and facts about them; a cache that cannot be written to is left as it is."""
    header = json.dumps({"facts": facts, "sizes": [len(picture) for picture in pictures]}).encode()
    with contextlib.suppress(OSError):
        write_atomically(path, b"".join([len(header).to_bytes(_HEADER, "big"), header, *pictures]))
        _remove_oldest(path.parent)


def _remove_oldest(folder: Path) -> None:
    found = []
    for path in folder.glob("*.jpegs"):
        with contextlib.suppress(OSError):  # another process may have removed it
            status = path.stat()
            found.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= MOST:
            break
        path.unlink(missing_ok=True)
        total -= size

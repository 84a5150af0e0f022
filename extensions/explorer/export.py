"""Writes the explorer as files that work locally and on any web server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from testbed.db.parts.names import matching_names
from testbed.errors import TestbedError
from testbed.extensions.explorer.arrays import right_counts
from testbed.extensions.explorer.documents import Explorer, script
from testbed.extensions.explorer.files import asset, assets
from testbed.extensions.explorer.samples import SamplesPart
from testbed.stored_results.evaluated import SettingSamples
from testbed.stored_results.pictures import CLEAN, OWN, Pictures

if TYPE_CHECKING:
    from testbed.db.store import Store

INDEX = "index.html"


@dataclass
class SiteExport:
    """The outcome of an export.

    Attributes:
        files: Number of files.
        size: Total bytes.
        pictures: Number of pictures among them.
        without: Setting → reason why some of its pictures are missing.
    """

    files: int = 0
    size: int = 0
    pictures: int = 0
    without: dict[str, str] = field(default_factory=dict)


def choose_samples(store: Store, words: Sequence[str], limit: int) -> dict[str, list[int]]:
    """Chooses the samples of an export: half are those that most models get wrong, half are evenly spread.

    Args:
        store: The results store.
        words: Names or patterns of settings.
        limit: Maximum number for each setting; 0 means all.

    Raises:
        UnknownNameError: If a word matches no setting in the store.
    """
    if not words:
        return {}
    known = [name for name, sampled in store.results.sampled_settings().items() if sampled]
    found = {}
    for name in sorted(matching_names("eval setting", words, known)):
        samples = SettingSamples.of(store, name)
        if samples is not None:
            found[name] = _chosen(samples, limit)
    return found


def _chosen(samples: SettingSamples, limit: int) -> list[int]:
    if not limit or samples.size <= limit:
        return list(range(samples.size))
    spread = {index * samples.size // (limit - limit // 2) for index in range(limit - limit // 2)}
    right, counted = right_counts(samples)
    hardest = (int(position) for position in np.argsort(right - counted, kind="stable") if int(position) not in spread)
    return sorted(spread | {each for _, each in zip(range(limit - len(spread)), hardest, strict=False)})


def write(
    out: Path,
    explorer: Explorer,
    part: SamplesPart,
    pictures: Pictures,
    chosen: Mapping[str, Sequence[int]],
    tell: Callable[[str], None] = lambda note: None,
) -> SiteExport:
    """Writes an explorer.

    Args:
        out: The folder; created if missing. Files of the same names are replaced.
        explorer: Its documents.
        part: The documents of its samples.
        pictures: Pictures of samples.
        chosen: Setting → the positions of samples with pictures.
        tell: Called with notes.

    Raises:
        TestbedError: If a file cannot be written.
    """
    done = SiteExport()
    try:
        for name, content in _contents(explorer):
            _write(out / name, content, done)
        for name, content in _pictures(part, pictures, chosen, done):
            _write(out / name, content, done)
            done.pictures += 1
    except OSError as error:
        raise TestbedError(f"{out} cannot be written: {error.strerror or error}") from error
    for setting, reason in done.without.items():
        tell(f"pictures of {setting} are missing: {reason}")
    return done


def _contents(explorer: Explorer) -> Iterator[tuple[str, bytes]]:
    for name in assets():
        yield name, asset(name)
    for path in explorer.paths():
        yield f"data/{path}.js", script(path, explorer.document(path))


def _pictures(
    part: SamplesPart, pictures: Pictures, chosen: Mapping[str, Sequence[int]], done: SiteExport
) -> Iterator[tuple[str, bytes]]:
    for number, name in enumerate(part.settings):
        if name not in chosen:
            continue
        samples = part.samples_of(number)
        perturbed = part.perturbs(name)
        for position in sorted({*chosen[name], *part.retrieved(samples)}):
            for which in (OWN, CLEAN) if perturbed == "image" else (CLEAN,) if perturbed else (OWN,):
                found = pictures.picture(samples, position, which)
                if isinstance(found, str):
                    done.without.setdefault(name, found)
                else:
                    yield f"pictures/{number}/{position}{'-clean' if which == CLEAN else ''}.jpg", found


def _write(path: Path, content: bytes, done: SiteExport) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    done.files += 1
    done.size += len(content)

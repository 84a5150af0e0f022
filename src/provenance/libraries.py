"""The installed distributions: their versions, their content, and which of them have a module that is imported.

The content is a digest of a distribution's ``RECORD`` of its files, without those that an installer writes
(scripts, compiled code, the metadata), which differ from environment to environment. Imported Python code that was
edited since its installation is added.
"""

from __future__ import annotations

import base64
import glob
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from testbed.data.content import MISSING, ContentDigests
from testbed.identity.describe import digest_bytes
from testbed.paths import cache_dir, write_atomically
from testbed.tracing import own_code

LOOSE = " (in no package)"  # follows the name of a module that was put beside installed packages by hand

# Libraries whose release can move numbers, whatever a run imports of them so far.
NUMERIC = """
    torch torchvision timm open-clip-torch transformers tokenizers sentencepiece sentence-transformers safetensors numpy
    scipy scikit-learn scikit-image pillow pillow-simd opencv-python opencv-python-headless pandas pyautoattack nltk
    sentencex pysbd
""".split()


@cache
def installed() -> Mapping[str, tuple[str, str]]:
    """Returns each distribution's version, and the folder or file that declares it: nothing is imported."""
    versions: dict[str, tuple[str, str]] = {}
    for folder in sys.path:
        for entry in _entries(folder):
            match = re.fullmatch(r"(.+?)-(\d[^-]*)(?:-.*)?\.(?:dist|egg)-info", entry)
            if match is not None:
                versions.setdefault(canonical(match[1]), (match[2], os.path.join(folder or os.curdir, entry)))
    return versions


def installed_versions() -> dict[str, str]:
    """The version of each installed distribution."""
    return {name: version for name, (version, _) in installed().items()}


def releases(names: Iterable[str]) -> dict[str, str]:
    """The version and the content of distributions, such as ``2.14.1 3b8f0c21``; of those that are installed."""
    versions, known, edits = installed_versions(), _recorded(), _edits(len(sys.modules))
    found: dict[str, str] = {}
    for name in sorted(set(names)):
        if name in versions:
            found[name] = (
                f"{versions[name]} {known[name][0] if name in known else _unrecorded(name)}{edits.get(name, '')}"
            )
        elif name.endswith(LOOSE) and (content := _loose(name.removesuffix(LOOSE))):
            found[name] = content
    return found


def asked(name: str) -> str:
    """The release of a distribution by any spelling of its name, or a digest of all entry points; else `MISSING`."""
    if name == own_code.ENTRY_POINTS:
        return _entry_points()
    return releases([canonical(name)]).get(canonical(name), MISSING)


@cache
def _entry_points() -> str:
    """A digest of what the installed distributions offer to others; their programs are left out."""
    places = [os.path.join(place, "entry_points.txt") for _, place in installed().values()]
    found = sorted(_offered(place) for place in places if os.path.isfile(place))
    return digest_bytes("\n".join(found).encode())[:12]


def _offered(place: str) -> str:
    sections = Path(place).read_text(encoding="utf-8", errors="replace").split("[")
    return "[".join(text for text in sections if not text.startswith(("console_scripts]", "gui_scripts]"))).strip()


def of_modules(tops: Iterable[str]) -> set[str]:
    """The distributions that have one of some top-level modules, and the modules that lie beside them, in none."""
    wanted, known = set(tops), _recorded()
    others = {name: _tops_of(name) for name in installed().keys() - known.keys()}
    modules = {name: modules for name, (_, modules) in known.items()} | others
    loose = wanted.difference(*modules.values())
    return {name for name, own in modules.items() if wanted.intersection(own)} | {
        f"{top}{LOOSE}" for top in loose if _loose(top)
    }


@cache
def _tops_of(name: str) -> list[str]:
    """The top-level modules of a distribution without ``RECORD``.

    One that lists none has all in its folder that no other distribution lists: they may be called anything.
    """
    place = installed()[name][1]
    tops, listed = own_code.top_modules(place)
    return tops if listed else sorted({*tops, *_unlisted(os.path.dirname(place))})


@cache
def _unlisted(folder: str) -> set[str]:
    """The top-level modules of a folder that no distribution lists."""
    found = {
        match[1] for entry in _entries(folder) if (match := re.fullmatch(r"([^\W\d]\w*)(?:\.py|\..*\.so|)", entry))
    }
    known = {top for _, (_, tops) in _recorded().items() for top in tops}
    others = (own_code.top_modules(place) for name, (_, place) in installed().items() if name not in _recorded())
    return found - known - {top for tops, listed in others if listed for top in tops} - {"__pycache__"}


@cache
def _unrecorded(name: str) -> str:
    """The digest of the files of a distribution that has no ``RECORD``, as Debian's packages have none."""
    return _digest(Path(installed()[name][1]).parent, _tops_of(name))


@cache
def _loose(top: str) -> str:
    """The digest of a module in a folder of installed packages that belongs to none; empty if there is no such one."""
    for folder in map(Path, sys.path):
        file = os.path.join(folder, f"{top}.py")
        if own_code.is_library_file(file) and not own_code.is_standard_file(file) and (found := _digest(folder, [top])):
            return found
    return ""


@lru_cache(1)
def _edits(imported: int) -> dict[str, str]:
    """A digest of the imported code of each distribution that was edited since it was installed.

    Args:
        imported: How many modules are imported: each is looked at once.
    """
    distributions = {top: name for name, (_, tops) in _recorded().items() for top in tops}
    edited: dict[str, list[str]] = {}
    for name, module in sorted(sys.modules.copy().items()):
        file = getattr(module, "__dict__", {}).get("__file__")
        distribution = distributions.get(name.partition(".")[0])
        if distribution and isinstance(file, str) and file.endswith(".py") and (content := _edited(file, distribution)):
            edited.setdefault(distribution, []).append(content)
    return {name: f" edited {digest_bytes(' '.join(contents).encode())[:12]}" for name, contents in edited.items()}


@cache
def _edited(file: str, distribution: str) -> str:
    """The digest of a file that is newer than the record of its distribution and differs from it; else empty."""
    record = Path(installed()[distribution][1]) / "RECORD"
    try:
        if os.stat(file).st_mtime_ns <= os.stat(record).st_mtime_ns:
            return ""
        digest = hashlib.sha256(Path(file).read_bytes()).digest()
        lines = record.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    name = f"{os.path.relpath(file, record.parent.parent)},"
    listed = [line for line in lines if line.startswith(name)]
    installed_as = f"{name}sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')},"
    return "" if not listed or listed[0].startswith(installed_as) else digest.hex()


def _digest(folder: Path, tops: Iterable[str]) -> str:
    """A digest of the code of some modules; empty if there is none."""
    places = [place for top in tops for place in (folder / top, *folder.glob(f"{glob.escape(top)}.*"))]
    files = [file for place in places for file in (place.rglob("*") if place.is_dir() else [place])]
    files = [file for file in files if file.suffix in (".py", ".so", ".pyd") and file.is_file()]
    names = sorted(file.relative_to(folder).as_posix() for file in files)
    return digest_bytes(json.dumps([names, ContentDigests(folder).digests(names)]).encode())[:12] if names else ""


def canonical(name: str) -> str:
    """A distribution's name as all of its spellings."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")
    except OSError:
        return []


@cache
def _recorded() -> dict[str, tuple[str, list[str]]]:
    """Returns each distribution's digest and top-level modules; cached while its record has the same size and times."""
    memo = cache_dir("content") / "distributions.json"
    known = _load(memo)
    used: dict[str, tuple[str, list[str]]] = {}
    made: dict[str, list[Any]] = {}
    for name, (_, place) in installed().items():
        path = os.path.join(place, "RECORD")
        try:
            stat = os.stat(path)
        except OSError:
            continue
        moment = [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns]
        entry = known.get(path)
        if entry is None or entry[:4] != moment:
            entry = made[path] = [*moment, *_read(path)]
        used[name] = (str(entry[4]), list(entry[5]))
    if made:
        write_atomically(memo, json.dumps({**known, **made}).encode())
    return used


def _load(memo: Path) -> dict[str, list[Any]]:
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    entries = known.items() if isinstance(known, dict) else ()
    return {path: entry for path, entry in entries if isinstance(entry, list) and len(entry) == 6}


def _read(path: str) -> tuple[str, list[str]]:
    """The digest and the top-level modules that a file ``RECORD`` gives."""
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    kept = sorted(line for line in lines if _counts(line.partition(",")[0]))
    tops = {re.split(r"[/.]", line, maxsplit=1)[0] for line in kept}
    return digest_bytes("\n".join(kept).encode())[:12], sorted(tops)


def _counts(file: str) -> bool:
    return not file.startswith(("..", "/")) and ".dist-info/" not in file and not file.endswith(".pyc")

"""What an evaluation was computed from, beside its identity: files, variables, versions of libraries, testbed itself.

The identity of a cell holds what can be told from definitions. A record holds what was seen when the cell was computed.
It is plain JSON and stored with the evaluation. `Today.differences` says what is no longer as it was; that costs a
look at the time stamps of the files. Where something differs, the outputs may still be the same; a run then computes a
few samples again and compares.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import platform
import re
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from testbed import reading, sourcecode
from testbed.data.content import MISSING, ContentDigests
from testbed.errors import IdentityError
from testbed.identity import SCHEME, digest, digest_bytes
from testbed.references import imported_modules

# Libraries whose release can move numbers. Those that a definition's own files import are added to these.
LIBRARIES = """
    torch torchvision timm open-clip-torch transformers tokenizers sentencepiece sentence-transformers safetensors numpy
    scipy scikit-learn scikit-image pillow pillow-simd opencv-python opencv-python-headless pandas pyautoattack nltk
    sentencex pysbd
""".split()
# Modules that are not called like their library. To ask all distributions for their modules takes most of a second.
_LIBRARY_OF = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "open_clip": "open-clip-torch",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}

_PACKAGE = Path(__file__).parent
_OURS = "testbed:"  # begins the names of testbed's own files, which are relative to the package
# Parts of testbed that have no bearing on numbers. The definitions in the rooms are no part either: each counts for
# those cells alone that use it.
_WITHOUT_NUMBERS = ("cli/", "console/", "exchange/", "analyses/", "registry/")
_ROOMS = ("models", "eval_settings")
_BEGAN = time.time()
_SHOWN = 3
_LONGEST = 255  # characters of a text that is taken for the name of a file
MISSING_RECORD = "{}: the store does not say which files and versions it was computed from"


@dataclass(frozen=True)
class Difference:
    """Something that is no longer as it was when an evaluation was computed.

    Attributes:
        own: Whether it is about what defines this very cell; else about what all cells of a run share.
        text: For people.
    """

    own: bool
    text: str


class Today:
    """Files, variables and versions as they are now; each is looked at once.

    Args:
        plugins: The definition files that are loaded.
    """

    def __init__(self, plugins: Sequence[Path] = ()) -> None:
        self.plugins = [str(Path(plugin).resolve()) for plugin in plugins]
        self._digests: dict[str, str] = {}

    @staticmethod
    def names(files: Iterable[str]) -> set[str]:
        """Files, given as absolute paths, as records name them."""
        return {_named(file) for file in files}

    def record_of(self, names: Iterable[str], variables: Iterable[str]) -> dict[str, Any]:
        """The record of a cell.

        Args:
            names: The files that it depends on, as records name them.
            variables: The environment variables that it depends on.
        """
        own = sorted(set(names))
        found = self._found({*own, *self.plugins})
        return {
            "scheme": SCHEME,
            "files": {name: found[name] for name in own if found[name] != MISSING},
            "plugins": {name: found[name] for name in sorted(set(self.plugins) - set(own))},
            "variables": {name: _variable(name) for name in sorted(set(variables))},
            "libraries": self._versions(tuple(name for name in own if name.endswith(".py"))),
            "python": platform.python_version(),
            "testbed": self.testbed,
        }

    def differences(self, record: Mapping[str, Any]) -> list[Difference]:
        """What is not as a record says; none where nothing relevant has changed."""
        if record.get("scheme") != SCHEME:
            return [Difference(True, f"identities were made by scheme {record.get('scheme', 1)}, now {SCHEME}")]
        found = [Difference(True, text) for text in self._changed_files(record["files"])]
        found += [
            Difference(True, f"the environment variable {name} changed")
            for name, value in record["variables"].items()
            if _variable(name) != value
        ]
        found += [Difference(False, text) for text in self._changed_plugins(record)]
        found += [Difference(False, text) for text in self._changed_versions(record)]
        return found

    def changed_since(self) -> set[str]:
        """The files whose content is another one than when it was first looked at."""
        before = dict(self._digests)
        self._digests.clear()
        now = self._found(before)
        self._digests = before
        return {name for name, content in before.items() if now[name] != content}

    def _changed_files(self, recorded: Mapping[str, str]) -> list[str]:
        now = self._found(recorded)
        # The same content elsewhere: a plug-in that was moved, a colleague's checkout.
        loaded = {(os.path.basename(path), content) for path, content in self._found(self.plugins).items()}
        texts = []
        for name, content in recorded.items():
            if now[name] != content and (os.path.basename(name), content) not in loaded:
                texts.append(f"{name} {'is gone' if now[name] == MISSING else 'changed'}")
        return texts

    def _changed_plugins(self, record: Mapping[str, Any]) -> list[str]:
        """Other definition files may change what all share, such as a function of a library."""
        own = {os.path.basename(name): content for name, content in record["files"].items()}
        now = {os.path.basename(path): content for path, content in self._found(self.plugins).items()}
        then = {os.path.basename(path): content for path, content in record["plugins"].items()}
        texts = []
        for name in sorted(now.keys() | then.keys()):
            if name in own and name not in then:
                continue
            if name not in now:
                texts.append(f"the plug-in {name} is not loaded")
            elif name not in then:
                texts.append(f"the plug-in {name} is loaded as well")
            elif now[name] != then[name]:
                texts.append(f"the plug-in {name} changed")
        return texts

    def _changed_versions(self, record: Mapping[str, Any]) -> list[str]:
        now = installed_versions()
        texts = [
            f"{name} {then} → {now.get(name, 'not installed')}"
            for name, then in record["libraries"].items()
            if now.get(name) != then
        ]
        if record["python"] != platform.python_version():
            texts.append(f"Python {record['python']} → {platform.python_version()}")
        if record["testbed"] != self.testbed:
            texts.append("testbed's own code changed")
        return texts

    @cached_property
    def testbed(self) -> str:
        """A digest of the parts of testbed that compute numbers."""
        names = []
        for path in _PACKAGE.rglob("*.py"):
            name = path.relative_to(_PACKAGE).as_posix()
            if not _is_definition(name) and not name.startswith(_WITHOUT_NUMBERS):
                names.append(name)
        with reading.watch(None):
            return digest(ContentDigests(_PACKAGE).digests(sorted(names)))

    def _found(self, names: Iterable[str]) -> dict[str, str]:
        """Name → the digest of the file's content now, or `MISSING`."""
        wanted = list(names)
        lacking = [name for name in dict.fromkeys(wanted) if name not in self._digests]
        by_folder: dict[Path, list[tuple[str, str]]] = {}
        for name in lacking:
            path = Path(_path(name))
            by_folder.setdefault(path.parent, []).append((name, path.name))
        for folder, files in by_folder.items():
            with reading.watch(None):
                contents = ContentDigests(folder).digests([file for _, file in files])
            self._digests.update(zip((name for name, _ in files), contents, strict=True))
        return {name: self._digests[name] for name in wanted}

    def _versions(self, files: tuple[str, ...]) -> dict[str, str]:
        now = installed_versions()
        wanted = {*LIBRARIES, *(name for file in files for name in _distributions(_path(file)))}
        return {name: now[name] for name in sorted(wanted) if name in now and name != "testbed"}


def mixed(record: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The record of something that two runs computed parts of; where they differ, it is like no record of one run."""
    made = dict(record)
    for part in ("files", "plugins", "variables", "libraries"):
        ours, theirs = record[part], other.get(part, {})
        made[part] = {
            name: _one_or_both(ours.get(name, theirs.get(name)), theirs.get(name, ours.get(name)))
            for name in sorted(ours.keys() | theirs.keys())
        }
    for part in ("python", "testbed"):
        made[part] = _one_or_both(record[part], other.get(part))
    return made


def _one_or_both(ours: str | None, theirs: str | None) -> str | None:
    return ours if ours == theirs else f"{ours}, and {theirs}"


def record_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two records, for people."""
    texts = []
    for part, noun in (("files", ""), ("plugins", "the plug-in "), ("variables", "the environment variable ")):
        old, new = before.get(part, {}), after.get(part, {})
        for name in dict.fromkeys([*old, *new]):
            if old.get(name) != new.get(name):
                how = "is in B alone" if name not in old else "is in A alone" if name not in new else "differs"
                texts.append(f"{noun}{name} {how}")
    old, new = ({**each.get("libraries", {}), "Python": each.get("python")} for each in (before, after))
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            texts.append(f"{name} {old.get(name, 'not installed')} → {new.get(name, 'not installed')}")
    if before.get("testbed") != after.get("testbed"):
        texts.append("testbed's own code differs")
    return texts


@cache
def named_files(source: str) -> frozenset[str]:
    """The files that a source file names in texts: absolutely, or beside it.

    What opens files without Python's knowledge (safetensors, torchvision.io) is seen by this alone. Files that were
    written since this process began are more likely results.
    """
    try:
        tree = sourcecode.file_tree(Path(source))
    except IdentityError:
        return frozenset()
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = {text for text in texts if "." in text and "\n" not in text and "\0" not in text and len(text) < _LONGEST}
    places = {place for name in names for place in (name, os.path.join(os.path.dirname(source), name.lstrip("/")))}
    return frozenset(os.path.abspath(place) for place in places if os.path.isabs(place) and _is_old_file(place))


def _is_old_file(path: str) -> bool:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_mtime < _BEGAN


def own_modules() -> set[str]:
    """The files of the imported modules that belong to no library, no plug-in and not to testbed."""
    files = set()
    for name, module in sys.modules.copy().items():
        file = getattr(module, "__file__", None)
        plain = name != "__main__" and not name.startswith(("testbed_plugin_", "testbed."))
        if plain and isinstance(file, str) and file.endswith(".py") and sourcecode.is_own(name, file):
            files.add(os.path.abspath(file))
    return files


@cache
def installed_versions() -> dict[str, str]:
    """The version of each installed distribution, from the names of the folders that say so: nothing is imported."""
    found: dict[str, str] = {}
    for folder in sys.path:
        with_info = _entries(folder)
        for entry in with_info:
            match = re.fullmatch(r"(.+?)-(\d[^-]*)(?:-.*)?\.(?:dist|egg)-info", entry)
            if match is not None:
                found.setdefault(_canonical(match[1]), match[2])
    return found


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")
    except OSError:
        return []


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _packages() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


@cache
def _distributions(file: str) -> frozenset[str]:
    """The distributions that a source file imports directly."""
    try:
        tree = sourcecode.file_tree(Path(file))
    except IdentityError:
        return frozenset()
    tops = {name.partition(".")[0] for name in imported_modules(tree, None)} - sys.stdlib_module_names
    found = set()
    for top in tops - {"testbed", ""}:
        name = _LIBRARY_OF.get(top, _canonical(top))
        if name in installed_versions():
            found.add(name)
        elif _in_library(top):
            found.update(_canonical(each) for each in _packages().get(top, ()))
    return frozenset(found)


def _in_library(module: str) -> bool:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return False
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or [])]
    return any(place is not None and sourcecode.is_library_file(place) for place in places)


def _named(path: str) -> str:
    """A file as records name it: testbed's own ones relative to its package, which lies elsewhere elsewhere."""
    try:
        return f"{_OURS}{Path(path).relative_to(_PACKAGE).as_posix()}"
    except ValueError:
        return path


def _path(name: str) -> str:
    return str(_PACKAGE / name.removeprefix(_OURS)) if name.startswith(_OURS) else name


def _is_definition(name: str) -> bool:
    """Whether a file is one of those directly in a room that define models or settings."""
    room, _, file = name.partition("/")
    return room in _ROOMS and "/" not in file and not file.endswith("_base.py") and not file.startswith("_")


def _variable(name: str) -> str | None:
    """A digest of a variable's value, which may be a secret; None where it is not set."""
    value = os.environ.get(name)
    return None if value is None else digest_bytes(value.encode("utf-8", "surrogateescape"))[:16]


def described(differences: Sequence[Difference]) -> str:
    """Some differences in one line."""
    texts = list(dict.fromkeys(each.text for each in differences))
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{'; '.join(texts[:_SHOWN])}{more}"

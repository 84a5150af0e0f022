"""What an evaluation was computed from, beside its identity: files, folders, variables, libraries, testbed itself.

The identity of a cell holds what can be told from definitions. A record holds what was seen when the cell was computed.
It is plain JSON and stored with the evaluation. `Today.differences` says what is no longer as it was; that costs a
look at the time stamps of the files. Where something differs, the outputs may still be the same; a run then computes a
few samples again and compares.

Files are looked for where they would be read today: a name that was relative to the working folder is so still, and
what was found from the place of a module, a plug-in or the working folder is looked for from their place today, too.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from testbed.data.content import MISSING, ContentDigests
from testbed.identity.describe import SCHEME, digest, digest_bytes
from testbed.identity.source_code import PLUGIN_PREFIX
from testbed.provenance import libraries
from testbed.tracing import access_log
from testbed.tracing.access_log import ABSENT, EXISTS, FILE, FOLDER, LIBRARY, MODULE, VARIABLE

_PACKAGE = Path(__file__).parent.parent
_IN_PACKAGE = f"{_PACKAGE}{os.sep}"
_OURS = "testbed:"  # begins the names of testbed's own files, which are relative to the package
# Parts of testbed that have no bearing on numbers. The definitions in the packages are no part either: each counts for
# those cells alone that use it.
_WITHOUT_NUMBERS = (
    *("cli/", "console/", "exchange/", "analyses/", "registry/", "plugins/"),
    *("compat/clip_benchmark/", "compat/clip_cc_bench/", "compat/importing.py", "compat/earlier_store.py"),
    *("compat/vlmevalkit/vlmevalkit_", "compat/vlmevalkit/recorded"),
)
_DEFINITIONS = ("models", "eval_settings")
_SHOWN = 3
_DISTRIBUTION = "results-testbed"  # whose code has a digest of its own
DISTRIBUTION = "distribution"  # a use that an earlier record says; else they follow from imported modules
_WORKING_FOLDER = "."
# Entries of a folder that running the code makes.
_MADE = ("__pycache__", "-wal", "-shm", "-journal", ".pyc")
MISSING_RECORD = "{}: the store does not say which files and versions it was computed from"

Use = tuple[str, str]  # a kind of `testbed.tracing.access_log`, and a name as records have it


class Today:
    """Files, variables and versions as they are now; each is looked at once.

    Args:
        plugins: The definition files that are loaded.
    """

    def __init__(self, plugins: Sequence[Path] = ()) -> None:
        self.plugins = [str(Path(plugin).resolve()) for plugin in plugins]
        self._digests: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def record_of(self, uses: Iterable[Use]) -> dict[str, Any]:
        """The record of a cell.

        Args:
            uses: What it depends on; files by their absolute paths, or as `reading.asked_name` has them.
        """
        by_kind: dict[str, set[str]] = {}
        for kind, name in uses:
            by_kind.setdefault(kind, set()).add(name)
        absent, variables = by_kind.get(ABSENT, set()), by_kind.get(VARIABLE, set())
        names = {_named(name) for name in by_kind.get(FILE, set()) | absent}
        found = self._found([_path(name) for name in {*names, *self.plugins}])
        own = {name: found[_path(name)] for name in sorted(names)}
        return {
            "scheme": SCHEME,
            # What is gone was made for a while only, unless nobody ever saw it.
            "files": {name: content for name, content in own.items() if content != MISSING or name in absent},
            "folders": {name: self._listing(access_log.place_of(name)) for name in sorted(by_kind.get(FOLDER, set()))},
            "exists": {name: _is_there(access_log.place_of(name)) for name in sorted(by_kind.get(EXISTS, set()))},
            "modules": {name: False for name in sorted(by_kind.get(MODULE, set())) if not _is_importable(_path(name))},
            "plugins": {name: found[name] for name in sorted(set(self.plugins) - set(own))},
            "variables": {name: _variable(name) for name in sorted(variables)},
            "libraries": self._libraries(by_kind.get(LIBRARY, set()), by_kind.get(DISTRIBUTION, set())),
            "roots": roots(self.plugins),
            "python": platform.python_version(),
            "testbed": self.testbed,
        }

    @staticmethod
    def _libraries(modules: set[str], more: set[str]) -> dict[str, str]:
        return libraries.releases((libraries.of_modules(modules) | more) - {_DISTRIBUTION})

    def differences(self, record: Mapping[str, Any]) -> list[str]:
        """What is not as a record says, for people; none where nothing relevant has changed."""
        if record.get("scheme") != SCHEME:
            return [f"identities were made by scheme {record.get('scheme', 1)}, now {SCHEME}"]
        found = self._changed_files(record)
        found += [
            f"the environment variable {name} changed"
            for name, value in record["variables"].items()
            if _variable(name) != value
        ]
        return found + self._changed_plugins(record) + self._changed_versions(record)

    def code_differs(self, record: Mapping[str, Any]) -> bool:
        """Whether what computes metrics is not as a record says: testbed, libraries, or a plug-in that changes them."""
        return record.get("scheme") != SCHEME or bool(self._changed_plugins(record) or self._changed_versions(record))

    def changed_since(self) -> set[str]:
        """The files whose content is another one than when it was first looked at."""
        before = dict(self._digests)
        self._digests.clear()
        now = self._found(before)
        self._digests = before
        return {_named(name) for name, content in before.items() if now[name] != content}

    def _changed_files(self, record: Mapping[str, Any]) -> list[str]:
        places = _Places(record.get("roots", {}), roots(self.plugins))
        files = {name: places.of(name) for name in record["files"]}
        now = self._found([place for each in files.values() for place in each])
        texts = []
        for name, content in record["files"].items():
            there = {now[place] for place in files[name]} - {MISSING}
            if there != {content} - {MISSING}:
                how = "is gone" if not there else "is there now" if content == MISSING else "changed"
                texts.append(f"{name} {how}")
        for name, content in record.get("folders", {}).items():
            there = {self._listing(place) for place in places.of(name)} - {MISSING}
            if there != {content} - {MISSING}:
                texts.append(f"what the folder {name} holds changed")
        for name, known in record.get("exists", {}).items():
            if any(_is_there(place) for place in places.of(name)) != known:
                texts.append(f"{name} {'is gone' if known else 'is there now'}")
        for name in record.get("modules", {}):
            if any(_is_importable(place) for place in places.of(name)):
                folder, module = os.path.split(name)
                texts.append(f"the module {module}, which {folder} asks for, is there now")
        return texts

    def _listing(self, folder: str) -> str:
        """A digest of the names in a folder; `MISSING` for one that cannot be listed."""
        if folder not in self._folders:
            try:
                with access_log.watch(None):
                    names = sorted(name for name in os.listdir(folder) if name[:1] != "." and not name.endswith(_MADE))
                self._folders[folder] = digest(names)
            except OSError:
                self._folders[folder] = MISSING
        return self._folders[folder]

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
        now = libraries.releases(record["libraries"])
        texts = [
            release_change(name, then, now.get(name))
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
        return _digest_of_testbed()

    def _found(self, paths: Iterable[str]) -> dict[str, str]:
        """Absolute path → the digest of the file's content now, or `MISSING`."""
        wanted = list(paths)
        lacking = [path for path in dict.fromkeys(wanted) if path not in self._digests]
        by_folder: dict[str, list[str]] = {}
        for path in lacking:
            by_folder.setdefault(os.path.dirname(path), []).append(path)
        for folder, files in by_folder.items():
            with access_log.watch(None):
                contents = ContentDigests(Path(folder)).digests([os.path.basename(file) for file in files])
            self._digests.update(zip(files, contents, strict=True))
        return {path: self._digests[path] for path in wanted}


@cache
def _digest_of_testbed() -> str:
    names = []
    for path in _PACKAGE.rglob("*.py"):
        name = path.relative_to(_PACKAGE).as_posix()
        if not _is_definition(name) and not name.startswith(_WITHOUT_NUMBERS):
            names.append(name)
    with access_log.watch(None):
        return digest(ContentDigests(_PACKAGE).digests(sorted(names)))


def roots(plugins: Iterable[str]) -> dict[str, str]:
    """Where what files are found from lies: the working folder, the plug-ins' folders, those of the user's modules.

    Of several with one name none is told.
    """
    places: dict[str, set[str]] = {}
    for plugin in plugins:
        places.setdefault(os.path.basename(plugin), set()).add(os.path.dirname(plugin))
    for top in {name.partition(".")[0] for name in access_log.own_modules() if not name.startswith(PLUGIN_PREFIX)}:
        if (folder := _folder_of(top)) is not None:
            places.setdefault(top, set()).add(folder)
    found = {name: min(folders) for name, folders in sorted(places.items()) if len(folders) == 1}
    return {_WORKING_FOLDER: access_log.working_folder(), **found}


def _folder_of(top: str) -> str | None:
    """The folder that a top-level module, imported or not, lies in."""
    module = sys.modules.get(top)
    try:
        spec = module.__spec__ if module is not None else importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    paths = list((spec.submodule_search_locations if spec is not None else None) or [])
    file = paths[0] if paths else spec.origin if spec is not None else None
    return os.path.dirname(os.path.abspath(file)) if file else None


class _Places:
    """Where the files of a record would be read today.

    Args:
        then: The record's roots.
        now: Today's.
    """

    def __init__(self, then: Mapping[str, str], now: Mapping[str, str]) -> None:
        modules = {name: _folder_of(name) for name in then.keys() - now.keys() if name.isidentifier()}
        today = {name: now.get(name) or modules.get(name) or folder for name, folder in then.items()}
        self._moved = [(folder, today[name]) for name, folder in then.items() if today[name] != folder]

    def of(self, name: str) -> list[str]:
        """The absolute paths; code of a folder that was moved is read there alone."""
        if name.startswith((_OURS, f".{os.sep}")) or not self._moved:
            return [_path(name)]
        found = {name: None}
        for then, now in self._moved:
            place = os.path.normpath(os.path.join(now, os.path.relpath(name, then)))
            if name.endswith(".py") and name.startswith(f"{then}{os.sep}"):
                return [place]
            found[place] = None
        return list(found)


def mixed(record: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The record of something that two runs computed parts of; where they differ, it is like no record of one run."""
    made = dict(record)
    for part in ("files", "folders", "exists", "modules", "plugins", "variables", "libraries"):
        ours, theirs = record.get(part, {}), other.get(part, {})
        made[part] = {
            name: _one_or_both(ours.get(name, theirs.get(name)), theirs.get(name, ours.get(name)))
            for name in sorted(ours.keys() | theirs.keys())
        }
    for part in ("python", "testbed"):
        made[part] = _one_or_both(record[part], other.get(part))
    return made


def _one_or_both(ours: Any, theirs: Any) -> Any:
    return ours if ours == theirs else f"{ours}, and {theirs}"


def record_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two records, for people."""
    texts = []
    parts = {"files": "", "folders": "the folder ", "exists": "whether there is ", "modules": "the missing module "}
    parts |= {"plugins": "the plug-in "}
    for part, noun in {**parts, "variables": "the environment variable "}.items():
        old, new = before.get(part, {}), after.get(part, {})
        for name in dict.fromkeys([*old, *new]):
            if old.get(name) != new.get(name):
                how = "is in B alone" if name not in old else "is in A alone" if name not in new else "differs"
                texts.append(f"{noun}{name} {how}")
    old, new = ({**each.get("libraries", {}), "Python": each.get("python")} for each in (before, after))
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            texts.append(release_change(name, old.get(name), new.get(name)))
    if before.get("testbed") != after.get("testbed"):
        texts.append("testbed's own code differs")
    return texts


def release_change(name: str, before: str | None, after: str | None) -> str:
    """How the release of a library has changed, for people."""
    old, new = (each.partition(" ")[0] if each else "not installed" for each in (before, after))
    return f"{name} {old} → {new}" if old != new else f"{name} {old} has other files"


def _named(path: str) -> str:
    """A file as records name it: testbed's own ones relative to its package, which lies elsewhere elsewhere."""
    if not path.startswith(_IN_PACKAGE):
        return path
    return f"{_OURS}{path[len(_IN_PACKAGE) :].replace(os.sep, '/')}"


def _path(name: str) -> str:
    if name.startswith(_OURS):
        return str(_PACKAGE / name.removeprefix(_OURS))
    return access_log.place_of(name)


def _is_there(path: str) -> bool:
    return os.path.exists(path)


def _is_importable(place: str) -> bool:
    """Whether there is a module now, in the folder of what asks for it or where Python finds it."""
    if os.path.isfile(f"{place}.py") or os.path.isfile(os.path.join(place, "__init__.py")):
        return True
    with access_log.watch(None):
        try:
            return importlib.util.find_spec(os.path.basename(place)) is not None
        except (ImportError, ValueError, AttributeError):
            return True  # loaded by hand


def is_definition_file(path: str) -> bool:
    """Whether a file is one of those of testbed that define models or settings."""
    name = _named(path)
    return name.startswith(_OURS) and _is_definition(name.removeprefix(_OURS))


def _is_definition(name: str) -> bool:
    """Whether a file is one of those directly in a package that define models or settings."""
    package, _, file = name.partition("/")
    return package in _DEFINITIONS and "/" not in file and not file.endswith("_base.py") and not file.startswith("_")


def _variable(name: str) -> str | None:
    """A digest of a variable's value, which may be a secret; None where it is not set."""
    value = os.environ.get(name)
    return None if value is None else digest_bytes(value.encode("utf-8", "surrogateescape"))[:16]


def described(differences: Iterable[str]) -> str:
    """Some differences in one line."""
    texts = list(dict.fromkeys(differences))
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{'; '.join(texts[:_SHOWN])}{more}"

"""Records of what an evaluation was computed from, beside its identity: files, variables, libraries, testbed itself.

The identity of a cell follows from definitions. A record holds what was read when the cell was computed. It is plain
JSON and stored with the evaluation. `Today.differences` returns what has changed since; that reads the time stamps of
the files. Where something differs, the outputs may still be the same; a run then computes a few samples again and
compares.

Files are looked for in their former places; a name that was relative to the working folder still is. If a plug-in or a
module of the user's lies in another folder today, that is a difference of its own.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from testbed.data.content import MISSING, ContentDigests
from testbed.identity.describe import SCHEME, digest, digest_bytes
from testbed.provenance import libraries
from testbed.tracing import access_log, versions
from testbed.tracing.access_log import EXISTS, FILE, FOLDER, LIBRARY_ASKED, LINK, MODULE, TOP_MODULE, VARIABLE
from testbed.tracing.own_code import PLUGIN_PREFIX
from testbed.tracing.variables import ALL

_PACKAGE = Path(__file__).parent.parent
_IN_PACKAGE = f"{_PACKAGE}{os.sep}"
_OURS = "testbed:"  # begins the names of testbed's own files, which are relative to the package
# The parts of testbed between a sample and a stored number; `tests/test_packages.py` compares them with the imports.
# Definitions in these packages are not among them: each counts for those cells alone that use it. What stands in for
# other tools' modules counts where a plug-in has imported it, as a module of the user's.
COMPUTING = """
    answers/ contracts/ corruptions/ data/ eval_settings/ graph/ metrics/ models/ scoring/ tasks/ workers/
    calls.py canonical_text.py devices.py inputs.py jsontext.py metric_specs.py samples.py spreadsheet.py
    yamltext.py
""".split()
_DEFINITIONS = ("models", "eval_settings")
_SHOWN = 3
_DISTRIBUTION, _TESTBED = "results-testbed", "testbed's own code"  # which has a digest of its own
LIBRARY = "libraries"  # the release of an installed distribution, of Python, or of testbed
PLUGIN = "plugins"
CHECKED = "checked"  # the number of samples that were found equal, and the share of all that may differ
# The parts of a record, and how a change of something in them is worded. A part holds a value for each name: the digest
# of a file, of the names in a folder, of a variable; a release; a missing one has the value `MISSING`.
_SAID = {
    FILE: "{name} {how}",
    FOLDER: "what the folder {name} holds {how}",
    EXISTS: "{name} {how}",
    LINK: "the link {name} {how}",
    MODULE: "the module {name} {how}",
    VARIABLE: "the environment variable {name} {how}",
    PLUGIN: "the plug-in {name} {how}",
    LIBRARY: "{release}",
    LIBRARY_ASKED: "{release}",
}
_PLACED = (FILE, FOLDER, EXISTS, LINK, MODULE)  # parts whose names are paths; records from before have no links
_THERE = "there"
_WORKING_FOLDER = "the working folder"
# Entries of a folder that running the code makes.
_MADE = ("__pycache__", "-wal", "-shm", "-journal", ".pyc")
EDITED = "was edited since it was read: restart Python, or reload it"
MISSING_RECORD = "{}: the store does not record which files and versions it was computed from"

Use = tuple[str, str]  # a kind of `testbed.tracing.access_log`, and a name as records have it


class Today:
    """Files, variables and versions as they are now; each is looked at once."""

    def __init__(self, plugins: Sequence[Path] = ()) -> None:
        self.plugins = [str(Path(plugin).resolve()) for plugin in plugins]
        self._digests: dict[str, str] = {}
        self._stamps: dict[str, str] = {}  # of the files when they were hashed
        self._folders: dict[str, str] = {}

    def record_of(self, uses: Iterable[Use]) -> dict[str, Any]:
        """The record of a cell that depends on these things."""
        used: dict[str, set[str]] = defaultdict(set)
        for kind, name in uses:
            used[kind].add(name)
        used[FILE] = {_named(name) for name in used[FILE]}
        self._digest([_path(name) for name in used[FILE]] + self.plugins)
        record: dict[str, Any] = {
            part: {name: self._value(part, _path(name)) for name in sorted(used[part])} for part in _PLACED
        }
        record[FILE] = {name: self._content_read(_path(name)) for name in record[FILE]}
        # What is gone was made for a while only.
        record[FILE] = {name: content for name, content in record[FILE].items() if content != MISSING}
        record[MODULE] = {name: found for name, found in record[MODULE].items() if found == MISSING}
        record[PLUGIN] = {name: self._digests[name] for name in sorted(set(self.plugins) - set(record[FILE]))}
        record[VARIABLE] = {name: _variable(name) for name in sorted(used[VARIABLE])}
        record[LIBRARY_ASKED] = {name: libraries.asked(name) for name in sorted(used[LIBRARY_ASKED])}
        record[LIBRARY] = self._releases(libraries.of_modules(used[TOP_MODULE]) | used[LIBRARY])
        names = [name for part in _PLACED for name in record[part]]
        within = {name: folder for name, folder in roots(self.plugins).items() if _has_any(folder, names)}
        return {**record, "roots": within, "scheme": SCHEME}

    def differences(self, record: Mapping[str, Any]) -> list[str]:
        """Returns the differences from a record, for people; none where nothing relevant has changed."""
        if record.get("scheme") != SCHEME:
            return [f"identities were made by scheme {record.get('scheme', 1)}, now {SCHEME}"]
        moved = [f"{name} is in another place" for name in self._moved(record["roots"])]
        return moved + self._changed_own(record) + self._changed_code(record)

    def own_differ(self, record: Mapping[str, Any]) -> bool:
        """Checks whether files, folders or variables of the user's differ from a record."""
        return record.get("scheme") == SCHEME and bool(self._changed_own(record))

    def _changed_own(self, record: Mapping[str, Any]) -> list[str]:
        self._digest(_path(name) for name in record[FILE])
        texts = []
        for part in _PLACED:
            then = record.get(part, {})
            texts += _changes(part, then, {name: self._value(part, _path(name)) for name in then})
        asked = record.get(LIBRARY_ASKED, {})
        texts += _changes(LIBRARY_ASKED, asked, {name: libraries.asked(name) for name in asked})
        return texts + _changes(VARIABLE, record[VARIABLE], {name: _variable(name) for name in record[VARIABLE]})

    def _moved(self, then: Mapping[str, str]) -> list[str]:
        """The plug-ins and modules that lie in another folder now; those that are not there are no difference."""
        now = roots(self.plugins)
        today = {name: now.get(name) or (_folder_of(name) if name.isidentifier() else None) for name in then}
        return [name for name, folder in then.items() if today[name] not in (None, folder)]

    def code_differs(self, record: Mapping[str, Any]) -> bool:
        """Checks whether the code of metrics differs from a record: testbed, libraries, or plug-ins that change it."""
        return record.get("scheme") != SCHEME or bool(self._changed_code(record))

    def edited(self, record: Mapping[str, Any]) -> list[str]:
        """The files of a record of which code in memory holds another version than the one that is there now."""
        with access_log.watch(None):
            return [name for name in record.get(FILE, ()) if versions.is_edited(_path(name))]

    def changed_since(self) -> set[str]:
        """The files whose content is not that of the first look at them, or that were read in two versions."""
        before = dict(self._digests)
        self._digests.clear()
        self._digest(before)
        now, self._digests = self._digests, before
        changed = {name for name, content in before.items() if now[name] != content}
        return {_named(name) for name in changed.union(name for name in before if len(versions.read(name)) > 1)}

    def _content_read(self, path: str) -> str:
        """The content of a file that was read, which is not always the one that it had when it was hashed."""
        if (now := self._digests[path]) == MISSING:
            return now
        others = versions.read(path) - {now, self._stamps[path]}
        if len(versions.read(path)) == 1 and all(map(versions.is_digest, others)):
            return next(iter(others), now)
        return f"{now}, and another one" if others else now

    def _value(self, part: str, path: str) -> str:
        """Returns a record's value for a file, a folder, or a possible module; for files, those that were digested."""
        if part == FILE:
            return self._digests[path]
        if part == FOLDER:
            return self._listing(path)
        if part == LINK:
            return os.readlink(path) if os.path.islink(path) else MISSING
        return _THERE if (os.path.exists if part == EXISTS else _is_importable)(path) else MISSING

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

    def _changed_code(self, record: Mapping[str, Any]) -> list[str]:
        """Returns changed releases; and other definition files, which may change what all share."""
        return self._changed_plugins(record) + _changes(LIBRARY, record[LIBRARY], self._releases(record[LIBRARY]))

    def _changed_plugins(self, record: Mapping[str, Any]) -> list[str]:
        """The changed plug-ins by file name, since their folders may have moved; several may have one name."""
        self._digest(self.plugins)
        own, then = _by_file_name(record[FILE]), _by_file_name(record[PLUGIN])
        now = _by_file_name({path: self._digests[path] for path in self.plugins})
        texts = []
        for name in dict.fromkeys([*then, *now]):
            if name in own and name not in then:
                continue  # what the cell itself has read is looked at as a file
            old, new = then.get(name, set()), now.get(name, set())
            if old - new or new - old - own.get(name, set()):
                before, after = (_THERE if found else MISSING for found in (old, new))
                texts.append(change(PLUGIN, name, before, after))
        return texts

    def _releases(self, names: Iterable[str]) -> dict[str, str]:
        releases = libraries.releases(set(names) - {_DISTRIBUTION})
        return {**releases, "Python": platform.python_version(), _TESTBED: f" {self.testbed}"}

    @cached_property
    def testbed(self) -> str:
        """A digest of the parts of testbed that compute numbers."""
        return _digest_of_testbed()

    def _digest(self, paths: Iterable[str]) -> None:
        """Digests those of some files that were not digested yet, by folders; `MISSING` for what is not there."""
        by_folder: dict[str, list[str]] = {}
        for path in dict.fromkeys(paths):
            if path not in self._digests:
                folder = str(_PACKAGE) if path.startswith(_IN_PACKAGE) else os.path.dirname(path)
                by_folder.setdefault(folder, []).append(path)
        for folder, files in by_folder.items():
            self._stamps |= {file: versions.stamp(file) for file in files}
            with access_log.watch(None):
                contents = ContentDigests(Path(folder)).digests([file[len(folder) :].lstrip(os.sep) for file in files])
            self._digests.update(zip(files, contents, strict=True))


def _by_file_name(contents: Mapping[str, str]) -> dict[str, set[str]]:
    """The contents of files by their names without folders."""
    found: dict[str, set[str]] = {}
    for path, content in contents.items():
        found.setdefault(os.path.basename(path), set()).add(content)
    return found


@cache
def _digest_of_testbed() -> str:
    names = []
    for path in _PACKAGE.rglob("*.py"):
        name = path.relative_to(_PACKAGE).as_posix()
        if name.startswith(tuple(COMPUTING)) and not _is_definition(name):
            names.append(name)
    with access_log.watch(None):
        return digest(ContentDigests(_PACKAGE).digests(sorted(names)))


def roots(plugins: Iterable[str]) -> dict[str, str]:
    """Returns the folders from which files are found: the working folder, the plug-ins' folders, those of user modules.

    Folders that share a name are left out.
    """
    places: dict[str, set[str]] = {}
    for plugin in plugins:
        places.setdefault(os.path.basename(plugin), set()).add(os.path.dirname(plugin))
    for top in {name.partition(".")[0] for name in access_log.own_modules() if not name.startswith(PLUGIN_PREFIX)}:
        if (folder := _folder_of(top)) is not None:
            places.setdefault(top, set()).add(folder)
    folders_by_name = {name: min(folders) for name, folders in sorted(places.items()) if len(folders) == 1}
    return {_WORKING_FOLDER: access_log.working_folder(), **folders_by_name}


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


def _has_any(folder: str, names: Iterable[str]) -> bool:
    """Checks whether some files or folders lie in a folder."""
    return any(name.startswith(f"{folder}{os.sep}") for name in names)


def mixed(record: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The record of something that two runs computed parts of; where they differ, it is like no record of one run."""
    made = dict(record)
    for part in _SAID:
        one, two = record.get(part, {}), other.get(part, {})
        made[part] = {**two, **one}
        made[part] |= {
            name: f"{one[name]}, and {two[name]}" for name in one.keys() & two.keys() if one[name] != two[name]
        }
    return made


def record_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Returns the differences between two records, for people."""
    return [text for part in _SAID for text in _changes(part, before.get(part, {}), after.get(part, {}))]


def _changes(part: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    names = dict.fromkeys([*before, *after])
    both = [(name, before.get(name, MISSING), after.get(name, MISSING)) for name in names]
    return [change(part, name, old, new) for name, old, new in both if old != new]


def change(part: str, name: str, before: str, after: str) -> str:
    """Describes how something in a part of a record has changed, for people."""
    came, went = ("is loaded as well", "is not loaded") if part == PLUGIN else ("is there now", "is gone")
    how = came if before == MISSING else went if after == MISSING else "changed"
    old, new = ("not installed" if value == MISSING else value.partition(" ")[0] for value in (before, after))
    release = f"{name} {old} → {new}" if old != new else f"{name} {old}".strip() + " has other files"
    return _SAID[part].format(name=name, how=how, release=release)


def _named(path: str) -> str:
    """A file as records name it: testbed's own ones relative to its package, which lies elsewhere elsewhere."""
    if not path.startswith(_IN_PACKAGE):
        return path
    return f"{_OURS}{path[len(_IN_PACKAGE) :].replace(os.sep, '/')}"


def _path(name: str) -> str:
    if name.startswith(_OURS):
        return str(_PACKAGE / name.removeprefix(_OURS))
    return access_log.place_of(name)


def _is_importable(place: str) -> bool:
    """Checks whether there is a module now, in the folder of its importer or where Python finds it."""
    if os.path.isfile(f"{place}.py") or os.path.isfile(os.path.join(place, "__init__.py")):
        return True
    with access_log.watch(None):
        try:
            return importlib.util.find_spec(os.path.basename(place)) is not None
        except (ImportError, ValueError, AttributeError):
            return True  # loaded by hand


def is_definition_file(path: str) -> bool:
    """Checks whether a file is one of those of testbed that define models or settings."""
    name = _named(path)
    return name.startswith(_OURS) and _is_definition(name.removeprefix(_OURS))


def is_standing_in(path: str) -> bool:
    """Checks whether a file is one of those of testbed that stand in for modules of other tools."""
    return _named(path).startswith(f"{_OURS}standins/")


def _is_definition(name: str) -> bool:
    """Checks whether a file is one of those directly in a package that define models or settings."""
    package, _, file = name.partition("/")
    return package in _DEFINITIONS and "/" not in file and not file.endswith("_base.py") and not file.startswith("_")


def _variable(name: str) -> str:
    """A digest of a variable, or of all that begin so: values may be secrets; `MISSING` where none is set."""
    if name.endswith(ALL):
        variables = [f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith(name[: -len(ALL)])]
        value = "\n".join(variables) or None
    else:
        value = os.environ.get(name)
    return MISSING if value is None else digest_bytes(value.encode("utf-8", "surrogateescape"))[:16]


def described(differences: Iterable[str]) -> str:
    """Describes some differences in one line."""
    texts = list(dict.fromkeys(differences))
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{'; '.join(texts[:_SHOWN])}{more}"

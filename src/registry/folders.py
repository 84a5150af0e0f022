"""``--on PATH``: a folder of images, or a data file, in place of the name of a setting."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.errors import DataError, UnknownNameError, unknown_name
from testbed.inputs import Inputs, absolute, is_url
from testbed.paths import expanded
from testbed.registry import data_files
from testbed.registry.references import IN_MEMORY
from testbed.registry.select import WILDCARDS

PREFIX = "folder/"  # the settings of image folders


def settings_of_folders(registry: Any, words: Sequence[str], inputs: Inputs) -> tuple[Sequence[str], Inputs]:
    """Writes words and inputs with paths as settings, ``folder/NAME`` and ``file/NAME`` below the data root.

    Without a data root, the parent of the folder or file becomes the data root. A name that is registered stays what
    it is, and so does a file with a list of names. A path may be followed by what derives settings from others, as in
    ``PATH+imagenet-c.fog.3``.

    Raises:
        DataError: If a folder or file is not below the data root.
        UnknownNameError: If a word is neither a name nor a path.
    """
    known, resolved = registry.eval_settings, list(words)
    for index, word in enumerate(words):
        if word in registry.eval_setting_collections or word in known:
            continue
        place, derived = _with_suffix(word)
        data = data_files.data_path(place)
        if data is None and not _is_folder(place):
            _check_no_path(known, word)
            continue
        what, prefix = ("folder", PREFIX) if data is None else ("file", data_files.PREFIX)
        path = Path(absolute(data or place))
        if inputs.data_root is None:
            inputs = inputs.but(data_root=path.parent)
        root = inputs.data_root or ""
        base = Path(absolute(root))
        if is_url(root) or "{" in root or base not in path.parents:
            raise DataError(
                f"the {what} {place} is not below the data root {root}; give --data-root {path.parent}, or run it alone"
            )
        name = f"{prefix}{path.relative_to(base).as_posix()}"
        resolved[index] = f"{name}{derived}"
        if derived:
            _check_corruption(known, name, resolved[index], f"the {what} {place}")
    return resolved, inputs


def _with_suffix(word: str) -> tuple[str, str]:
    """Splits a word into the longest path that exists, and what derives another setting from that one.

    A pattern is one of registered names, such as ``val+imagenet-c.*``, also beside a folder ``val``.
    """
    if any(character in word for character in WILDCARDS) and not _is_folder(word):
        return word, ""
    ends = [place for place, character in enumerate(word) if character in "+." and place > 0]
    for end in (len(word), *reversed(ends)):
        if _is_folder(word[:end]) or (end < len(word) and _is_file(word[:end])):
            return word[:end], word[end:]
    return word, ""


def _check_corruption(known: Any, name: str, derived: str, what: str) -> None:
    """Checks that a corruption after a path is known; it would be taken for a part of the path.

    Raises:
        UnknownNameError: If it is not; the message suggests the nearest names.
    """
    reference = known.reference(derived)
    _, plus, corruption = ("" if reference is None else str(reference.name)).removeprefix(name).partition("+")
    if plus:
        names = list(dict.fromkeys(each.removesuffix(IN_MEMORY) for each in known.names()))
        error = unknown_name("corruption", corruption, names, "the registry", known.listing)
        raise UnknownNameError(f"after {what} comes +CORRUPTION: {error}")


def _check_no_path(known: Any, word: str) -> None:
    """Checks that a word that stands for nothing else is not the path of a folder that does not exist.

    Raises:
        UnknownNameError: If there is no such folder, and it is written as a path or resembles no name.
    """
    if any(character in word for character in WILDCARDS) or known.explain(word) is not None:
        return
    path = expanded(word)
    is_path = word.startswith((".", "~", "/")) or path.is_absolute()
    if not _exists(path) and (is_path or not _resembles(word, known.names())):
        raise UnknownNameError(
            f"{word} is not an eval setting, and there is no file or folder {path.absolute()};"
            f" {known.listing} lists the eval settings"
        )


def _resembles(word: str, names: Sequence[str]) -> bool:
    near = difflib.get_close_matches(word, names, n=1)
    return bool(near) or any(word.lower() in name.lower() for name in names)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_file(word: str) -> bool:
    try:
        return bool(word) and expanded(word).is_file()
    except (OSError, ValueError):
        return False


def _is_folder(word: str) -> bool:
    try:
        return bool(word) and expanded(word).is_dir()  # pathlib takes an empty word for the working folder
    except (OSError, ValueError):  # for example too long for a file name
        return False

"""``--on path/to/folder``: a folder of images in place of the name of a setting."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.errors import DataError, UnknownNameError
from testbed.inputs import Inputs, absolute, is_url
from testbed.paths import expanded
from testbed.registry.select import WILDCARDS

PREFIX = "folder/"  # the settings of image folders


def settings_of_folders(registry: Any, words: Sequence[str], inputs: Inputs) -> tuple[Sequence[str], Inputs]:
    """Words and inputs with the paths of folders written as settings, ``folder/NAME`` below the data root.

    Without a data root, the folder's parent becomes the data root. A name that is registered stays what it is.

    Raises:
        DataError: If a folder is not below the data root.
        UnknownNameError: If a word is neither a name nor a folder.
    """
    known, found = registry.eval_settings, list(words)
    for index, word in enumerate(words):
        if word in registry.eval_setting_collections or word in known:
            continue
        if not _is_folder(word):
            _check_no_path(known, word)
            continue
        path = Path(absolute(word))
        if inputs.data_root is None:
            inputs = inputs.but(data_root=path.parent)
        root = inputs.data_root or ""
        base = Path(absolute(root))
        if is_url(root) or "{" in root or base not in path.parents:
            raise DataError(
                f"the folder {word} is not below the data root {root}; give --data-root {path.parent}, or run it alone"
            )
        found[index] = PREFIX + path.relative_to(base).as_posix()
    return found, inputs


def _check_no_path(known: Any, word: str) -> None:
    """Checks that a word that stands for nothing else is not the path of a folder that does not exist.

    Raises:
        UnknownNameError: If there is no such folder, and it resembles no name.
    """
    if any(character in word for character in WILDCARDS) or known.explain(word) is not None:
        return
    path = expanded(word)
    if not _exists(path) and not _resembles(word, known.names()):
        raise UnknownNameError(
            f"{word} is not an eval setting, and the folder {path.absolute()} does not exist;"
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


def _is_folder(word: str) -> bool:
    try:
        return expanded(word).is_dir()
    except (OSError, ValueError):  # for example too long for a file name
        return False

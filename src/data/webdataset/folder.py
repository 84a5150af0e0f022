"""Finds data sets in the webdataset format: in a folder below the data root, or on a web server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.remote_folder import RemoteFolder
from testbed.data.webdataset.format import METADATA, NSHARDS, read_nshards, splits
from testbed.errors import DataError, DefinitionError
from testbed.inputs import ENV_DATA, is_url
from testbed.paths import data_root, data_root_text, expanded, fill_root

if TYPE_CHECKING:
    from testbed.data.webdataset.source import WebDataset

PREFIX = "wds/"


class WebDatasetFolder:
    """A split of a data set in the webdataset format.

    Args:
        name: The part after ``wds/`` in the name of the setting, such as ``vtab/cifar10``; searched below the data
            root, see `find_webdataset`.
        root: A folder with such a data set, or its URL. Give either a name or a root.
    """

    named_when_opened = True  # its classes are known by name once it is open

    def __init__(self, name: str | None = None, split: str = "test", root: str | Path | None = None) -> None:
        if bool(name) == bool(root):
            raise DefinitionError(f"WebDatasetFolder takes either a name or a root, got name={name!r}, root={root!r}")
        self.name = name.removeprefix(PREFIX) if name else None
        if self.name is not None:
            check_name(self.name)
        self.root = str(root) if root else None
        self.split = split

    def location(self) -> str | Path:
        """The folder, or its URL; raises DataError if it is not found below the data root."""
        if self.root is not None:
            return self.root if is_url(self.root) else expanded(self.root)
        return find_webdataset(str(self.name))

    def spec(self) -> dict[str, Any]:
        """The place of the data set, and the split."""
        place = self.location()
        return {"webdataset": str(place.absolute() if isinstance(place, Path) else place), "split": self.split}

    def open(self) -> WebDataset:
        """The samples; for a URL, they are copied into the cache folder first."""
        from testbed.data.webdataset.source import WebDataset, check_split

        check_split(self.split)
        label = f"{PREFIX}{self.name}" if self.name is not None else str(self.root)
        return WebDataset(local_copy(self.location(), self.split), self.split, f"{label}-{self.split}")


def check_name(name: str) -> None:
    """Checks that a name stays below a folder; raises DefinitionError if it does not."""
    if "\\" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise DefinitionError(f"{PREFIX}{name}: the part after {PREFIX} must name a folder below the data root")


def find_webdataset(name: str) -> str | Path:
    """The folder or URL of a named data set.

    In the data root, ``{dataset}`` and ``{dataset_cleaned}`` are replaced by the name (in the latter with ``-`` for
    ``/``), as on CLIP benchmark's command line; the result is the data set's folder. A URL without them is the data
    set's folder too. Otherwise it is the first existing folder of ``wds_<name with - for />``, the same with
    ``_test`` (DataComp's form), ``wds/<name>`` and ``<name>`` below the data root, or the data root itself if it
    contains a data set. Where the name has no influence on the place, it has no dot, since what follows a dot may be a
    split (``pets.val``).

    Args:
        name: Such as ``vtab/cifar10``.

    Raises:
        DataError: If no data root is set, or it has no such data set.
    """
    check_name(name)
    root = data_root_text()
    candidates = [*_folder_names(name), name]
    if not root:
        raise DataError(
            f"data set {PREFIX}{name}: no data root is set; give --data-root DIR or set {ENV_DATA}, where"
            f" DIR/{candidates[0]} (or DIR/{PREFIX}{name}, or DIR/{name}) holds it"
        )
    filled = fill_root(root, name)
    unnamed = filled == root and "." in name.rpartition("/")[2]
    if is_url(filled) and not unnamed:
        return filled
    if filled != root:
        return Path(filled)
    if is_url(root):
        raise DataError(
            f"data set {PREFIX}{name}: {root} has no place for its name; give a URL with {{dataset}} in it, or use a"
            " name without a dot"
        )
    folder = Path(root)
    for candidate in candidates:
        if (folder / candidate).is_dir():
            return folder / candidate
    if splits(folder) and not unnamed:
        return folder
    raise DataError(
        f"data set {PREFIX}{name}: {root} has none of the folders {', '.join(candidates)}, and holds no SPLIT/{NSHARDS}"
        " itself; one of these should be there, or give another --data-root; testbed run --download gets CLIP"
        " benchmark's"
    )


def _folder_names(name: str) -> list[str]:
    """The folders of a named webdataset below the data root, in the order in which they are tried."""
    cleaned = f"wds_{name.replace('/', '-')}"
    return [cleaned, f"{cleaned}_test", f"{PREFIX}{name}"]


def webdataset_instead(name: str, split: str) -> WebDatasetFolder | None:
    """A split of a named set's webdataset below the data root, in place of missing files; None without it."""
    root = data_root()
    folders = [root / folder for folder in _folder_names(name)] if root is not None else []
    folder = next((folder for folder in folders if folder.is_dir()), None)
    return WebDatasetFolder(name, split) if folder is not None and (folder / split / NSHARDS).is_file() else None


def datacomp_name(setting: str) -> str:
    """The name of the webdataset of one of DataComp's settings, which has no ``fairness/`` or ``datacomp/``."""
    return setting.removeprefix("fairness/").removeprefix("datacomp/")


def folder_of(other: WebDatasetFolder | None) -> list[Path]:
    """The folder of class names and templates of a webdataset below the data root; empty without one."""
    place = other.location() if other is not None else None
    return [place] if isinstance(place, Path) else []


def local_copy(place: str | Path, split: str | None) -> Path:
    """A local folder with the files of a split.

    Args:
        place: A folder, which is returned unchanged, or a URL, whose files are copied into the cache folder.
        split: The split; None: only class names, templates and kind.

    Raises:
        DataError: If a file is not available.
    """
    if isinstance(place, Path):
        return place
    remote = RemoteFolder(place)
    for name in METADATA:
        remote.fetch(name, optional=True)
    if split is not None:
        if remote.fetch(f"{split}/{NSHARDS}", optional=True) is None:
            raise DataError(
                f"{remote.url_of(f'{split}/{NSHARDS}')} does not exist; it should contain the number of shards"
            )
        for number in range(read_nshards(remote.local / split)):
            remote.fetch(f"{split}/{number}.tar")
    return remote.local

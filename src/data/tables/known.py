"""Tables that VLMEvalKit knows, and their places: ``ROOT/NAME.tsv``, with pictures in ``ROOT/images/NAME``.

The list in ``known_tables.tsv`` is of VLMEvalKit at e8e78f0 (2026-08-18). Nothing is downloaded from its URLs.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError
from testbed.inputs import ENV_LMU_DATA
from testbed.paths import expanded, lmu_data_root

if TYPE_CHECKING:
    from testbed.data.tables.source import TableSource

_LONGEST_HEADER = 1 << 20  # bytes
_LONGEST_NAME = 60  # characters of a table's; file systems end at 255 bytes
_LARGE = 1 << 30  # bytes; of a larger table VLMEvalKit reads the copy whose pictures are files

# Tables that share a folder of pictures, by the name of the folder.
_FAMILIES = {
    "MMBench": (
        *("MMBench", "MMBench_CN", "MMBench_V11", "MMBench_CN_V11", "MMBench_DEV_EN", "MMBench_TEST_EN"),
        *("MMBench_DEV_CN", "MMBench_TEST_CN", "MMBench_DEV_KO"),
    ),
    "MMBench_V11": ("MMBench_DEV_EN_V11", "MMBench_TEST_EN_V11", "MMBench_DEV_CN_V11", "MMBench_TEST_CN_V11"),
    "COCO": ("COCO_VAL",),
}
# The same by a part of the name, in the order in which they are looked for.
_FAMILIES_BY_PART = {"MM_NIAH": "MMNIAH", "CRPE": "CRPE", "OCRVQA": "OCRVQA", "QSpatial": "QSpatial"}


@dataclass(frozen=True)
class KnownTable:
    """A table of VLMEvalKit's, by name.

    Attributes:
        name: Its name.
        url: Its published URL; of one in parts, the URLs of these in order, with spaces between. Empty if there is
            none: VLMEvalKit makes the table by itself, or expects it in its place.
        md5: The digest of the published file; empty if it is not published.
        kind: VLMEvalKit's ``TYPE``: ``"MCQ"``, ``"VQA"``, ``"Y/N"``, ``"Caption"``, …; empty if there is none.
        modality: ``"IMAGE"``, ``"VIDEO"`` or ``"TEXT"``.
        prompt_class: VLMEvalKit's class that makes the prompts.
        score_class: VLMEvalKit's class that scores the answers.
    """

    name: str
    url: str
    md5: str
    kind: str
    modality: str
    prompt_class: str
    score_class: str


@cache
def known_tables() -> Mapping[str, KnownTable]:
    """Returns VLMEvalKit's tables by name."""
    text = (resources.files("testbed.data.tables") / "known_tables.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return MappingProxyType({row["name"]: KnownTable(**row) for row in rows})


def find_table(name: str, shared: str = "") -> Path:
    """Returns the file of a table: ``NAME.tsv`` in the root (`testbed.paths.lmu_data_root`).

    Where it is missing, the file of the set that has the same table (``shared``) takes its place: VLMEvalKit keeps the
    table of ``WeMath_COT`` as ``WeMath_COT.tsv``, which is ``WeMath.tsv`` under another name.

    As in VLMEvalKit, ``NAME_local.tsv``, whose pictures are files, takes its place if it is there and ``NAME.tsv`` has
    more than 1 GiB, or is missing. A file with the last part of the URL as its name is also found.

    Raises:
        DataError: If there is none; the message names the places searched, and where it is published.
    """
    if not name or name in (".", "..") or any(character in name for character in "/\\\0"):
        raise DataError(f"the name of a table is that of a file in the folder of tables without .tsv; got {name!r}")
    root, known = lmu_data_root(), known_tables().get(name)
    names = [f"{name}.tsv", *([f"{shared}.tsv"] if shared else [])]
    if known is not None and known.url.endswith(".tsv"):
        names.append(known.url.rpartition("/")[2])
    table = next((path for name in names if (path := root / name).is_file()), None)
    local = root / f"{name}_local.tsv"
    if local.is_file() and (table is None or table.stat().st_size > _LARGE):
        return local
    if table is not None:
        return table
    looked = ", ".join(dict.fromkeys([*names, local.name]))
    place = f"{root}{'' if root.is_dir() else ', which does not exist'}"
    raise DataError(
        f"the table {name} is not there: looked for {looked} in {place}"
        f" (--lmu-data DIR, or ${ENV_LMU_DATA}); {_origin(name, known)}"
    )


def has_table(name: str) -> bool:
    """Checks whether the root has a table of a name."""
    if not name or len(name) > _LONGEST_NAME or any(character in name for character in "/\\\0:@+"):
        return False
    root = lmu_data_root()
    return (root / f"{name}.tsv").is_file() or (root / f"{name}_local.tsv").is_file()


def header_of(path: Path) -> list[str]:
    """The names of the columns of a table; raises DataError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEADER)
    except OSError as error:
        raise DataError(f"the table {path} cannot be read: {error.strerror}") from error
    return [name.strip('"') for name in line.decode("utf-8-sig", "replace").rstrip("\r\n").split("\t")]


def picture_folder(name: str) -> Path:
    """The folder with the files of a table's pictures, which some tables share, as in VLMEvalKit."""
    family = next((family for part, family in _FAMILIES_BY_PART.items() if part in name), None)
    if family is None:
        family = next((family for family, names in _FAMILIES.items() if name in names), name)
    return lmu_data_root() / "images" / family


class QuestionTable:
    """A table as a data set.

    Args:
        name: Its name, to look for in the folder of tables (`find_table`), or the path of a file that ends with
            ``.tsv``, whose pictures are below ``images/NAME`` beside it.
        tsv_reading: See `TableSource`.
        required: See `TableSource`.
        shared: Another name of the same table; see `find_table`.
        answers: See `TableSource`.
        sized: See `TableSource`.
        texts: See `TableSource`.
        files: See `TableSource`.  [default: ``image_path``]
        places: Where the files of pictures are, below the root: folders, or zip archives of the same names.
            [default: see `picture_folder`]
        archive: Where these files are published, if they are not in the table.
        indexed: See `TableSource`.
        masks: See `TableSource`.
    """

    def __init__(
        self,
        name: str,
        tsv_reading: str = "text",
        required: Sequence[str] = ("question",),
        shared: str = "",
        answers: str = "",
        sized: bool = False,
        texts: bool = False,
        files: Sequence[str] = (),
        places: Sequence[str] = (),
        archive: str = "",
        indexed: bool = False,
        masks: str = "",
    ) -> None:
        self.name = name
        self.tsv_reading = tsv_reading
        self.required = tuple(required)
        self.shared = shared
        self.options = {"answers": answers, "sized": sized, "texts": texts, "files": tuple(files)}
        self.options |= {"indexed": indexed, "masks": masks}
        self.places, self.archive = tuple(places), archive

    def spec(self) -> dict[str, Any]:
        """Returns what identifies the table and the way it is read."""
        more = {name: value for name, value in self.options.items() if value}
        return {"table": self.shared or self.name, "tsv_reading": self.tsv_reading, **more}

    def open(self) -> TableSource:
        """The rows; raises DataError if the table is missing or not in the format."""
        from testbed.data.tables.source import TableSource

        options: dict[str, Any] = {"tsv_reading": self.tsv_reading, "required": self.required, **self.options}
        if self.name.endswith(".tsv"):
            return TableSource(expanded(self.name), **options)
        path, known = find_table(self.name, self.shared), known_tables().get(self.name)
        local = path.name == f"{self.name}_local.tsv"
        md5 = known.md5 if known is not None and not local else ""
        return TableSource(path, self.shared or self.name, self._pictures(), md5=md5, **options)

    def _pictures(self) -> Path:
        """The folder or the zip archive with the files of pictures.

        Raises:
            DataError: If there is none, and the set's pictures are files.
        """
        folders = [lmu_data_root() / place for place in self.places]
        folders += [picture_folder(name) for name in (self.name, self.shared) if name]
        found = next((place for folder in folders if (place := _folder_or_zip(folder)) is not None), None)
        if found is None and self.archive:
            raise DataError(
                f"the pictures of {self.name} are missing: looked for"
                f" {', '.join(f'{folder}[.zip]' for folder in folders)}; they come from {self.archive}: unpack them"
                " there, or put a zip archive there under this name"
            )
        return found or folders[-1]


def _folder_or_zip(folder: Path) -> Path | None:
    archive = folder.with_name(f"{folder.name}.zip")
    return folder if folder.is_dir() else archive if archive.is_file() else None


def _origin(name: str, known: KnownTable | None) -> str:
    """Returns a hint about a table's origin."""
    if known is None:
        near = difflib.get_close_matches(name, known_tables(), 3, 0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"VLMEvalKit has no table of this name{hint}"
    if not known.url:
        return "VLMEvalKit has no URL for it"
    parts = " + ".join(known.url.split())
    return f"it is published at {parts}{f' (md5 {known.md5})' if known.md5 else ''}; nothing is downloaded"

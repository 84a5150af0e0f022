"""VLMEvalKit's base class of benchmarks with pictures."""

from __future__ import annotations

import os.path as osp
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from testbed.data.picture_files import write_pictures
from testbed.data.rows import Picture
from testbed.errors import DataError
from testbed.metrics.scorers.reported import main_of
from testbed.standins.vlmevalkit.smp.file import LMUDataRoot, load, md5
from testbed.standins.vlmevalkit.smp.log import get_logger
from testbed.standins.vlmevalkit.smp.misc import toliststr
from testbed.standins.vlmevalkit.smp.vlm import decoded

log = get_logger(__name__)

LONGEST_REFERENCE = 64  # characters of an image cell that names another row


def img_root_map(dataset: str) -> str:
    """The name of the folder with a set's pictures."""
    return dataset


class ImageBaseDataset:
    """A benchmark: a table of questions with pictures.

    Attributes:
        data: The table; ``image`` is base64 or a list of that, ``index`` an integer where all are.
        img_root: The folder of the files that ``image_path`` names.
        meta_only: True if pictures are files, not cells.
    """

    TYPE = ""
    MODALITY = "IMAGE"
    DATASET_URL: ClassVar[dict[str, str]] = {}
    DATASET_MD5: ClassVar[dict[str, str]] = {}

    def __init__(self, dataset: str = "MMBench", skip_noimg: bool = True) -> None:
        self.dataset_name = dataset
        self.img_root = osp.join(LMUDataRoot(), "images", img_root_map(dataset))
        self.skip_noimg = skip_noimg
        data = self.load_data(dataset)
        self.meta_only = "image" not in data
        data["index"] = [str(sample_id) for sample_id in data["index"]]
        if not self.meta_only:
            data = _with_pictures(data, skip_noimg, dataset)
        if "image_path" in data:
            data["image_path"] = [
                cell if pd.isna(cell) else _one_or_all(toliststr(cell)) for cell in data["image_path"]
            ]
        if all(sample_id.isdecimal() and str(int(sample_id)) == sample_id for sample_id in data["index"]):
            data["index"] = [int(sample_id) for sample_id in data["index"]]
        self.data = data
        self.post_build(dataset)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, idx: int) -> dict[Any, Any]:
        return dict(self.data.iloc[idx])

    @classmethod
    def supported_datasets(cls) -> list[str]:
        """Returns the names of the sets that the class supports."""
        return list(cls.DATASET_URL)

    def load_data(self, dataset: str) -> pd.DataFrame:
        """The table ``NAME.tsv`` in VLMEvalKit's folder."""
        return self.prepare_tsv(self.DATASET_URL.get(dataset) or f"{dataset}.tsv", self.DATASET_MD5.get(dataset))

    def prepare_tsv(self, url: str, file_md5: str | None = None) -> pd.DataFrame:
        """The table of the set, or of the old name in the address. It is not downloaded.

        Raises:
            DataError: If it is missing; the message names the file and its place.
        """
        root = Path(LMUDataRoot())
        names = [f"{self.dataset_name}.tsv", url.rpartition("/")[2]]
        path = next((root / name for name in names if (root / name).is_file()), None)
        if path is None:
            where = f"; download {url}" if "://" in url else ""
            raise DataError(f"{self.dataset_name}: the table {root / names[0]} is missing{where}, or set LMUData")
        if file_md5 is not None and md5(str(path)) != file_md5:
            log.warning("%s is not the published table: its MD5 differs from %s; it is used as it is", path, file_md5)
        self.data_path = str(path)
        table: pd.DataFrame = load(path)
        return table

    def post_build(self, dataset: str) -> None:
        """Does nothing; called when the table is there."""

    def dump_image(self, line: Any) -> list[str]:
        """Writes files with a row's pictures, in `img_root`; the bytes of the table."""
        if "image" not in line:
            return self.picture_paths(line)
        cells = line["image"] if isinstance(line["image"], list) else [line["image"]]
        folder = Path(self.img_root)
        folder.mkdir(parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(dir=folder))
        return write_pictures([Picture(decoded(cell), f"{line['index']}") for cell in cells if cell], own)

    def picture_paths(self, line: Any) -> list[str]:
        """The files that ``image_path`` names: absolute, or in `img_root`."""
        if "image_path" not in line:
            return []
        return [osp.join(self.img_root, path) for path in toliststr(line["image_path"])]

    def build_prompt(self, line: Any) -> list[dict[str, str]]:
        """The pictures, then the question; of a row or its position."""
        return [*self._picture_items(line), {"type": "text", "value": self._row(line)["question"]}]

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> Any:
        """The metrics of a table of answers, as a table or a dictionary."""
        raise NotImplementedError(f"{type(self).__name__} has no evaluate")

    @classmethod
    def report_primary_metric(cls, metrics: Mapping[str, Any] | None) -> dict[str, Any]:
        """The metric that stands for all: the overall one, else the first."""
        return main_of(metrics or {})

    def _row(self, line: Any) -> Any:
        return self.data.iloc[line] if isinstance(line, int) else line

    def _picture_items(self, line: Any) -> list[dict[str, str]]:
        return [{"type": "image", "value": path} for path in self.dump_image(self._row(line))]


def _with_pictures(data: pd.DataFrame, skip_noimg: bool, name: str) -> pd.DataFrame:
    """The table with the pictures of other rows in place of references to them.

    Raises:
        DataError: If a reference leads nowhere.
    """
    if skip_noimg:
        data = data[~pd.isna(data["image"])].copy()
    cells = {
        index: "" if pd.isna(cell) else str(cell) for index, cell in zip(data["index"], data["image"], strict=True)
    }
    pictures = []
    for index, cell in cells.items():
        if 0 < len(cell) <= LONGEST_REFERENCE:
            if len(cells.get(cell, "")) <= LONGEST_REFERENCE:
                raise DataError(f"{name}: the image of row {index} is {cell!r}, and no row of that index has a picture")
            cell = cells[cell]
        pictures.append(_one_or_all(toliststr(cell)))
    return data.assign(image=pd.Series(pictures, index=data.index, dtype=object))


def _one_or_all(parts: list[str]) -> Any:
    return parts[0] if len(parts) == 1 else parts

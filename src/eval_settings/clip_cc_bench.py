"""CLIP-CC-Bench: captions of videos, compared with reference summaries; and any file of reference captions.

``clip-cc-bench`` reads ``clip-cc-bench/ground_truth/clip_cc_dataset.json`` below the data root, or the file that
``$TESTBED_CLIP_CC_GROUND_TRUTH`` names; ``captions:/path/to/file.json`` reads any file of that form. The videos are
not seen: models are recorded predictions (``replay:…``), or answer from a sample's id. docs/clip-cc-bench.md has more.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.data.formats.text_records import SUFFIXES
from testbed.data.source import Source
from testbed.errors import DataError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.inputs import ENV_CLIP_CC_GROUND_TRUTH, ENV_DATA, active
from testbed.paths import data_root, expanded
from testbed.registry import registry

NAME = "clip-cc-bench"
FILE = f"{NAME}/ground_truth/clip_cc_dataset.json"
PREFIX = "captions:"


class ReferenceCaptions:
    """A file of reference captions.

    Args:
        name: The data set's name, for messages.
        path: The file; None for CLIP-CC-Bench's.
    """

    def __init__(self, name: str, path: Path | None = None) -> None:
        self.name = name
        self.path = path

    def spec(self) -> dict[str, Any]:
        """Returns the file."""
        return {"references": str(self.get_root().absolute())}

    def get_root(self) -> Path:
        """Returns the file; raises DataError if its place is not set."""
        if self.path is not None:
            return self.path
        given = active().clip_cc_ground_truth
        if given:
            return expanded(given)
        root = data_root()
        if root is None:
            raise DataError(
                f"data set {self.name!r}: no data root is set; give --data-root DIR or set {ENV_DATA}, where DIR/{FILE}"
                f" holds the references, or name that file in {ENV_CLIP_CC_GROUND_TRUTH}"
            )
        return root / FILE

    def open(self) -> Source:
        """The samples; raises DataError if the file is missing or of another form."""
        from testbed.data.sets.clip_cc import reference_captions

        path = self.get_root()
        if not path.is_file():
            way = f"; it comes from CLIP-CC-Bench, or name it in {ENV_CLIP_CC_GROUND_TRUTH}" if not self.path else ""
            fault = "is a folder" if path.is_dir() else "does not exist"
            raise DataError(f"data set {self.name!r}: the file of references {path.absolute()} {fault}{way}")
        return reference_captions(path, self.name)


class CaptionFiles:
    """Settings ``captions:/path/to/file.json``: captions compared with the references in a file."""

    name = "caption files"

    def names(self) -> Iterable[str]:
        """Lists none: there are as many as there are files."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The name with the absolute path."""
        path = name.removeprefix(PREFIX)
        if path == name or not path.endswith(SUFFIXES):
            return None
        return PREFIX + str(expanded(path).absolute())

    def build(self, name: str) -> EvalSetting:
        """The setting."""
        path = Path(name.removeprefix(PREFIX))
        return _setting(name, ReferenceCaptions(name, path), f"captions compared with the references in {path}")


def _setting(name: str, dataset: ReferenceCaptions, description: str) -> EvalSetting:
    return EvalSetting(name=name, dataset=dataset, size=None, task="captioning", description=description)


registry.add_eval_setting(
    _setting(NAME, ReferenceCaptions(NAME), "CLIP-CC-Bench: captions of 200 videos, compared with reference summaries")
)
registry.add_eval_setting_family(CaptionFiles())

"""Images and captions in your own file as eval settings; docs/clip-score.md describes the file.

``pairs:/path/to/pairs.csv`` scores a dual encoder by CLIPScore on its images and captions,
``pairs:/path/to/pairs.csv.prefix`` with "A photo depicts" in front of each caption, and
``pairs:/path/to/pairs.csv.captioning`` has its images described by captioners, with its captions as references.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.data.formats.caption_pairs import SUFFIXES
from testbed.data.source import ImageSource
from testbed.errors import DataError
from testbed.eval_settings.base.parts import PHOTO_DEPICTS
from testbed.eval_settings.benchmark_families.benchmark_names import CAPTIONING
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.paths import expanded
from testbed.registry import registry
from testbed.registry.references import CLIP_SCORE, PREFIX

FAMILY = "pairs:"
WORDS = {
    f".{CLIP_SCORE}.{PREFIX}": PREFIX,
    f".{CLIP_SCORE}": "",
    f".{PREFIX}": PREFIX,
    f".{CAPTIONING}": CAPTIONING,
}


class PairsFile:
    """A file of pairs."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path

    def spec(self) -> dict[str, Any]:
        """Returns the file."""
        return {"pairs": str(self.path)}

    def open(self) -> ImageSource:
        """The images with their captions.

        Raises:
            DataError: If the file or an image is missing, or the file is of another form.
        """
        from testbed.data.formats.caption_pairs import caption_pairs

        if not self.path.is_file():
            raise DataError(f"data set {self.name!r}: the file of pairs {self.path} does not exist")
        return caption_pairs(self.path, self.name)


class PairsFiles:
    """Every file of pairs."""

    name = "caption pairs"

    def names(self) -> Iterable[str]:
        """Lists none: there are as many as there are files."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The name with the absolute path, CLIPScore left out."""
        if not name.startswith(FAMILY):
            return None
        path, word = _parts(name)
        if not path.endswith(SUFFIXES):
            return None
        return f"{FAMILY}{expanded(path).absolute()}{'.' if word else ''}{word}"

    def build(self, name: str) -> EvalSetting:
        """The setting."""
        path, word = _parts(name)
        captioning = word == CAPTIONING
        return EvalSetting(
            name=name,
            dataset=PairsFile(FAMILY + path, Path(path)),
            size=None,
            task=CAPTIONING if captioning else CLIP_SCORE,
            image_set=FAMILY + path,
            keep_embeddings=True,
            task_options={"prefix": PHOTO_DEPICTS} if word == PREFIX else {},
            description=f"{'the images' if captioning else 'images and captions'} of {path}",
        )


def _parts(name: str) -> tuple[str, str]:
    """Splits the path from the words after it."""
    given = name.removeprefix(FAMILY)
    for ending, word in WORDS.items():
        if given.endswith(ending):
            return given.removesuffix(ending), word
    return given, ""


registry.add_eval_setting_family(PairsFiles())

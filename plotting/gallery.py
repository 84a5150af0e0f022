"""The hardest samples of a setting with small pictures of them, for the web page."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import click

from testbed.analyses.main_scores import main_score
from testbed.analyses.mistakes import HardSample, hardest
from testbed.analyses.side_by_side import evaluations_on
from testbed.data.source import with_images
from testbed.errors import DataError, SampleError, TestbedError

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.registry.catalog import Catalog

SAMPLES = 24
SIDE = 150  # pixels
QUALITY = 80


@dataclass(frozen=True)
class Hard:
    """A sample that most models get wrong.

    Attributes:
        sample: Which one, and how models fare on it.
        picture: A small JPEG; None where the data are not here.
    """

    sample: HardSample
    picture: bytes | None

    @property
    def described(self) -> dict[str, Any]:
        """As plain values."""
        target = self.sample.target_name if self.sample.target_name is not None else self.sample.target
        return {
            "id": self.sample.sample,
            "target": str(target),
            "wrong": self.sample.wrong,
            "models": self.sample.models,
        }


def hardest_samples(store: Store, catalog: Catalog, setting: str, limit: int = SAMPLES) -> list[Hard]:
    """The hardest samples of a setting.

    Args:
        store: Where the per-sample scores are.
        catalog: Knows the setting's data set, for the pictures.
        setting: Its name.
        limit: How many.

    Raises:
        StoreError: If no model has per-sample scores on it.
    """
    score = main_score(store, {setting: evaluations_on(store, setting).values()}, binary=True)
    samples = hardest(store, setting, [], score, limit)
    pictures = _pictures(catalog, setting, {each.sample for each in samples})
    return [Hard(each, pictures.get(each.sample)) for each in samples]


def _pictures(catalog: Catalog, setting: str, wanted: set[str]) -> dict[str, bytes]:
    """Small pictures of some samples; missing ones are skipped with a note."""
    if not catalog.contains_eval_setting(setting):
        click.echo(f"note: {setting} is not registered; its samples are shown without pictures", err=True)
        return {}
    try:
        source = with_images(catalog.get_eval_setting(setting).dataset.open())
    except TestbedError as error:
        click.echo(f"note: the samples of {setting} are shown without pictures: {error}", err=True)
        return {}
    pictures = {}
    for position, sample_id in enumerate(source.ids):
        if sample_id in wanted:
            try:
                pictures[sample_id] = _small(source.image(position))
            except (SampleError, DataError) as error:
                click.echo(f"note: {sample_id} is shown without a picture: {error}", err=True)
    return pictures


def _small(image: Any) -> bytes:
    copy = image.convert("RGB")
    copy.thumbnail((SIDE, SIDE))
    file = BytesIO()
    copy.save(file, "JPEG", quality=QUALITY)
    return file.getvalue()

"""The pictures of samples as small JPEGs: from the data set where it is here, else from the store's thumbnails.

A picture is requested by setting and position. Only the data set maps these to a file; no path comes from outside.
"""

from __future__ import annotations

from collections import OrderedDict
from io import BytesIO
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.calls import reason_of
from testbed.data.rows import RowSource
from testbed.data.source import ImageSource, with_images
from testbed.errors import LackingEmbeddingsError, TestbedError
from testbed.identity.describe import digest
from testbed.inputs import Inputs, active, using

if TYPE_CHECKING:
    from PIL import Image

    from testbed.db.store import Store
    from testbed.entities import SampleInfo
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.registry.catalog import Catalog
    from testbed.stored_results.evaluated import SettingSamples

SIDE, QUALITY = 384, 85  # of pictures; pixels of the longer side
SMALL_SIDE, SMALL_QUALITY = 160, 75  # of thumbnails
_SMALL_BYTES = 12_000  # a thumbnail that takes more is compressed further
_RESIZED, _CROPPED = 256, 224  # where no model's preprocessing is known
_AT_ONCE = 2  # pictures that are decoded
_CACHE = 64 << 20  # bytes
_SOURCES = 8  # data sets that are open
_SIDE_BY_SIDE = 4  # pictures of one row of a table

OWN, CLEAN = "", "clean"
NODE = digest(["thumbnail", SMALL_SIDE, 1])  # under which the store has them


class Pictures:
    """Pictures of the samples of a store.

    Args:
        store: With thumbnails, perhaps.
        catalog: Knows the settings' data sets.
        inputs: What data sets read, such as the data root; None takes what is active.
    """

    def __init__(self, store: Store, catalog: Catalog, inputs: Inputs | None = None) -> None:
        self.store = store
        self.catalog = catalog
        self.inputs = inputs or active()
        self._sources: OrderedDict[int, tuple[Any, ImageSource | str, dict[str, int]]] = OrderedDict()
        self._made: OrderedDict[tuple[str, int, str], bytes | str] = OrderedDict()
        self._bytes = 0
        self._opening, self._keeping, self._perturbing = Lock(), Lock(), Lock()
        self._decoding = BoundedSemaphore(_AT_ONCE)

    def problem(self, samples: SettingSamples) -> str | None:
        """Explains why the pictures of a setting are not read from its data set; None if they are."""
        found = self._source(samples.name)
        return found if isinstance(found, str) else None

    def picture(self, samples: SettingSamples, position: int, which: str = OWN) -> bytes | str:
        """A JPEG, or the reason why there is none; the latest are kept in memory.

        Args:
            position: Of the sample.
            which: `OWN`, or `CLEAN` for the picture before the setting's perturbation.
        """
        key = (samples.name, position, which)
        with self._keeping:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        with self._decoding:
            made = self._picture(samples, position, which)
        with self._keeping:
            if key not in self._made:
                self._made[key] = made
                self._bytes += len(made)
            while self._bytes > _CACHE:
                self._bytes -= len(self._made.popitem(last=False)[1])
        return made

    def _picture(self, samples: SettingSamples, position: int, which: str) -> bytes | str:
        infos = samples.store.datasets.samples(samples.dataset, [position])
        if position not in infos:
            return "there is no such sample"
        try:
            return small(self.image(samples, infos[position], which), SIDE, QUALITY)
        except TestbedError as error:
            reason = str(error)
        except Exception as error:  # transforms and perturbations are the user's own code
            reason = reason_of(error)
        stored = self.thumbnail(samples, infos[position], which)
        return reason if stored is None else stored

    def image(self, samples: SettingSamples, info: SampleInfo, which: str = OWN) -> Image.Image:
        """A decoded picture from the data set, perturbed as the setting says; raises TestbedError if there is none."""
        source = self._source(samples.name)
        if isinstance(source, str):
            raise TestbedError(source)
        place = self._place(samples.name, info.id)
        with using(self.inputs):
            image = _read(source, place)
            setting = self.catalog.get_eval_setting(samples.name)
            return self._perturbed(samples, setting, image, info.id, which) if setting.perturbation else image

    def _perturbed(
        self, samples: SettingSamples, setting: EvalSetting, image: Image.Image, sample: str, which: str
    ) -> Image.Image:
        from testbed.workers.kernels.perturb import perturbed

        if setting.transform is not None:
            image = setting.transform(image)
        if not _of_texts(setting):
            image = _as_image(self._transform(samples)(image))
        if which == CLEAN:
            return image
        if setting.perturbation.attacks or setting.perturbation.needs_targets:
            raise TestbedError("the perturbation is made for each model, and its pictures are not stored")
        with self._perturbing:  # it seeds the global generators
            return perturbed(image, setting, sample, "cpu", _seed(samples))

    def _transform(self, samples: SettingSamples) -> Any:
        """The preprocessing of the first model that is known here."""
        from testbed.models.model_base import StandardTransform

        for shown in samples.shown:
            transform = getattr(self.catalog.find_model(shown.evaluation.model), "transform", None)
            if callable(transform):
                return transform
        return StandardTransform(_RESIZED, _CROPPED)

    # The data set -------------------------------------------------------------------------------------------------

    def _opened(self, name: str) -> tuple[Any, ImageSource | str, dict[str, int]]:
        setting = self.catalog.find_eval_setting(name)
        if setting is None:
            return None, f"{name} is not registered here, so that its data set is not known", {}
        key = id(setting.dataset)
        with self._opening, using(self.inputs):
            if key not in self._sources:
                source: ImageSource | str
                try:
                    source = with_images(setting.dataset.open())
                    places = {sample: index for index, sample in enumerate(source.ids)}
                except TestbedError as error:
                    source, places = str(error), {}
                self._sources[key] = (setting.dataset, source, places)
                if len(self._sources) > _SOURCES:
                    self._sources.popitem(last=False)
            self._sources.move_to_end(key)
            return self._sources[key]

    def _source(self, name: str) -> ImageSource | str:
        return self._opened(name)[1]

    def _place(self, name: str, sample: str) -> int:
        places = self._opened(name)[2]
        if sample not in places:
            raise TestbedError(f"the data set has no sample {sample}")
        return places[sample]

    # Thumbnails ---------------------------------------------------------------------------------------------------

    def thumbnail(self, samples: SettingSamples, info: SampleInfo, which: str = OWN) -> bytes | None:
        """The stored thumbnail of a sample; None if there is none."""
        setting = self.catalog.find_eval_setting(samples.name)
        changed = which != CLEAN and (setting is None or bool(setting.perturbation))
        keys = [key_of(samples, info, True)] if changed else []
        if not changed or setting is None:  # of a setting that is not known here, the picture may be as it is
            keys.append(key_of(samples, info, False))
        for key in keys:
            try:
                return bytes(self.store.items.read(NODE, [key])[0].tobytes())
            except LackingEmbeddingsError:
                continue
        return None


def warm() -> None:
    """Imports what pictures need, which takes seconds."""
    import torchvision.transforms  # noqa: F401

    import testbed.workers.kernels.perturb  # noqa: F401


def key_of(samples: SettingSamples, info: SampleInfo, changed: bool) -> str:
    """Returns the key of a thumbnail: the content of the picture, and its perturbation."""
    return f"{samples.name}\0{_seed(samples)}\0{info.id}\0{info.digest}" if changed else info.digest


def small(image: Image.Image, side: int, quality: int, most: int | None = None) -> bytes:
    """A JPEG whose longer side has at most so many pixels, and which has at most so many bytes, or little more."""
    copy = image.convert("RGB")
    copy.thumbnail((side, side))
    while True:
        file = BytesIO()
        copy.save(file, "JPEG", quality=quality)
        if most is None or file.tell() <= most or quality <= 25:
            return file.getvalue()
        quality -= 15


def thumbnail_of(image: Image.Image) -> bytes:
    """A thumbnail, as the store has them."""
    return small(image, SMALL_SIDE, SMALL_QUALITY, _SMALL_BYTES)


def _read(source: ImageSource, place: int) -> Image.Image:
    """The picture of a sample; the first few of a row of a table side by side."""
    from PIL import Image

    pictures = list(source.row(place).pictures[:_SIDE_BY_SIDE]) if isinstance(source, RowSource) else []
    if len(pictures) < 2:
        return source.image(place)
    images = [picture.image() for picture in pictures]
    height = max(image.height for image in images)
    whole = Image.new("RGB", (sum(image.width for image in images) + 8 * (len(images) - 1), height), "white")
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + 8
    return whole


def _as_image(pixels: Any) -> Image.Image:
    """A tensor [3, H, W] in [0, 1] as a picture."""
    from PIL import Image

    levels = np.asarray(pixels.clamp(0, 1).mul(255).round().permute(1, 2, 0).to("cpu"), dtype=np.uint8)
    return Image.fromarray(levels)


def _of_texts(setting: EvalSetting) -> bool:
    """Returns whether models of this setting take pictures as they are, and answer in words."""
    from testbed.tasks.parts.generation import TextTask
    from testbed.tasks.task_base import get_task

    return isinstance(get_task(setting.task), TextTask) or setting.scoring is not None


def _seed(samples: SettingSamples) -> int:
    """The ``--seed`` of the run that perturbed the pictures."""
    for evaluation in samples.shown:
        noise = (evaluation.identity.get("forward") or {}).get("noise")
        if isinstance(noise, list) and len(noise) == 2 and isinstance(noise[1], int):
            return noise[1]
    return 0

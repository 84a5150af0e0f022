"""timm's image classifiers: ``timm/<architecture>.<tag>``, each with the preprocessing of its own configuration.

``timm/<architecture>`` means timm's default tag. ``timm/<architecture>.<tag>@288`` is the model at 288 pixels, as in
timm's tables of results: with the crop of its test configuration where that is the size of it. Architectures without
published weights are listed too; they run with ``--random-weights``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.data.language.class_vocabulary import subset_of
from testbed.errors import WeightsError
from testbed.models.base.class_order import listed
from testbed.models.base.transform import LazyTransform, Transform
from testbed.models.loading.hub import hash_in_name, hub_file, torch_hub_path, url_file
from testbed.models.model_base import ImageEncoder, Model, ModelDefinition, StandardNormalization
from testbed.registry import registry
from testbed.registry.library_names import library_names
from testbed.registry.remembered_facts import remembered

PREFIX = "timm/"
AT = "@"  # before the side of the images, in pixels
LARGEST = 4096
EVAL_BATCH_SIZE = 128


class TimmTransform(LazyTransform):
    """The evaluation transform that timm makes from a model's configuration, without its normalization.

    Args:
        input_size: (3, height, width).
        interpolation: timm's name of it.
        crop_pct: Share of the resized image that is cropped.
        crop_mode: ``"center"``, ``"squash"`` or ``"border"``.
        fill: The colour of the border, in [0, 1]; timm takes the mean of the normalization.
    """

    def __init__(
        self,
        input_size: Sequence[int],
        interpolation: str,
        crop_pct: float,
        crop_mode: str,
        fill: Sequence[float] | None = None,
    ) -> None:
        self.input_size = list(input_size)
        self.interpolation = interpolation
        self.crop_pct = crop_pct
        self.crop_mode = crop_mode
        self.fill = list(fill) if fill is not None else None

    def make(self) -> Transform:
        """Builds timm's resizing and cropping, then a float tensor in [0, 1]."""
        from timm.data.transforms_factory import create_transform
        from torchvision import transforms

        fill: dict[str, Any] = {"mean": tuple(self.fill)} if self.fill is not None else {}
        whole = create_transform(
            input_size=(self.input_size[0], self.input_size[1], self.input_size[2]),
            interpolation=self.interpolation,
            crop_pct=self.crop_pct,
            crop_mode=self.crop_mode,
            is_training=False,
            **fill,
        )
        kept = [step for step in whole.transforms if not isinstance(step, transforms.Normalize)]
        made: Transform = transforms.Compose(kept)
        return made


@dataclass(frozen=True)
class TimmWeights:
    """The checkpoint of a name, where the Hugging Face hub or torch.hub keeps it."""

    name: str

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The checkpoint, downloaded if need be."""
        config = pretrained_config(self.name)
        if config.file:
            return [Path(config.file)]
        if config.hf_hub_id:
            repository, _, revision = config.hf_hub_id.partition("@")
            named = [config.hf_hub_filename] if config.hf_hub_filename else ["model.safetensors", "pytorch_model.bin"]
            path = hub_file(self.name, repository, named, revision or None, fetch)
        elif config.url:
            path = url_file(self.name, config.url, torch_hub_path(config.url), fetch, hash_in_name(config.url))
        else:
            raise WeightsError(f"{self.name}: timm publishes no weights for it; --random-weights runs it untrained")
        return [path] if path is not None else None


def pretrained_config(name: str) -> Any:
    """Returns timm's configuration of a canonical name."""
    import timm

    return timm.get_pretrained_cfg(name.removeprefix(PREFIX), allow_unregistered=False)


def _facts(plain: str, size: str) -> dict[str, Any]:
    """Returns the fields that a definition takes from timm's configuration, at a size in pixels or its own."""
    from timm.data.config import resolve_data_config

    config = pretrained_config(plain)
    data = resolve_data_config(
        {"input_size": (3, int(size), int(size))} if size else {},
        pretrained_cfg=config.to_dict(),
        use_test_size=bool(size) and config.test_input_size == (3, int(size), int(size)),
    )
    used = ("input_size", "interpolation", "crop_pct", "crop_mode", "mean", "std")
    return {
        "data": {name: data[name] for name in used},
        "num_classes": config.num_classes,
        "label_names": list(config.label_names or ()),
        "fixed_input_size": bool(config.fixed_input_size),
    }


class TimmFamily:
    """Every model of the installed timm."""

    name = "timm"

    def names(self) -> Iterable[str]:
        """Lists one name for each published checkpoint, and each architecture that has none."""
        for architecture, tags in library_names("timm").items():
            if tags:
                yield from (f"{PREFIX}{architecture}.{tag}" if tag else f"{PREFIX}{architecture}" for tag in tags)
            else:
                yield f"{PREFIX}{architecture}"

    def canonical(self, name: str) -> str | None:
        """The name with its tag."""
        if not name.startswith(PREFIX):
            return None
        plain, at, size = name.partition(AT)
        if at:
            found = self.canonical(plain)
            return f"{found}{AT}{int(size)}" if found and size.isdecimal() and 0 < int(size) <= LARGEST else None
        architecture, dot, tag = name.removeprefix(PREFIX).partition(".")
        tags = library_names("timm").get(architecture)
        if tags is None or (dot and tag not in tags):
            return None
        chosen = tag or (tags[0] if tags else "")
        return f"{PREFIX}{architecture}.{chosen}" if chosen else f"{PREFIX}{architecture}"

    def explain(self, name: str) -> str | None:
        """The prefix that a name of timm's needs here."""
        plain = name.partition(",")[0].partition(AT)[0]
        if "/" in plain or plain.partition(".")[0] not in library_names("timm"):
            return None
        return f"this is a name of timm's; write {PREFIX}{name}"

    def build(self, name: str) -> ModelDefinition:
        """The definition, with the preprocessing of the name's configuration; without a head it embeds images."""
        plain, _, size = name.partition(AT)
        bare = plain.removeprefix(PREFIX)
        facts = remembered("timm", [plain, size], ["timm"], [__file__], lambda: _facts(plain, size))
        classes = facts["num_classes"]
        data: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in facts["data"].items()
        }
        # A network of one size is built for another one; its position embeddings are resampled when weights are loaded.
        sized: dict[str, Any] = {"img_size": int(size)} if size and facts["fixed_input_size"] else {}

        def untrained() -> Any:
            import timm

            return timm.create_model(bare, pretrained=False, num_classes=classes, **sized)

        def trained() -> Any:
            import timm

            return timm.create_model(bare, pretrained=True, **sized)

        shared: dict[str, Any] = {
            "name": name,
            "transform": TimmTransform(
                data["input_size"],
                data["interpolation"],
                data["crop_pct"],
                data["crop_mode"],
                fill=data["mean"] if data["crop_mode"] == "border" else None,
            ),
            "normalization": StandardNormalization(data["mean"], data["std"]),
            "random_loader": untrained,
            "eval_batch_size": EVAL_BATCH_SIZE,
            "arch": bare.partition(".")[0],
            "architecture": {"library": "timm", "model": bare, **sized},
            "weights": TimmWeights(plain),
        }
        if classes == 0:
            return ImageEncoder(encoder_loader=trained, **shared)
        model = Model(classifier_loader=trained, num_classes=classes, **shared)
        if facts["label_names"]:
            model.class_order = listed(facts["label_names"], f"timm's label_names of {plain}", classes)
        elif (found := subset_of(classes)) is not None:
            model.class_set = (found, "timm's configuration")
        return model


registry.add_model_family(TimmFamily())

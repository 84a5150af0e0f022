"""Vision-language models of transformers that answer messages: LLaVA, Qwen-VL, InternVL, SmolVLM, Gemma 3 and others.

``vlm/owner/name`` is a repository of the Hugging Face hub, ``vlm//path/to/folder`` (or ``vlm/./folder``) a folder as
``save_pretrained`` writes it. Weights are read from safetensors alone, and code that a repository brings is never run.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

from testbed.errors import DefinitionError, MissingExtraError, WeightsError
from testbed.models.base.definition import LoadOptions
from testbed.models.base.generator import Generator
from testbed.models.base.weights import Weights, loading
from testbed.models.loading.hub_folder import HubFolder
from testbed.models.transformers_clip import VOLATILE, HubFamily
from testbed.registry import registry

PREFIX = "vlm/"
EXTRA = "vlm"
EVAL_BATCH_SIZE = 4
REVISION = 1  # of how messages become prompts and tokens become texts; raised when the same message gets another answer
OLDEST = (4, 52)  # transformers whose processors take conversations of every model alike
# What determines answers besides weights and the tokenizer's files.
CONFIGURATIONS = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "chat_template.json",
    "chat_template.jinja",
)


class ImageTextModel(Generator):
    """A vision-language model in a folder.

    Args:
        name: Unique in the registry.
        source: The absolute path of a folder, or ``owner/name`` on the Hugging Face hub.
        min_pixels: Smaller pictures are enlarged to this number of pixels, where the model's processor has such a
            limit.
        max_pixels: Larger pictures are made smaller.
        chat_template: A Jinja template in place of the model's own.
        eval_batch_size: Messages per batch.
        **options: See `ModelDefinition`.

    Raises:
        DefinitionError: If the limits are not positive integers.
    """

    def __init__(
        self,
        name: str,
        source: str,
        *,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        chat_template: str | None = None,
        eval_batch_size: int = EVAL_BATCH_SIZE,
        **options: Any,
    ) -> None:
        given = {"min_pixels": min_pixels, "max_pixels": max_pixels}
        self.pixels = {key: value for key, value in given.items() if value is not None}
        for key, value in self.pixels.items():
            if type(value) is not int or value < 1:
                raise DefinitionError(f"model {name!r}: {key} is a positive number of pixels; got {value!r}")
        self.folder = HubFolder(name, source)
        self.chat_template = chat_template
        super().__init__(
            name, lambda: self._loaded(LoadOptions()), eval_batch_size, **{"weights": self.folder, **options}
        )

    def spec(self) -> dict[str, Any]:
        """Returns what determines the answers besides the weights: files, options, and transformers' major version.

        The next major version reads some pictures with other image processors, and so do its tokenizers with texts.
        """
        major = require_transformers(self.name)[0]
        own = {"pixels": self.pixels, "chat_template": self.chat_template}
        return {
            "arch": self.arch,
            "generator": {"library": "transformers", "major": major, "files": self._described(), "revision": REVISION}
            | {key: value for key, value in own.items() if value},
        }

    def weights(self, random_seed: int | None = None, fetch: bool = True) -> Weights | None:
        """The weights, identified by content; see `ModelDefinition.weights`.

        Raises:
            MissingExtraError: If transformers is not installed; raised before large downloads.
        """
        require_transformers(self.name)
        return super().weights(random_seed, fetch)

    def random_spec(self) -> dict[str, Any]:
        """Returns an empty description: the configuration is part of `spec`."""
        return {}

    def make_random_network(self, seed: int) -> Any:
        """The model with random weights, the same for the same seed."""
        return self._loaded(LoadOptions(random_seed=seed))

    def _network(self, options: LoadOptions) -> Any:
        with loading(self.name):
            return self._loaded(options)

    def _loaded(self, options: LoadOptions) -> Any:
        require_transformers(self.name)
        import torch

        from testbed.devices import seeded
        from testbed.models.networks import vlm

        random = options.random_seed is not None
        self._described()
        folder = self.folder.folder(weights=not random)
        assert folder is not None
        processor = vlm.processor_of(self.name, folder, self.chat_template, self.pixels)
        dtype = getattr(torch, options.weights_dtype)
        if options.random_seed is None:
            self.folder.files(fetch=True)
            return vlm.load(self.name, folder, processor, dtype)
        with seeded(options.random_seed):
            return vlm.untrained(self.name, folder, processor, dtype)

    def _described(self) -> dict[str, Any]:
        """The content of the configuration files, by name.

        Raises:
            WeightsError: If they do not describe a model of transformers.
        """
        from transformers import CONFIG_MAPPING

        found = described(self.folder)
        kind = found["config.json"]["model_type"]
        if kind not in CONFIG_MAPPING:
            raise WeightsError(
                f"{self.name}: transformers {importlib.metadata.version('transformers')} does not know the model type"
                f" {kind!r}; code that a repository brings is not run"
            )
        return found


def described(hub: HubFolder) -> dict[str, Any]:
    """The content of a folder's configuration files, by name.

    Raises:
        WeightsError: If they cannot be read, or do not describe a model.
    """
    folder = hub.folder(weights=False)
    assert folder is not None
    paths = [path for name in CONFIGURATIONS if (path := folder / name).is_file()]
    found = {path.name: _content(hub.name, path) for path in paths}
    config = found.get("config.json")
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise WeightsError(
            f"{hub.name}: {folder / 'config.json'} should be transformers' configuration of a vision-language"
            " model, a JSON object with 'model_type'"
        )
    return found


def _content(name: str, path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else text
    except (OSError, ValueError) as error:
        raise WeightsError(f"{name}: {path} cannot be read: {error}") from error
    return (
        {key: value for key, value in content.items() if key not in VOLATILE} if isinstance(content, dict) else content
    )


def require_transformers(name: str) -> tuple[int, int]:
    """The major and minor version of transformers.

    Raises:
        MissingExtraError: If it is not installed.
        DefinitionError: If it is too old.
    """
    try:
        found = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError("transformers", EXTRA, name) from None
    major, minor = (int(part) for part in found.split(".")[:2])
    if (major, minor) < OLDEST:
        raise DefinitionError(
            f"{name} needs transformers {'.'.join(map(str, OLDEST))} or later, found {found}:"
            f" pip install -e '.[{EXTRA}]'"
        )
    return major, minor


class VlmFamily(HubFamily):
    """Models of transformers' AutoModelForImageTextToText."""

    name = "vlm"

    def build(self, name: str) -> ImageTextModel:
        """The definition; its files are read when they are needed."""
        require_transformers(name)
        return ImageTextModel(name, name.removeprefix(PREFIX))


registry.add_model_family(VlmFamily())

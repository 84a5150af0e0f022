"""Folders with a model's files, as written by ``save_pretrained``: local folders, or the Hugging Face cache."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import MissingExtraError, WeightsError
from testbed.inputs import ENV_TRUST_CODE, active
from testbed.models.base.weights import cannot_fetch, plain, require_host
from testbed.models.transformers_clip import REPOSITORY, TOKENIZER_FILES, VOLATILE, WEIGHT_PATTERNS

INDEX = "model.safetensors.index.json"
MODULES = "modules.json"
ADAPTER = "adapter_config.json"
LIBRARY = "sentence_transformers."
WANTED = ("*.json", "*.jinja", "*.txt", "*.model", "*.safetensors")
UNWANTED = ("onnx/*", "openvino/*", "original/*", ".*")
# Files that determine embeddings besides weights and tokenizer. Others describe the training.
CONFIGURATIONS = ("config.json", "config_sentence_transformers.json", "sentence_*_config.json", MODULES)


def trusted_by_user(name: str) -> bool:
    """Checks whether the user allows a model's repository to run code, see `Inputs.trusted_code`."""
    said = active().trusted_code.strip()
    return said == "1" or name in [part.strip() for part in said.split(",")]


@dataclass(frozen=True)
class HubFolder:
    """A folder of files.

    Attributes:
        name: The model, for messages.
        source: The absolute path of a folder, or ``owner/name`` on the Hugging Face hub.
        code: True if code in the folder may be run; None if it is never run.
    """

    name: str
    source: str
    code: bool | None = None

    def folder(self, fetch: bool = True, weights: bool = True) -> Path | None:
        """The folder, downloaded if necessary.

        Args:
            fetch: Downloads it if it is missing.
            weights: True if the weights are needed, not only the small files.

        Returns:
            The folder, or None if it is missing and ``fetch`` is False.

        Raises:
            WeightsError: If it is not available; the message names the files and their place.
        """
        if not REPOSITORY.fullmatch(self.source):
            folder = Path(self.source)
            if not folder.is_dir():
                raise WeightsError(f"{self.name}: there is no folder {folder}")
            return folder
        cached = self._cached()
        if cached is not None and not self._lacks_code(cached) and (not weights or not missing_weights(cached)):
            return cached
        return self._fetched(cached, weights) if fetch else None

    def _cached(self) -> Path | None:
        from huggingface_hub import snapshot_download

        try:
            folder = Path(snapshot_download(self.source, local_files_only=True))
        except Exception:  # the hub's client may raise anything if it is not cached
            return None
        return folder if (folder / "config.json").is_file() else None

    def _lacks_code(self, folder: Path) -> bool:
        """Checks whether code to run was not downloaded, because it was not trusted before."""
        references = code_references(folder) if self.code else ()
        return any(
            not (folder / f"{reference.rpartition('.')[0]}.py").is_file()
            for reference in references
            if "--" not in reference
        )

    def _fetched(self, cached: Path | None, weights: bool) -> Path:
        from huggingface_hub import constants, snapshot_download

        url = f"{constants.ENDPOINT}/{self.source}"
        lacking = f", which lacks {missing_weights(cached)}" if cached is not None else ""
        place = (
            f"the Hugging Face cache, {constants.HF_HUB_CACHE}{lacking} ('hf download {self.source}' does both), or put"
            " config.json, the tokenizer's files and *.safetensors into a folder, and name that"
        )
        patterns = [pattern for pattern in WANTED if weights or pattern != "*.safetensors"] + (
            ["*.py"] if self.code else []
        )
        try:
            require_host(self.name, url, place)
            folder = snapshot_download(self.source, allow_patterns=patterns, ignore_patterns=list(UNWANTED))
        except WeightsError:
            raise
        except Exception as error:
            raise cannot_fetch(self.name, url, place, plain(error)) from error
        return Path(folder)

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The weights, the tokenizer files, and the code that may be run.

        Raises:
            WeightsError: If they are not available, not safetensors, or not all in the folder.
        """
        folder = self.folder(fetch)
        if folder is None:
            return None
        self._require_all_within(folder)
        lacking = missing_weights(folder)
        if lacking:
            raise WeightsError(
                f"{self.name}: {folder} lacks {lacking}; weights are read from safetensors files alone (in"
                " transformers, model.save_pretrained(FOLDER) writes them)"
            )
        files = weight_files(folder)
        files += [path for part in parts(folder) for name in TOKENIZER_FILES if (path := part / name).is_file()]
        return [*files, *sorted(folder.glob("*.py"))] if self.code else files

    def configuration(self) -> dict[str, Any]:
        """The relevant content of the folder's configuration files, by their path below it.

        Raises:
            WeightsError: If there are none, or one is not a JSON object.
        """
        folder = self.folder(weights=False)
        assert folder is not None
        content = {}
        for part in parts(folder):
            for path in (path for pattern in CONFIGURATIONS for path in sorted(part.glob(pattern))):
                content[str(path.relative_to(folder))] = self._plain(path)
        if not content:
            raise WeightsError(f"{self.name}: {folder} has no config.json; it should be as save_pretrained writes it")
        return content

    def adds_end(self) -> bool:
        """Checks whether its tokenizer should end each text with the end token, by ``add_eos_token``."""
        folder = self.folder(weights=False)
        assert folder is not None
        return any(adds_end(part) for part in parts(folder))

    def _require_all_within(self, folder: Path) -> None:
        """Refuses folders that load parts from elsewhere, which the identity would miss."""
        for module in _modules(folder):
            path = str(module.get("path", ""))
            if not _is_within(path):
                raise WeightsError(f"{self.name}: {folder / MODULES} names {path!r}, which is not in that folder")
        for part in parts(folder):
            if (part / ADAPTER).is_file():
                raise WeightsError(
                    f"{self.name}: {part / ADAPTER} makes it an adapter of another model; save the two as one (in peft,"
                    " merge_and_unload())"
                )

    def _plain(self, path: Path) -> Any:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise WeightsError(f"{self.name}: {path} cannot be read as JSON: {error}") from error
        unimportant = (*VOLATILE, "__version__")
        return (
            {key: content[key] for key in content if key not in unimportant} if isinstance(content, dict) else content
        )

    def require_no_code(self) -> None:
        """Refuses a folder with code, unless it may be run or is never run. Needs only the small files.

        Raises:
            WeightsError: If the code may not be run, or is in another repository.
        """
        if self.code is None:
            return
        folder = self.folder(weights=False)
        assert folder is not None
        for reference in code_references(folder):
            if "--" in reference:
                raise WeightsError(f"{self.name}: its code is in another repository ({reference}), and is not run")
            if not self.code:
                raise WeightsError(
                    f"{self.name}: its repository contains code ({reference}), which only runs with your permission:"
                    f" read it, then set {ENV_TRUST_CODE}={self.name}, or 'trust_remote_code: true' in a decoder's file"
                )


@dataclass(frozen=True)
class PackageFolder(HubFolder):
    """A folder in an installed package.

    Attributes:
        source: The package and the folder below it, such as ``package/model``.
        distribution: The name of the package in pip.
    """

    distribution: str = ""

    def folder(self, fetch: bool = True, weights: bool = True) -> Path:
        """The folder; raises MissingExtraError if the package is not installed."""
        package, _, rest = self.source.partition("/")
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError(self.distribution, "decoders", self.name)
        return Path(next(iter(spec.submodule_search_locations))) / rest


# What is in a folder ----------------------------------------------------------------------------------------------


def parts(folder: Path) -> list[Path]:
    """The folder, and those below it that sentence-transformers' list of modules names."""
    named = [str(module.get("path", "")) for module in _modules(folder)]
    folders = [folder / name for name in named if name and _is_within(name)]
    return [folder, *(path for path in folders if path.is_dir())]


def _is_within(path: str) -> bool:
    return ".." not in Path(path).parts and not Path(path).is_absolute()


def content_of(path: Path) -> Any:
    """Returns the content of a JSON file; None if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _modules(folder: Path) -> list[dict[str, Any]]:
    modules = content_of(folder / MODULES)
    return [module for module in modules if isinstance(module, dict)] if isinstance(modules, list) else []


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files, those of modules too."""
    return [path for part in parts(folder) for pattern in WEIGHT_PATTERNS for path in sorted(part.glob(pattern))]


def missing_weights(folder: Path) -> str:
    """The first weight file that should be there and is not, or nothing."""
    if not weight_files(folder):
        return "model.safetensors"
    for part in parts(folder):
        try:
            shards = set(content_of(part / INDEX)["weight_map"].values())
        except (KeyError, TypeError, AttributeError):
            continue
        for shard in sorted(shards):
            if not (part / shard).is_file():
                return str((part / shard).relative_to(folder))
    return ""


def adds_end(folder: Path) -> bool:
    """Checks whether a folder's tokenizer should end each text with the end token, by ``add_eos_token``."""
    content = content_of(folder / "tokenizer_config.json")
    return isinstance(content, dict) and content.get("add_eos_token") is True


def code_references(folder: Path) -> Iterator[str]:
    """Returns the names in the folder's configurations that are neither transformers' nor sentence-transformers'."""
    for module in _modules(folder):
        kind = str(module.get("type", ""))
        if not kind.startswith(LIBRARY):
            yield kind
    for part in parts(folder):
        for file in ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json"):
            content = content_of(part / file)
            named = content.get("auto_map") if isinstance(content, dict) else None
            for reference in named.values() if isinstance(named, dict) else [named]:
                yield from (str(text) for text in (reference if isinstance(reference, list) else [reference]) if text)

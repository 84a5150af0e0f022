"""Text embedders in a folder: language models of known kinds, and sentence-transformers' models."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
from pathlib import Path
from typing import Any

from testbed.errors import DefinitionError, MissingExtraError, RunError, WeightsError
from testbed.models.base.definition import LoadOptions
from testbed.models.base.text_encoder import REVISION, TextEncoder
from testbed.models.base.weights import Weights
from testbed.models.loading.hub_folder import HubFolder, content_of
from testbed.models.networks.decoder_kinds import EVAL_BATCH_SIZE, KINDS, DecoderKind
from testbed.paths import own_temporary

EXTRA = "decoders"
SENTENCES = "sentence-transformers"
SMALL_BATCH_SIZE = 64  # texts per batch for models with some hundred million parameters
DEVICES = ("cpu", "cuda", "mps")


class FolderEncoder(TextEncoder):
    """A text embedder whose files are in a folder.

    Args:
        files: The folder.
        library: The package that it needs.
        device_map: A device instead of the run's, or accelerate's way to share it among all GPUs.
        about: The rest of what determines embeddings besides instruction, length, weights and the folder's
            configuration.
        torch_dtype: The precision of its weights; None for the run's.
        attention: The implementation of attention, as transformers calls it; None for the usual way.
        **options: See `TextEncoder`.
    """

    def __init__(
        self,
        files: HubFolder,
        library: str,
        device_map: str | None,
        about: dict[str, Any],
        *,
        torch_dtype: str | None = None,
        attention: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(files.name, weights=files, **options)
        self.folder = files
        self.library = library
        self.device_map = device_map
        self.about = about
        self.torch_dtype = torch_dtype
        self.attention = attention

    def spec(self) -> dict[str, Any]:
        """Returns what determines the embeddings besides the weights."""
        self.require_library()
        self.folder.require_no_code()
        network = {"library": self.library, **self.about, "config": self.folder.configuration()}
        given = {"torch_dtype": self.torch_dtype, "attn_implementation": self.attention}
        network |= {key: value for key, value in given.items() if value is not None}
        if self.library == SENTENCES and self.folder.adds_end():  # which versions of transformers do differently
            network["end_token"] = "added"
        own = {"arch": self.arch, "instruction": self.instruction, "max_length": self.max_length}
        return {**own, "network": network, "revision": REVISION}

    def weights(self, random_seed: int | None = None, fetch: bool = True) -> Weights | None:
        """The weights, identified by content; see `ModelDefinition.weights`.

        Raises:
            MissingExtraError: If the package that it needs is not installed.
            WeightsError: If the folder has code that may not be run; raised before large downloads.
        """
        self.require_library()
        if fetch:
            self.folder.require_no_code()
        return super().weights(random_seed, fetch)

    def load(self, options: LoadOptions) -> Any:
        """The encoder, on the device of its definition, if any."""
        self.require_library()
        if self.device_map is not None and _is_device(self.device_map):
            _require_device(self.name, self.device_map)
            options = dataclasses.replace(options, device=self.device_map)
        if self.torch_dtype is not None:
            options = dataclasses.replace(options, dtype=self.torch_dtype)
        return super().load(options)

    def require_library(self) -> None:
        """Checks that the package it needs is installed."""
        if importlib.util.find_spec(self.library.replace("-", "_")) is None:
            raise MissingExtraError(self.library, EXTRA, self.name)

    def sharing(self) -> str | None:
        """Returns how to share the network among GPUs; None for one device.

        Raises:
            MissingExtraError: If accelerate, which does that, is not installed.
        """
        import torch

        if self.device_map is None or _is_device(self.device_map) or torch.cuda.device_count() < 2:
            return None
        if importlib.util.find_spec("accelerate") is None:
            raise MissingExtraError("accelerate", EXTRA, f"{self.name}: device_map: {self.device_map}")
        return self.device_map


def _is_device(device_map: str) -> bool:
    return device_map.partition(":")[0] in DEVICES


def _require_device(name: str, device: str) -> None:
    import torch

    kind, _, number = device.partition(":")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise RunError(
            f"{name}: its device_map is {device!r}, but there are {torch.cuda.device_count()} GPUs here; write another"
            " device, or leave the key out: it then runs on those of --gpus"
        )


# Language models of known kinds -----------------------------------------------------------------------------------


def decoder(
    name: str,
    kind: str,
    source: str | None = None,
    *,
    task: str | None = None,
    max_length: int | None = None,
    text_batch_size: int | None = None,
    device_map: str | None = None,
    torch_dtype: str | None = None,
    attention: str | None = None,
) -> FolderEncoder:
    """A language model that embeds texts, of one of `KINDS`. Code in its folder is not run.

    Args:
        name: Unique in the registry.
        kind: A key of `KINDS`.
        source: The absolute path of a folder, or ``owner/name`` on the hub; None for the kind's repository.
        task: The instruction, in the kind's template; None for the default, ``""`` for no instruction.
        max_length: The maximum number of tokens of a text, including the instruction; None for the kind's.
        text_batch_size: The number of texts per batch.
        device_map: See `FolderEncoder`.
        torch_dtype: See `FolderEncoder`.
        attention: See `FolderEncoder`; not ``"flash_attention_2"``, which takes no mask of a kind's own.
    """
    row = KINDS[kind]
    files = HubFolder(name, source or row.hub)

    def load(options: LoadOptions) -> Any:
        return _loaded(definition, row, options)

    definition = FolderEncoder(
        files,
        "transformers",
        device_map,
        {"decoder": row.spec()},
        encoder_loader=load,
        random_loader=load,
        text_batch_size=text_batch_size or EVAL_BATCH_SIZE,
        instruction=row.instruction(task),
        max_length=max_length or row.max_length,
        arch=kind,
        torch_dtype=torch_dtype,
        attention=attention,
    )
    return definition


def _loaded(definition: FolderEncoder, kind: DecoderKind, options: LoadOptions) -> Any:
    from testbed.models.networks import decoders as networks

    random = options.random_seed is not None
    folder = definition.folder.folder(weights=not random)
    given = definition.folder.configuration().get("config.json")
    if folder is None or not isinstance(given, dict):
        raise WeightsError(f"{definition.name}: {folder} should have the configuration of a model in config.json")
    attention = definition.attention or networks.ATTENTION
    if random:
        return networks.untrained(definition.name, kind, folder, given, options.device, attention)
    definition.folder.files(fetch=True)
    place = definition.sharing() or options.device
    return networks.load(definition.name, kind, folder, given, options.weights_dtype, place, attention)


# sentence-transformers' models ------------------------------------------------------------------------------------


def sentence_encoder(
    files: HubFolder,
    *,
    instruction: str | None = None,
    max_length: int | None = None,
    text_batch_size: int | None = None,
    device_map: str | None = None,
    torch_dtype: str | None = None,
    attention: str | None = None,
) -> FolderEncoder:
    """A model saved by sentence-transformers: a sequence of modules.

    Args:
        files: Its folder, with the permission to run its code.
        instruction: The prefix of each text; None for that of the folder, if any.
        max_length: The maximum number of tokens of a text; None for that of the folder.
        text_batch_size: The number of texts per batch.
        device_map: A device instead of the run's. ``"auto"`` is the run's: these models are not shared among GPUs.
        torch_dtype: See `FolderEncoder`.
        attention: See `FolderEncoder`.

    Raises:
        DefinitionError: If ``device_map`` shares it among GPUs.
    """
    if device_map is not None and device_map != "auto" and not _is_device(device_map):
        raise DefinitionError(
            f"{files.name}: device_map {device_map!r} is for {', '.join(KINDS)}; sentence-transformers' models run on"
            " one device: write auto, or a device"
        )

    def load(options: LoadOptions) -> Any:
        from testbed.models.networks.sentences import Sentences

        return Sentences(_modules(definition, options), instruction)

    definition = FolderEncoder(
        files,
        SENTENCES,
        None if device_map == "auto" else device_map,
        {"prompt": "its own" if instruction is None else "given"},
        encoder_loader=load,
        random_loader=load,
        text_batch_size=text_batch_size or SMALL_BATCH_SIZE,
        instruction=instruction or "",
        max_length=max_length,
        torch_dtype=torch_dtype,
        attention=attention,
    )
    return definition


def _modules(definition: FolderEncoder, options: LoadOptions) -> Any:
    """The modules on the CPU, in float32 or the definition's own precision."""
    import torch
    from sentence_transformers import SentenceTransformer

    from testbed.models.loading.end_tokens import end_texts

    files = definition.folder
    random = options.random_seed is not None
    files.require_no_code()
    folder = files.folder(weights=not random)
    assert folder is not None
    _require_positions(definition, folder)
    with own_temporary() as temporary:
        if random:
            folder = _untrained(files, folder, Path(temporary))
        else:
            files.files(fetch=True)
        made = SentenceTransformer(
            str(folder),
            device="cpu",
            trust_remote_code=bool(files.code),
            local_files_only=True,
            model_kwargs={
                "use_safetensors": True,
                **({"attn_implementation": definition.attention} if definition.attention else {}),
            },
        ).to(getattr(torch, definition.torch_dtype or "float32"))
        end_texts(getattr(made, "tokenizer", None), folder, definition.name)
        return made


def _require_positions(definition: FolderEncoder, folder: Path) -> None:
    """Refuses lengths beyond the network's positions."""
    config = content_of(folder / "config.json")
    positions = config.get("max_position_embeddings") if isinstance(config, dict) else None
    if definition.max_length is not None and isinstance(positions, int) and definition.max_length > positions:
        raise DefinitionError(
            f"{definition.name}: max_length is {definition.max_length}, but the model has {positions} positions"
        )


def _untrained(files: HubFolder, folder: Path, copy: Path) -> Path:
    """A copy of the folder with random weights."""
    import transformers

    library: Any = transformers
    wanted = [
        path for path in folder.rglob("*") if path.is_file() and path.suffix in (".json", ".txt", ".model", ".py")
    ]
    for path in wanted:
        place = copy / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    for path in copy.rglob("*.safetensors.index.json"):
        path.unlink()
    config = library.AutoConfig.from_pretrained(copy, local_files_only=True, trust_remote_code=bool(files.code))
    network = library.AutoModel.from_config(config, trust_remote_code=bool(files.code))
    network.save_pretrained(copy, safe_serialization=True)
    return copy

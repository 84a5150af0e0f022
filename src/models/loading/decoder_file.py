"""Decoders defined by CLIP-CC-Bench's configuration files: ``--plugin FILE.yaml`` registers one.

Only the section ``decoder`` is used. ``path`` is relative to the parent of CLIP-CC-Bench's folder, else to that folder,
else to the file; if there is no such folder, the type's weights come from the hub. ``max_length`` counts tokens,
including the instruction. ``device_map: auto`` shares a language model among all GPUs that a process sees: as testbed
has a process for each GPU, it is for runs with one of them. A device overrides the run's; without the key the model
runs on the run's device. ``trust_remote_code: true`` lets the code of a folder of sentence-transformers run; the other
types run none.
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

from testbed.data.sets.clip_cc_config import ClipCcConfig, DecoderConfig, read_config
from testbed.errors import DefinitionError
from testbed.inputs import once_for_inputs
from testbed.models import sentence_transformers_models
from testbed.models.loading.folder_encoder import FolderEncoder, decoder, sentence_encoder
from testbed.models.loading.hub_folder import HubFolder, trusted_by_user
from testbed.models.networks.decoder_kinds import ALIASES, KALM, KALM_HUB, KINDS
from testbed.models.sentence_transformers_models import MINILM, minilm_folder, source_of
from testbed.models.transformers_clip import REPOSITORY
from testbed.paths import expanded
from testbed.registry.catalog import Catalog
from testbed.registry.table import DefinitionSource

log = logging.getLogger("testbed")

SENTENCES = "sentence_transformers"
TYPES = (*KINDS, *ALIASES, KALM, SENTENCES, MINILM)


def register(path: Path, catalog: Catalog) -> FolderEncoder:
    """Registers the decoder of a configuration file under its name.

    CLIP-CC-Bench's files use names of testbed's own decoders: the file's then replaces testbed's.

    Raises:
        DefinitionError: If the file is invalid.
        DuplicateNameError: If another model has this name.
    """
    # The folder of its weights, and whether code in it may run, depend on the inputs.
    make = once_for_inputs(partial(from_config, read_config(path)))
    made = make()
    catalog.models.add_made(
        made.name, make, DefinitionSource(str(path), 0), instead_of=sentence_transformers_models.__file__
    )
    return made


def from_config(config: ClipCcConfig) -> FolderEncoder:
    """The definition of a configuration's decoder.

    Raises:
        DefinitionError: If its type is unknown or does not support one of the keys.
    """
    given = config.decoder
    if given.type not in TYPES:
        raise DefinitionError(f"{config.path}: 'decoder.type' is {given.type!r}; the types are {', '.join(TYPES)}")
    folder = _folder(config)
    if (kind := _kind(given)) in KINDS:
        if given.attention == "flash_attention_2":
            raise DefinitionError(
                f"{config.path}: 'attn_implementation' is flash_attention_2, which takes no mask, and"
                f" {given.type} needs one; write eager or sdpa"
            )
        return decoder(
            given.name,
            kind,
            folder,
            task=given.instruction,
            max_length=given.max_length,
            text_batch_size=given.batch_size,
            device_map=given.device_map,
            torch_dtype=given.torch_dtype,
            attention=given.attention,
        )
    return sentence_encoder(
        _sentence_files(config.path, given, folder),
        instruction=given.instruction,
        max_length=given.max_length,
        text_batch_size=given.batch_size,
        device_map=given.device_map,
        torch_dtype=given.torch_dtype,
        attention=given.attention,
    )


def _kind(given: DecoderConfig) -> str:
    return ALIASES.get(given.type, given.type)


def _folder(config: ClipCcConfig) -> str | None:
    """The absolute path of the decoder's folder; None if there is none."""
    written = config.decoder.path
    if written is None:
        return None
    base = config.base_dir()
    path = expanded(written)
    candidates = dict.fromkeys([base.parent / path, base / path, config.path.parent / path])
    folder = next((candidate for candidate in candidates if candidate.is_dir()), None)
    kind = _kind(config.decoder)
    hub = KINDS[kind].hub if kind in KINDS else KALM_HUB if kind == KALM else source_of(written)
    if folder is None and config.decoder.type != MINILM and REPOSITORY.fullmatch(hub):
        log.warning(
            "%s: there is no folder %s; using %s from the Hugging Face hub", config.path, base.parent / path, hub
        )
    return str(folder.absolute()) if folder is not None else None


def _sentence_files(path: Path, given: DecoderConfig, folder: str | None) -> HubFolder:
    code = given.trust_remote_code or trusted_by_user(given.name)
    if given.type == MINILM:
        if given.path is not None and folder is None:
            raise DefinitionError(
                f"{path}: there is no folder {given.path!r}; without 'decoder.path' the package is used"
            )
        return HubFolder(given.name, folder, code) if folder else minilm_folder(given.name)
    if given.type == KALM:
        return HubFolder(given.name, folder or KALM_HUB, code)
    if given.path is None:
        raise DefinitionError(
            f"{path}: the type {SENTENCES!r} needs 'decoder.path': a folder, or owner/name on the hub"
        )
    if folder is None and not REPOSITORY.fullmatch(source_of(given.path)):
        raise DefinitionError(f"{path}: 'decoder.path' is {given.path!r}, which is neither a folder nor owner/name")
    return HubFolder(given.name, folder or source_of(given.path), code)

"""VLMEvalKit's configuration files: ``testbed run --vlmevalkit FILE.json`` runs one.

``{"model": {NAME: {"class": …, …}}, "data": {NAME: {"class": …, "dataset": SET}}}``; an empty entry is the model, or
the set, of that name. Served models become `ApiModel`, those with a ``model_path`` the vision-language model of
transformers at that path; both have the names of the file. All others must be registered under their names.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from testbed.errors import DefinitionError, shortened
from testbed.inputs import once_for_inputs
from testbed.models.api import ApiModel, usual_url
from testbed.models.base.definition import ModelDefinition
from testbed.models.base.served import OPENAI
from testbed.models.transformers_vlm import ImageTextModel
from testbed.registry.catalog import Catalog
from testbed.registry.table import DefinitionSource

MAX_BYTES = 1 << 20  # of a file
LMDEPLOY = ("LMDeployWrapper", "LMDeployAPI")
SERVED = ("OpenAIWrapper", "GPT4V", *LMDEPLOY)
OFFICIAL = "OFFICIAL"  # what VLMEvalKit calls OpenAI's server
LMDEPLOY_BASE, LMDEPLOY_KEY = "LMDEPLOY_API_BASE", "LMDEPLOY_API_KEY"
# Their options → ours; the rest either changes no answer or cannot be kept.
_GENERATION = {
    "temperature": "temperature",
    "max_tokens": "max_new_tokens",
    "top_p": "top_p",
    "top_k": "top_k",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "system_prompt": "system",
}
_SERVICE = {"retry": "retries", "timeout": "timeout", "img_detail": "image_detail", "extra_body": "extra_body"}
_TYPES: Mapping[tuple[type, ...], tuple[str, ...]] = {
    (int,): ("max_tokens", "max_new_tokens", "top_k", "retry", "min_pixels", "max_pixels"),
    (int, float): ("temperature", "top_p", "repetition_penalty", "presence_penalty", "timeout"),
    (str,): ("system_prompt", "img_detail", "model", "api_base", "base_url", "model_path", "class"),
    (dict,): ("extra_body",),
}
_WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", str: "a text", dict: "an object"}
_IGNORED = ("class", "model", "api_base", "base_url", "verbose", "wait", "img_size")
_SECRETS = ("key", "api_key")
_DATA = ("class", "dataset")


@dataclass(frozen=True)
class VLMEvalConfig:
    """The content of a configuration file.

    Attributes:
        path: The file.
        models: Name → its entry in the file.
        data: Name → VLMEvalKit's name of the set.
    """

    path: Path
    models: Mapping[str, Mapping[str, Any]]
    data: Mapping[str, str]


def read_config(path: Path) -> VLMEvalConfig:
    """Reads a configuration file.

    Raises:
        DefinitionError: If it cannot be read, is in another form, or has a key that would be dropped.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DefinitionError(f"{path} is larger than {MAX_BYTES:,} bytes, too large for a configuration file")
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"{path} is not JSON: {error}") from error
    parts = [content.get(part) if isinstance(content, dict) else None for part in ("model", "data")]
    for part, entries in zip(("model", "data"), parts, strict=True):
        if (
            not isinstance(entries, dict)
            or not entries
            or not all(isinstance(value, dict) for value in entries.values())
        ):
            form = '{"model": {NAME: {…}}, "data": {NAME: {…}}}'
            raise DefinitionError(f"{path}: expected {form}; {part!r} is missing, empty or no such object")
    models, data = parts
    assert models is not None
    assert data is not None
    return VLMEvalConfig(path, models, {name: _set(path, name, given) for name, given in data.items()})


def register(path: Path, catalog: Catalog) -> None:
    """Registers the models of a configuration file whose entries name a class.

    Raises:
        DefinitionError: If the file is invalid, or a model is of a class that is not known here.
        DuplicateNameError: If another model has the name of one of them.
    """
    for name, given in read_config(path).models.items():
        if given and not catalog.contains_model(name):
            _check_types(path, name, given)
            make = once_for_inputs(partial(_model, path, name, given))
            make()
            catalog.models.add_made(name, make, DefinitionSource(str(path), 0))


def _set(path: Path, name: str, given: Mapping[str, Any]) -> str:
    unknown = sorted(set(given) - set(_DATA))
    if unknown:
        raise DefinitionError(
            f"{path}: {unknown[0]!r} of the set {name!r} is not known here; sets have {' and '.join(_DATA)}, and no"
            " frames of videos"
        )
    return str(given.get("dataset", name))


def _check_types(path: Path, name: str, given: Mapping[str, Any]) -> None:
    """Checks that the options that are read have values of their types."""
    for option, value in given.items():
        kinds = next((kinds for kinds, options in _TYPES.items() if option in options), None)
        wrong = kinds is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds))
        if value is not None and (wrong or value in (math.inf, -math.inf) or value != value):
            raise DefinitionError(
                f"{path}: the model {name!r} has {shortened(repr(value))[1:-1]} as {option!r}; expected"
                f" {' or '.join(_WORDS[kind] for kind in kinds or ())}"
            )


def _model(path: Path, name: str, given: Mapping[str, Any]) -> ModelDefinition:
    """The definition of a model.

    Raises:
        DefinitionError: If there is none for its class, or it has an option that would be dropped.
    """
    where = f"{path}: the model {name!r}"
    secret = next((secret for secret in _SECRETS if given.get(secret)), None)
    if secret is not None:
        raise DefinitionError(
            f"{where} has {secret!r} in the file; set the variable OPENAI_API_KEY, which is never stored"
        )
    if given.get("class") in SERVED:
        return _served(where, name, given)
    if "model_path" in given:
        return _local(where, name, given)
    raise DefinitionError(
        f"{where} is of VLMEvalKit's class {given.get('class')!r}; register it as VLMEvalModel({name!r}, …) in a file"
        " and give that with --plugin (docs/vlmevalkit.md)"
    )


def _served(where: str, name: str, given: Mapping[str, Any]) -> ApiModel:
    unknown = sorted(set(given) - set(_GENERATION) - set(_SERVICE) - set(_IGNORED) - set(_SECRETS))
    if unknown:
        raise DefinitionError(f"{where}: {unknown[0]!r} is not known here; requests have it by extra_body")
    variables = (LMDEPLOY_BASE,) if given["class"] in LMDEPLOY else ()
    url = str(given.get("api_base") or given.get("base_url") or "") or usual_url(*variables)
    generation = {ours: given[theirs] for theirs, ours in _GENERATION.items() if given.get(theirs) is not None}
    service = {ours: given[theirs] for theirs, ours in _SERVICE.items() if given.get(theirs) is not None}
    if given["class"] in LMDEPLOY and os.environ.get(LMDEPLOY_KEY):
        service["key_variable"] = LMDEPLOY_KEY
    where_it_is = OPENAI if url == OFFICIAL else url
    return ApiModel(name, str(given.get("model", name)), where_it_is, generation=generation, **service)


def _local(where: str, name: str, given: Mapping[str, Any]) -> ImageTextModel:
    options = {key: given[key] for key in ("min_pixels", "max_pixels") if given.get(key) is not None}
    generation = {ours: given[theirs] for theirs, ours in _GENERATION.items() if given.get(theirs) is not None}
    generation |= {key: given[key] for key in ("max_new_tokens",) if given.get(key) is not None}
    known = {"class", "model_path", "use_custom_prompt", "verbose", "max_new_tokens", *options, *_GENERATION}
    unknown = sorted(set(given) - known - {"min_pixels", "max_pixels"})
    if unknown:
        raise DefinitionError(f"{where}: {unknown[0]!r} is not known here; it has {', '.join(sorted(known))}")
    if given.get("use_custom_prompt"):
        raise DefinitionError(
            f"{where} asks for the prompts of VLMEvalKit's class {given.get('class')!r}, which are not known here;"
            " leave use_custom_prompt out to ask with the prompts of the sets"
        )
    return ImageTextModel(name, str(given["model_path"]), generation=generation, **options)

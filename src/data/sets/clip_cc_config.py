"""CLIP-CC-Bench's configuration files: a decoder, how to run it, where the data lie, whom to evaluate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.errors import DefinitionError
from testbed.inputs import active
from testbed.paths import expanded
from testbed.yamltext import YamlError, from_yaml

CONFIGS = ("src", "configs")  # where CLIP-CC-Bench keeps these files, below its base folder
CHUNKING_METHODS = ("auto", "nltk", "sentencex", "pysbd")
SECTIONS = ("decoder", "embedding_model")  # the text embedder: in the first versions, and today
TORCH_DTYPES = ("float32", "float16", "bfloat16")
ATTENTION = ("eager", "sdpa", "flash_attention_2")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
SHARDED = ("auto", "balanced", "balanced_low_0", "sequential")
MOST_BYTES = 1_000_000
DEVICE = re.compile(r"cpu|mps|cuda(:\d+)?")


@dataclass(frozen=True)
class SentenceOptions:
    """Options of the sentence-by-sentence comparison of captions.

    Attributes:
        enabled: True to compare sentences.
        chunking_method: The method that splits them into sentences, one of `CHUNKING_METHODS`.
    """

    enabled: bool = True
    chunking_method: str = "nltk"


@dataclass(frozen=True)
class DecoderConfig:
    """A text embedder.

    Attributes:
        name: Its registered name.
        type: Its kind, such as ``"nvembed"``.
        path: The folder of its files as written, None for the hub's.
        batch_size: The number of texts per batch; None for the kind's own.
        max_length: The maximum number of tokens of a text, including the instruction; None for the kind's own.
        device_map: One of `SHARDED`, or a device; None for the device that a run gives it.
        trust_remote_code: Allows running the code in its folder.
        instruction: The instruction in front of a text; None for the kind's own, ``""`` for none. Under the key
            ``embedding_model`` the default is none, as in CLIP-CC-Bench's code.
        torch_dtype: The precision of its weights, one of `TORCH_DTYPES`; None for the run's.
        attention: The implementation of attention, one of `ATTENTION`; None for the library's choice.
        fine_grained: Options of the sentence-by-sentence comparison.
    """

    name: str
    type: str
    path: str | None = None
    batch_size: int | None = None
    max_length: int | None = None
    device_map: str | None = None
    trust_remote_code: bool = False
    instruction: str | None = None
    torch_dtype: str | None = None
    attention: str | None = None
    fine_grained: SentenceOptions = SentenceOptions()


@dataclass(frozen=True)
class Processing:
    """Options of running an evaluation.

    Attributes:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:N"``, ``"mps"``; None leaves it to the command.
        clear_cache_interval: The number of samples after which a GPU's unused memory is freed; None for never.
        progress_interval: The number of samples between lines of progress; None leaves it to the command.
    """

    device: str | None = None
    clear_cache_interval: int | None = None
    progress_interval: int | None = None


@dataclass(frozen=True)
class DataPaths:
    """Paths of files and folders, as written: relative to the base folder."""

    ground_truth_file: str = "data/ground_truth/clip_cc_dataset.json"
    predictions_dir: str = "data/models"
    results_base_dir: str = "results"


@dataclass(frozen=True)
class Logging:
    """The log file of an evaluation.

    Attributes:
        level: The least severe messages that it gets, one of `LEVELS`.
        prefix: The beginning of its name; None for one made of the decoder's name.
    """

    level: str = "INFO"
    prefix: str | None = None


@dataclass(frozen=True)
class ClipCcConfig:
    """The content of a configuration file.

    Attributes:
        path: The file, absolute.
        decoder: The text embedder that compares captions.
        processing: The options of the run.
        data_paths: The paths of files and folders; see `resolved`.
        models_to_evaluate: The names of captioners.
        logging: The log file.
        section: The one of `SECTIONS` with the text embedder; it decides the form of the result files.
    """

    path: Path
    decoder: DecoderConfig
    processing: Processing = Processing()
    data_paths: DataPaths = DataPaths()
    models_to_evaluate: tuple[str, ...] = field(default=())
    logging: Logging = Logging()
    section: str = SECTIONS[0]

    def base_dir(self, given: str | Path | None = None) -> Path:
        """The folder that data paths are relative to.

        It is the given one, else that of the active `Inputs`, else the one that has this file below ``src/configs``,
        else the one with the file.
        """
        chosen = given or active().clip_cc_base
        if chosen:
            return expanded(chosen).absolute()
        folder = self.path.parent
        return folder.parent.parent if folder.parts[-len(CONFIGS) :] == CONFIGS else folder

    def resolved(self, written: str, base_dir: str | Path | None = None) -> Path:
        """The absolute path of one of the data paths; see `base_dir`."""
        return self.base_dir(base_dir) / expanded(written)


def read_config(path: str | Path) -> ClipCcConfig:
    """Reads a configuration file. The section ``decoder`` or ``embedding_model`` must be there, the others may.

    Raises:
        DefinitionError: If the file is missing, is not YAML, or has a key that is unknown or of another type.
    """
    path = expanded(path).absolute()
    top = _Section(_parsed(path), "", path)
    top.only(*SECTIONS, "processing", "data_paths", "models_to_evaluate", "logging")
    given = [section for section in SECTIONS if top.content.get(section) is not None]
    if len(given) > 1:
        raise top.fault(given[1], f"not be there beside {given[0]!r}: both describe the text embedder")
    section = given[0] if given else SECTIONS[0]
    return ClipCcConfig(
        path=path,
        decoder=_decoder(top.section(section, needed=True)),
        processing=_processing(top.section("processing")),
        data_paths=_data_paths(top.section("data_paths")),
        models_to_evaluate=_models(top),
        logging=_logging(top.section("logging")),
        section=section,
    )


def _decoder(section: _Section) -> DecoderConfig:
    section.only(
        "name", "path", "type", "batch_size", "max_length", "device_map", "trust_remote_code", "additional_params",
        "fine_grained",
    )  # fmt: skip
    more = section.section("additional_params")
    more.only("instruction_for_retrieval", "torch_dtype", "attn_implementation")
    fine = section.section("fine_grained")
    fine.only("enabled", "chunking_method")
    return DecoderConfig(
        name=section.needed("name", _name),
        type=section.needed("type", _word),
        path=section.get("path", _word, None),
        batch_size=section.get("batch_size", _count, None),
        max_length=section.get("max_length", _count, None),
        device_map=section.get("device_map", _device_map, None),
        trust_remote_code=section.get("trust_remote_code", _switch, False),
        instruction=more.get("instruction_for_retrieval", _text, None if section.name == SECTIONS[0] else ""),
        torch_dtype=more.get("torch_dtype", _one_of(TORCH_DTYPES), None),
        attention=more.get("attn_implementation", _one_of(ATTENTION), None),
        fine_grained=SentenceOptions(
            enabled=fine.get("enabled", _switch, True),
            chunking_method=fine.get("chunking_method", _one_of(CHUNKING_METHODS), "nltk"),
        ),
    )


def _processing(section: _Section) -> Processing:
    section.only("device", "clear_cache_interval", "progress_interval")
    return Processing(
        device=section.get("device", _device, None),
        clear_cache_interval=section.get("clear_cache_interval", _count, None),
        progress_interval=section.get("progress_interval", _count, None),
    )


def _logging(section: _Section) -> Logging:
    section.only("level", "log_prefix")
    level = section.get("level", _one_of((*LEVELS, *(level.lower() for level in LEVELS))), Logging.level)
    return Logging(level.upper(), section.get("log_prefix", _file_name, None))


def _data_paths(section: _Section) -> DataPaths:
    usual = vars(DataPaths())
    section.only(*usual)
    return DataPaths(**{key: section.get(key, _word, usual[key]) for key in usual})


def _models(top: _Section) -> tuple[str, ...]:
    names: list[Any] = top.get("models_to_evaluate", _list, [])
    for number, name in enumerate(names, 1):
        if not isinstance(name, str) or not name.strip():
            raise top.fault("models_to_evaluate", f"be a list of names; number {number} is {_shown(name)}")
        if name in names[: number - 1]:
            raise top.fault("models_to_evaluate", f"name each captioner once; {name!r} is there twice")
    return tuple(names)


# Values -----------------------------------------------------------------------------------------------------------

Check = Callable[[Any], str | None]  # what a value should be, or None when it is


def _check(is_good: Callable[[Any], Any], expected: str) -> Check:
    return lambda value: None if is_good(value) else expected


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_word = _check(_is_word, "a text that is not blank")
_name = _check(
    lambda value: _is_word(value) and "@" not in value,
    "a text that is not blank and has no '@', which stands between a setting and its decoder",
)
_file_name = _check(lambda value: _is_word(value) and not set(value) & set("/\\\0"), "the beginning of a file's name")
_text = _check(lambda value: isinstance(value, str), "a text")
_switch = _check(lambda value: isinstance(value, bool), "true or false")
_list = _check(lambda value: isinstance(value, list), "a list of names")
_count = _check(lambda value: type(value) is int and value > 0, "an integer larger than 0")
_device = _check(lambda value: isinstance(value, str) and DEVICE.fullmatch(value), "cpu, cuda, cuda:N or mps")
_device_map = _check(
    lambda value: isinstance(value, str) and (value in SHARDED or DEVICE.fullmatch(value)),
    f"one of {', '.join(SHARDED)}, cpu, cuda, cuda:N, mps",
)


def _one_of(values: Sequence[str]) -> Check:
    return _check(lambda value: value in values, f"one of {', '.join(values)}")


class _Section:
    """A mapping of the file, with its name for messages (``""`` for the top); keys without a value are not there."""

    def __init__(self, content: Mapping[str, Any], name: str, path: Path) -> None:
        self.content = content
        self.name = name
        self.path = path

    def only(self, *known: str) -> None:
        """Refuses keys that nobody reads."""
        for key in self.content:
            if key not in known:
                where = f" below {self.name!r}" if self.name else ""
                raise DefinitionError(
                    f"{self.path}: the key {self._full(key)!r} is not known; the keys{where} are {', '.join(known)}"
                )

    def section(self, key: str, needed: bool = False) -> _Section:
        """A mapping within; an empty one where there is none."""
        value = self.content.get(key)
        if value is None and not needed:
            value = {}
        if not isinstance(value, Mapping):
            raise self.fault(key, f"be a mapping of keys to values; {self._found(key)}")
        return _Section(value, self._full(key), self.path)

    def get(self, key: str, check: Check, default: Any) -> Any:
        """The checked value of a key, or the default where it has none."""
        value = self.content.get(key)
        if value is None:
            return default
        expected = check(value)
        if expected:
            raise self.fault(key, f"be {expected}; {self._found(key)}")
        return value

    def needed(self, key: str, check: Check) -> Any:
        """The checked value of a key that must have one."""
        if self.content.get(key) is None:
            raise self.fault(key, f"be {check(None)}; {self._found(key)}")
        return self.get(key, check, None)

    def fault(self, key: str, what: str) -> DefinitionError:
        """The error for a key: what it should do, and what it does."""
        return DefinitionError(f"{self.path}: {self._full(key)!r} should {what}")

    def _full(self, key: Any) -> str:
        return f"{self.name}.{key}" if self.name else str(key)

    def _found(self, key: str) -> str:
        return f"it is {_shown(self.content[key])}" if key in self.content else "it is missing"


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, str | int | float):
        return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
    return f"a {type(value).__name__}"


# YAML -------------------------------------------------------------------------------------------------------------


def _parsed(path: Path) -> Mapping[str, Any]:
    """The mapping at the top of a YAML file."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DefinitionError(f"{path}: a configuration file has at most {MOST_BYTES} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"the configuration file {path} cannot be read: {error}") from error
    try:
        content = from_yaml(text)
    except YamlError as error:
        raise DefinitionError(f"{path} is not YAML: {error}") from error
    if not isinstance(content, Mapping):
        raise DefinitionError(
            f"{path} should be a mapping with the key 'decoder' or 'embedding_model', as CLIP-CC-Bench's; it is"
            f" {_shown(content)}"
        )
    return content

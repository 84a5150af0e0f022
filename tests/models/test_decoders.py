"""Language models that embed texts: against transformers and sentence-transformers, from tiny ones in folders."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("sentence_transformers")

import torch
import transformers
from decoder_world import LATENT_SHAPES, TYPES, make
from safetensors.torch import load_file, save_file
from torch.nn.functional import gelu, layer_norm, normalize

from testbed.errors import RunError, WeightsError
from testbed.identity.describe import digest
from testbed.models.loading.folder_encoder import decoder
from testbed.models.model_base import LoadOptions
from testbed.models.networks.decoder_kinds import KINDS

CPU = LoadOptions("cpu")
TEXTS = ["a cat sat on the mat", "two dogs", "owl", "a cat sat on the mat and two dogs in the park flew", ""]
TASK = "judge text"
INSTRUCTED = "Instruct: judge text\nQuery: "


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("decoders")
    return {kind: make(root / kind, kind) for kind in TYPES}


def embedded(folders, kind, texts=TEXTS, **options):
    return decoder("tiny", kind, str(folders[kind]), **{"task": TASK, **options}).load(CPU).embed_text(texts)


def ids_of(folder, text, end=None):
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    ids = tokenizer(text)["input_ids"]
    return torch.tensor([ids + ([tokenizer.convert_tokens_to_ids(end)] if end else [])])


def seeing_all(network):
    """transformers' own network without a mask, in which a token sees all the others."""
    for layer in network.layers:
        layer.self_attn.is_causal = False
    network.config._attn_implementation = "sdpa"
    return network.eval()


def test_qwen3_as_sentence_transformers_runs_it(folders):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer

    transformer = Transformer(str(folders["qwen3"]), processor_kwargs={"padding_side": "left"})
    peer = SentenceTransformer(modules=[transformer, Pooling(16, pooling_mode="lasttoken"), Normalize()], device="cpu")
    expected = peer.encode([f"Instruct: judge text\nQuery:{text}<|endoftext|>" for text in TEXTS])
    np.testing.assert_allclose(embedded(folders, "qwen3"), expected, atol=1e-5)


def test_gte_takes_the_last_token_of_a_network_that_sees_all(folders):
    network = seeing_all(transformers.Qwen2Model.from_pretrained(folders["gte"]))
    for text, found in zip(TEXTS, embedded(folders, "gte"), strict=True):
        with torch.no_grad():
            states = network(ids_of(folders["gte"], INSTRUCTED + text, "<|endoftext|>")).last_hidden_state
        assert torch.allclose(found, normalize(states[0, -1], dim=0), atol=1e-5)


def test_nemotron_takes_the_mean_of_a_network_that_sees_all(folders):
    config = transformers.LlamaConfig(**json.loads((folders["nemotron"] / "config.json").read_text()))
    network = seeing_all(transformers.LlamaModel.from_pretrained(folders["nemotron"], config=config))
    for text, found in zip(TEXTS, embedded(folders, "nemotron"), strict=True):
        with torch.no_grad():
            states = network(ids_of(folders["nemotron"], INSTRUCTED + text)).last_hidden_state
        assert torch.allclose(found, normalize(states[0].mean(0), dim=0), atol=1e-5)


def test_nv_embed_averages_the_texts_own_tokens_after_attention_to_latents(folders):
    state = load_file(folders["nvembed"] / "model.safetensors")
    inner = {key.removeprefix("embedding_model."): state[key] for key in state if key.startswith("embedding_model.")}
    config = json.loads((folders["nvembed"] / "config.json").read_text())["text_config"]
    network = transformers.MistralModel(transformers.MistralConfig(**{**config, "sliding_window": None}))
    network.load_state_dict(inner)
    seeing_all(network)
    of = {key: state[f"latent_attention_model.{key}"] for key in LATENT_SHAPES}
    first, second = "cross_attend_blocks.0.", "cross_attend_blocks.1."

    def latent(states):
        """Written out: one token, one head at a time."""
        context = layer_norm(of["latents"], (16,), of[f"{first}norm_context.weight"], of[f"{first}norm_context.bias"])
        keys, values = (context @ of[f"{first}fn.to_kv.weight"].T).split(16, dim=1)
        rows = []
        for state in states:
            query = of[f"{first}fn.to_q.weight"] @ layer_norm(
                state, (16,), of[f"{first}norm.weight"], of[f"{first}norm.bias"]
            )
            heads = [slice(0, 8), slice(8, 16)]
            attended = [(keys[:, head] @ query[head] / 8**0.5).softmax(0) @ values[:, head] for head in heads]
            state = of[f"{first}fn.to_out.weight"] @ torch.cat(attended) + state
            inside = layer_norm(state, (16,), of[f"{second}norm.weight"], of[f"{second}norm.bias"])
            wide = of[f"{second}fn.net.0.weight"] @ inside + of[f"{second}fn.net.0.bias"]
            gated = wide[:64] * gelu(wide[64:])
            rows.append(of[f"{second}fn.net.2.weight"] @ gated + of[f"{second}fn.net.2.bias"] + state)
        return torch.stack(rows)

    instructed = ids_of(folders["nvembed"], INSTRUCTED).shape[1] - 1  # as the authors count: not <s>
    for text, found in zip(TEXTS, embedded(folders, "nvembed"), strict=True):
        with torch.no_grad():
            states = network(ids_of(folders["nvembed"], INSTRUCTED + text, "</s>")).last_hidden_state[0]
        assert torch.allclose(found, normalize(latent(states)[instructed:].mean(0), dim=0), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_make_no_difference(folders, kind):
    expected = embedded(folders, kind, text_batch_size=1)
    assert torch.allclose(embedded(folders, kind, text_batch_size=8), expected, atol=1e-5)
    assert torch.allclose(embedded(folders, kind, TEXTS[::-1], text_batch_size=2), expected.flip(0), atol=1e-5)
    assert torch.allclose(expected.norm(dim=1), torch.ones(len(TEXTS)))
    others = expected @ expected.T - torch.eye(len(TEXTS))
    assert float(others.max()) < 0.999


SEEN = {
    "nvembed": ["<s> Instruct : judge text Query : owl </s>", "<s> Instruct : judge text Query : two dogs </s>"],
    "gte": ["Instruct : judge text Query : owl <|endoftext|>", "Instruct : judge text Query : two dogs <|endoftext|>"],
    "nemotron": ["<s> Instruct : judge text Query : owl", "<s> Instruct : judge text Query : two dogs"],
    "qwen3": [
        "Instruct : judge text Query : owl <|endoftext|>",
        "Instruct : judge text Query : two dogs <|endoftext|>",
    ],
}


@pytest.mark.parametrize(("kind", "expected"), SEEN.items())
def test_the_tokens_that_reach_the_network(folders, kind, expected):
    loaded = decoder("tiny", kind, str(folders[kind]), task=TASK).load(CPU)
    ids, seen, pooled = loaded.encoder.tokens(["owl", "two dogs"], loaded.definition.instruction)
    words = [loaded.encoder.tokenizer.convert_ids_to_tokens(row) for row in ids]
    kept = [[word for word, is_seen in zip(*row, strict=True) if is_seen] for row in zip(words, seen, strict=True)]
    assert [" ".join(row) for row in kept] == expected
    assert seen[0].tolist() == ([0] if KINDS[kind].padding == "left" else []) + [1] * len(kept[0]) + (
        [0] if KINDS[kind].padding == "right" else []
    )
    if kind == "nvembed":
        # Whole words: no token of the instruction's is the space at its end, so its colon counts, as with the authors.
        assert pooled.tolist() == [[0] * 6 + [1, 1, 1, 0], [0] * 6 + [1, 1, 1, 1]]
    else:
        assert torch.equal(pooled, seen)


def test_what_counts_in_a_mean_where_spaces_are_parts_of_tokens(folders, tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["<s>", "</s>", "<unk>", "▁Instruct", ":", "▁judge", "▁text", "▁Query", "▁", "▁two", "2", "dogs", "▁dogs"]
    made = Tokenizer(models.BPE({word: at for at, word in enumerate(words)}, [], unk_token="<unk>", ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("\n", "removed"),
            pre_tokenizers.Split(":", "isolated"),
            pre_tokenizers.Split(" ", "merged_with_next"),
            pre_tokenizers.Split("2", "isolated"),
            pre_tokenizers.Metaspace(prepend_scheme="first"),
        ]
    )
    made.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    moved = shutil.copytree(folders["nvembed"], tmp_path / "moved")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="</s>", unk_token="<unk>", bos_token="<s>"
    ).save_pretrained(moved)
    encoder = decoder("tiny", "nvembed", str(moved), task=TASK).load(CPU).encoder

    def counted(text, instruction):
        ids, _, pooled = encoder.tokens([text], instruction)
        kept = [int(token) for token, counts in zip(ids[0], pooled[0], strict=True) if counts]
        return encoder.tokenizer.convert_ids_to_tokens(kept)

    assert counted("two dogs", INSTRUCTED) == ["▁two", "▁dogs", "</s>"]
    assert counted("2 dogs", INSTRUCTED) == ["▁", "2", "▁dogs", "</s>"]
    assert counted("two dogs", "") == ["<s>", "▁two", "▁dogs", "</s>"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("nvembed", "Instruct: Retrieve semantically similar text.\nQuery: "),
        ("gte", "Instruct: Retrieve semantically similar text.\nQuery: "),
        ("nemotron", "Instruct: Retrieve semantically similar text\nQuery: "),
        ("qwen3", "Instruct: Retrieve semantically similar text\nQuery:"),
    ],
)
def test_what_each_is_told(kind, expected):
    assert decoder("tiny", kind).instruction == expected


def test_a_text_is_cut_before_the_token_that_ends_it(folders):
    loaded = decoder("tiny", "gte", str(folders["gte"]), task="", max_length=4).load(CPU)
    ids, _, _ = loaded.encoder.tokens(["a cat sat on the mat"], "")
    assert loaded.encoder.tokenizer.convert_ids_to_tokens(ids[0]) == ["a", "cat", "sat", "<|endoftext|>"]
    assert not torch.allclose(*loaded.embed_text(["a cat sat", "a cat dog"]))
    assert torch.allclose(*loaded.embed_text(["a cat sat", "a cat sat on the mat"]), atol=1e-6)


def test_an_instruction_that_leaves_no_room(folders):
    with pytest.raises(RunError, match="the instruction takes 6 tokens of 6, which leaves none for a text"):
        embedded(folders, "gte", max_length=6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_instruction_decides_numbers(folders, kind):
    ours, usual, none = (embedded(folders, kind, ["two dogs"], task=task) for task in (TASK, None, ""))
    assert not torch.allclose(ours, none, atol=1e-3)
    assert not torch.allclose(ours, usual, atol=1e-3)


def test_identity(folders, tmp_path):
    def identity(kind="gte", folder=None, **options):
        model = decoder("tiny", kind, str(folder or folders[kind]), **options)
        return digest([model.spec(), model.weights().id])

    plain = identity()
    moved = shutil.copytree(folders["gte"], tmp_path / "moved")
    assert identity(folder=moved, text_batch_size=3, device_map="cpu") == plain
    other = make(tmp_path / "other", "gte", seed=1)
    assert len({plain, identity(folder=other), identity(task="x"), identity(max_length=9), identity("qwen3")}) == 5
    (moved / "config.json").write_text((moved / "config.json").read_text().replace("10000.0", "20000.0"))
    assert identity(folder=moved) != plain


@pytest.mark.parametrize("kind", KINDS)
def test_random_weights_and_lower_precision(folders, kind):
    model = decoder("tiny", kind, str(folders[kind]))
    first, again, other = (model.load(LoadOptions(random_seed=seed)).embed_text(["a cat"]) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)
    loaded = model.load(LoadOptions(dtype="bfloat16"))
    assert loaded.encoder.network.dtype == torch.bfloat16
    assert torch.allclose(loaded.embed_text(TEXTS), model.load(CPU).embed_text(TEXTS), atol=0.1)


def test_faults_of_folders(folders, tmp_path):
    def fault(kind="gte", folder=None):
        model = decoder("tiny", kind, str(folder or tmp_path / "moved"))
        with pytest.raises(WeightsError) as raised:
            model.load(CPU)
        return str(raised.value)

    assert "tiny: there is no folder" in fault()
    assert "has a model of type 'qwen2'; nvembed was expected, as nvidia/NV-Embed-v2 has" in fault(
        "nvembed", folders["gte"]
    )
    moved = shutil.copytree(folders["gte"], tmp_path / "moved")
    state = load_file(moved / "model.safetensors")
    save_file({key: state[key] for key in sorted(state)[1:]}, moved / "model.safetensors", metadata={"format": "pt"})
    assert f"do not fit its architecture: {min(state)} is missing" in fault()
    (moved / "model.safetensors").rename(moved / "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (moved / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "lacks model-00002-of-00002.safetensors" in fault()
    for path in moved.glob("model*"):
        path.unlink()
    (moved / "pytorch_model.bin").write_bytes(b"")
    assert "lacks model.safetensors; weights are read from safetensors files alone" in fault()
    with pytest.raises(WeightsError, match=r"lacks model\.safetensors"):
        decoder("tiny", "gte", str(moved)).weights()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", r"config\.json cannot be read as JSON"),
        ("[]", r"configuration of a model in config\.json"),
        (None, "has no"),
    ],
)
def test_faults_of_configurations(folders, tmp_path, content, said):
    moved = shutil.copytree(folders["gte"], tmp_path / "moved")
    if content is None:
        (moved / "config.json").unlink()
    else:
        (moved / "config.json").write_text(content)
    with pytest.raises(WeightsError, match=said):
        decoder("tiny", "gte", str(moved)).load(CPU)


def test_a_tokenizer_without_the_token_that_ends_a_text(folders, tmp_path):
    moved = shutil.copytree(folders["gte"], tmp_path / "moved")
    for path in moved.glob("*token*.json"):
        path.write_text(path.read_text().replace("<|endoftext|>", "<|other|>"))
    with pytest.raises(WeightsError, match=r"its tokenizer has no token '<\|endoftext\|>', which should end each text"):
        decoder("tiny", "gte", str(moved)).load(CPU)

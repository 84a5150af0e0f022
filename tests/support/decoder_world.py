"""Tiny language models that embed texts, in folders as the published ones are, with weights drawn at random."""

from __future__ import annotations

import json
from pathlib import Path

WORDS = "a cat dog two dogs sat on the mat in park and owl flew Instruct : Query Retrieve similar text . judge".split()
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<|endoftext|>"]
SIZES = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": len(SPECIAL) + len(WORDS),
    "max_position_embeddings": 256,
    "initializer_range": 0.4,  # large enough for texts to differ
}
LATENT = {
    "model_type": "latent_attention",
    "num_latents_value": 6,
    "num_cross_heads": 2,
    "output_normalize": True,
    "hidden_dim": 16,
    "latent_dim": 16,
    "cross_dim_head": 8,
}
# The names of NV-Embed's published weights, with the shapes that they have here.
LATENT_SHAPES = {
    "latents": (6, 16),
    "cross_attend_blocks.0.fn.to_q.weight": (16, 16),
    "cross_attend_blocks.0.fn.to_kv.weight": (32, 16),
    "cross_attend_blocks.0.fn.to_out.weight": (16, 16),
    "cross_attend_blocks.0.norm.weight": (16,),
    "cross_attend_blocks.0.norm.bias": (16,),
    "cross_attend_blocks.0.norm_context.weight": (16,),
    "cross_attend_blocks.0.norm_context.bias": (16,),
    "cross_attend_blocks.1.fn.net.0.weight": (128, 16),
    "cross_attend_blocks.1.fn.net.0.bias": (128,),
    "cross_attend_blocks.1.fn.net.2.weight": (16, 64),
    "cross_attend_blocks.1.fn.net.2.bias": (16,),
    "cross_attend_blocks.1.norm.weight": (16,),
    "cross_attend_blocks.1.norm.bias": (16,),
}
AUTO_MAP = {"AutoModel": "modeling_own.OwnModel"}
TYPES = {"nvembed": "Mistral", "gte": "Qwen2", "nemotron": "Llama", "qwen3": "Qwen3"}


def tokenizer(begins: bool = False):
    """A tokenizer of whole words; one of Llama's begins each text with a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate([*SPECIAL, *WORDS])}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if begins:
        made.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", bos_token="<s>",
        additional_special_tokens=["<|endoftext|>"],
    )  # fmt: skip


def make(folder: Path, kind: str, seed: int = 0, **sizes: int) -> Path:
    """A folder with a tiny model of a kind."""
    import torch
    import transformers
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    tokenizer(begins=kind in ("nvembed", "nemotron")).save_pretrained(folder)
    sizes = SIZES | ({"head_dim": 8} if kind == "qwen3" else {}) | sizes
    config = getattr(transformers, f"{TYPES[kind]}Config")(**sizes)
    network = getattr(transformers, f"{TYPES[kind]}Model")(config)
    network.save_pretrained(folder)
    path = folder / "config.json"
    content = json.loads(path.read_text())
    if kind == "nvembed":
        state = {f"embedding_model.{key}": value for key, value in network.state_dict().items()}
        for key, shape in LATENT_SHAPES.items():
            state[f"latent_attention_model.{key}"] = torch.randn(shape) * 0.5
        save_file({key: value.contiguous() for key, value in state.items()}, folder / "model.safetensors")
        content = {
            "model_type": "nvembed",
            "text_config": {**content, "model_type": "bidir_mistral", "sliding_window": 4},
            "latent_attention_config": LATENT,
            "auto_map": AUTO_MAP,
        }
    elif kind == "nemotron":
        content |= {"model_type": "llama_bidirec", "pooling": "avg", "auto_map": AUTO_MAP}
    elif kind == "gte":
        content |= {"is_causal": False, "auto_map": AUTO_MAP}
    path.write_text(json.dumps(content))
    return folder


def make_sentences(folder: Path, seed: int = 0, prompts: dict[str, str] | None = None) -> Path:
    """A folder with a tiny model of sentence-transformers."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    inner = folder.parent / f"{folder.name}-inner"
    tokenizer(begins=True).save_pretrained(inner)
    sizes = {key: value for key, value in SIZES.items() if key != "num_key_value_heads"}
    BertModel(BertConfig(**sizes)).save_pretrained(inner)
    transformer = Transformer(str(inner), max_seq_length=32)
    modules = [transformer, Pooling(SIZES["hidden_size"], include_prompt=False), Normalize()]
    made = SentenceTransformer(modules=modules, device="cpu", prompts=prompts)
    if prompts:
        made.default_prompt_name = next(iter(prompts))
    made.save(str(folder))
    return folder

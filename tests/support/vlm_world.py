"""A tiny LLaVA and a tiny Qwen2-VL with weights drawn at random, which take chats with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = "a b what is in this picture and here describe it say yes no be brief the cat dog second first again".split()
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<image>", "user", "assistant", "system", ":"]
TEMPLATE = (
    "{{ bos_token }}{% for turn in messages %}{{ turn['role'] }} : "
    "{% for part in turn['content'] %}{% if part['type'] == 'image' %}<image> "
    "{% else %}{{ part['text'] }} {% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}assistant : {% endif %}"
)
TOWER = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SIDE, PATCH = 16, 8


def words_tokenizer(*more: str) -> Any:
    """A tokenizer of whole words, with special tokens of a model."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = [*SPECIAL, *WORDS, *more]
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>",
        additional_special_tokens=["<image>", *more],
    )  # fmt: skip


def save(network: Any, folder: Path) -> Path:
    """Saves a network whose weights are made larger, so that answers differ."""
    import torch

    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(4)
    network.save_pretrained(folder)
    return folder


def save_llava(folder: Path, seed: int = 0, template: str | None = TEMPLATE) -> Path:
    """A new folder with a LLaVA, as ``save_pretrained`` writes it."""
    import torch
    import transformers

    sides = {"height": SIDE, "width": SIDE}
    images = transformers.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=sides)
    tokenizer = words_tokenizer()
    transformers.LlavaProcessor(
        images, tokenizer, patch_size=PATCH, vision_feature_select_strategy="default", chat_template=template,
        num_additional_image_tokens=1,
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(seed)
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**TOWER, image_size=SIDE, patch_size=PATCH),
        text_config=transformers.LlamaConfig(
            **TOWER, vocab_size=len(tokenizer), max_position_embeddings=256,
            bos_token_id=1, eos_token_id=2, pad_token_id=0,
        ),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )  # fmt: skip
    return save(transformers.LlavaForConditionalGeneration(config), folder)


def save_qwen(folder: Path) -> Path:
    """A new folder with a Qwen2-VL, whose pictures keep their proportions."""
    import torch
    import transformers

    special = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = words_tokenizer(*special)
    if transformers.__version__.startswith("4."):
        tokenizer.__class__ = transformers.Qwen2TokenizerFast  # the only one that its processor takes
    start, end, image, video = tokenizer.convert_tokens_to_ids(special)
    picture = "<|vision_start|> <|image_pad|> <|vision_end|> "
    images = transformers.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=16 * 28 * 28)
    videos = transformers.Qwen2VLVideoProcessor()
    transformers.Qwen2VLProcessor(
        images, tokenizer, videos, chat_template=TEMPLATE.replace("<image> ", picture)
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.Qwen2VLConfig(
        text_config={
            **TOWER, "vocab_size": len(tokenizer), "num_key_value_heads": 2, "max_position_embeddings": 512,
            "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
            "rope_scaling": {"type": "mrope", "rope_type": "default", "mrope_section": [1, 1, 2]},
        },
        vision_config={"depth": 1, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "patch_size": 14},
        image_token_id=image, video_token_id=video, vision_start_token_id=start, vision_end_token_id=end,
    )  # fmt: skip
    return save(transformers.Qwen2VLForConditionalGeneration(config), folder)

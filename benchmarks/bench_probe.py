"""Linear probes with their search for the best weight decay, against CLIP benchmark and scikit-learn.

CLIP benchmark needs a folder of its own:

pip install --no-deps --target DIR clip-benchmark==1.6.2 'numpy<2.4'
OMP_NUM_THREADS=1 python benchmarks/bench_probe.py --peer DIR [--workers 4]

Its linear probe asserts a GPU. Here it runs as it is coded, with a device that answers to that name and computes on the
CPU, in float32, on features that are there already. It and testbed take turns. The features are those of the 1,797
digits (1,006 to train on, 251 to validate on, 540 to test): their pixels, and rectified random projections of them. Its
DataLoader has no workers unless told otherwise; its own default is 4, which takes longer.

The classifiers of both begin with the same numbers. It shuffles the training samples once more before; so testbed is
run on them twice, in that order and in their own.

The logistic regression is compared with the same search by scikit-learn's LogisticRegression(max_iter=1000).
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
import torch
from paired import machine, seconds

from testbed.data.sets.digits import load_digits, split_indices
from testbed.tasks.probe.fit import Probe, fit_probe, probe_logits
from testbed.tasks.probe.spec import ProbeSpec, find_peak, split_validation, weight_decays

# Reads "FOLDER SEED WORKERS" from its input, and answers with seconds, test accuracy and the weight decay.
PEER = """
import contextlib, io, json, sys, time, warnings
warnings.filterwarnings("ignore")
import torch
from clip_benchmark.metrics import linear_probe

class Cpu(str):
    __hash__ = str.__hash__
    def __eq__(self, other):
        return other == "cuda" or str.__eq__(self, other)

torch.nn.Module.cuda = lambda self, *given: self
torch.Tensor.cuda = lambda self, *given, **named: self
for line in sys.stdin:
    folder, seed, workers = line.split()
    torch.manual_seed(int(seed))
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = linear_probe.evaluate(None, None, None, -1, 64, int(workers), 0.1, 10, "features", int(seed), folder,
            Cpu("cpu"), val_dataloader=True, normalize=True, amp=False, verbose=False)
    print(json.dumps([time.perf_counter() - start, found["lp_acc1"], found["weight_decay"]]), flush=True)
"""

Split = tuple[torch.Tensor, torch.Tensor]


def splits(width: int) -> tuple[Split, Split, Split]:
    """Features of length 1 and labels of the digits, to train on, to validate on and to test."""
    images, labels = load_digits()
    pixels = torch.from_numpy(images.reshape(-1, 64).copy()).float() / 255
    if width != 64:
        pixels = (pixels @ torch.randn(64, width, generator=torch.Generator().manual_seed(width))).relu()
    features, targets = torch.nn.functional.normalize(pixels, dim=1), torch.from_numpy(labels)
    train, test = (torch.tensor(split_indices(split)) for split in ("train", "test"))
    kept, held = (train[rows] for rows in split_validation(len(train), 0.2, 0))
    train_set, validation, tested = ((features[rows], targets[rows]) for rows in (kept, held, test))
    return train_set, validation, tested


def accuracy(probe: Probe, test: Split) -> float:
    """Top-1 of a probe, in percent."""
    return 100 * float((probe_logits(test[0], probe).argmax(1) == test[1]).double().mean())


def by_scikit_learn(train: Split, held: Split, test: Split) -> float:
    """Test accuracy of the same search with scikit-learn, in percent."""
    from sklearn.linear_model import LogisticRegression

    grid = weight_decays("lbfgs")
    (features, targets), (held_features, held_targets) = ([array.numpy() for array in split] for split in (train, held))

    def validate(indices: list[int]) -> list[float]:
        fits = [LogisticRegression(C=1 / grid[index], max_iter=1000).fit(features, targets) for index in indices]
        return [fit.score(held_features, held_targets) for fit in fits]

    peak, _ = find_peak(len(grid), validate)
    both = [torch.cat(pair).numpy() for pair in zip(train, held, strict=True)]
    best = LogisticRegression(C=1 / grid[peak], max_iter=1000).fit(*both)
    return 100 * float(best.score(test[0].numpy(), test[1].numpy()))


def against_clip_benchmark(peer: subprocess.Popen[str], width: int, seeds: int, workers: int) -> dict[str, Any]:
    """Seconds and accuracies of both, one seed after another."""
    assert peer.stdin is not None
    assert peer.stdout is not None
    train, held, test = splits(width)
    runs: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "features"
        place.mkdir()
        for name, (features, targets) in (("train", train), ("val", held), ("test", test)):
            torch.save(features, place / f"features_{name}.pt")
            torch.save(targets, place / f"targets_{name}.pt")
        fit_probe(*train, 10, ProbeSpec(), held)  # uncounted
        for seed in range(seeds):
            print(folder, seed, workers, file=peer.stdin, flush=True)
            peer_seconds, peer_accuracy, peer_decay = json.loads(peer.stdout.readline())
            spec, fitted = ProbeSpec(seed=seed), []
            ours = seconds(lambda spec=spec, fitted=fitted: fitted.append(fit_probe(*train, 10, spec, held)))  # type: ignore[misc]
            order = torch.randperm(len(train[0]), generator=torch.Generator().manual_seed(seed))
            alike = fit_probe(train[0][order], train[1][order], 10, spec, held)
            runs.append(
                {
                    "testbed_s": ours,
                    "peer_s": peer_seconds,
                    "ratio": peer_seconds / ours,
                    "peer_top1": 100 * peer_accuracy,
                    "same_order_top1": accuracy(alike, test),
                    "own_order_top1": accuracy(fitted[0], test),
                    "same_weight_decay": alike.weight_decay == peer_decay,
                }
            )
    row = {name: statistics.median(run[name] for run in runs) for name in ("testbed_s", "peer_s", "ratio")}
    row |= {name: statistics.mean(run[name] for run in runs) for name in runs[0] if name not in row}
    row["largest_difference"] = max(abs(run["peer_top1"] - run["same_order_top1"]) for run in runs)
    return {"width": width, "workers": workers, **row}


def against_scikit_learn(width: int, repeats: int) -> dict[str, Any]:
    """Seconds and accuracies of both searches for the penalty."""
    train, held, test = splits(width)
    spec, probes, peers = ProbeSpec(method="lbfgs"), [], []
    pairs = []
    for _ in range(repeats):
        ours = seconds(lambda: probes.append(fit_probe(*train, 10, spec, held)))
        pairs.append((ours, seconds(lambda: peers.append(by_scikit_learn(train, held, test)))))
    return {
        "width": width,
        "testbed_s": statistics.median(ours for ours, _ in pairs),
        "peer_s": statistics.median(other for _, other in pairs),
        "ratio": statistics.median(other / ours for ours, other in pairs),
        "peer_top1": peers[0],
        "testbed_top1": accuracy(probes[0], test),
    }


@click.command()
@click.option("--peer", type=click.Path(path_type=Path, exists=True), help="The folder that has clip-benchmark.")
@click.option("--width", "widths", multiple=True, default=(64, 128, 512), show_default=True, help="Of the features.")
@click.option("--seeds", default=5, show_default=True)
@click.option("--workers", default=0, show_default=True, help="Of CLIP benchmark's DataLoader.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(peer: Path | None, widths: tuple[int, ...], seeds: int, workers: int, as_json: bool) -> None:
    """Prints wall times and their ratio (medians over seeds), and test accuracies (means) in percent."""
    click.echo(machine(), err=as_json)
    rows: dict[str, list[dict[str, Any]]] = {"lbfgs against scikit-learn": [], "adamw against CLIP benchmark": []}
    rows["lbfgs against scikit-learn"] = [against_scikit_learn(width, 3) for width in widths]
    if peer is not None:
        environment = {**os.environ, "PYTHONPATH": str(peer)}
        with subprocess.Popen(
            [sys.executable, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            for width in widths:
                rows["adamw against CLIP benchmark"].append(against_clip_benchmark(process, width, seeds, workers))
            assert process.stdin is not None
            process.stdin.close()
    if as_json:
        click.echo(json.dumps(rows))
        return
    for title, found in rows.items():
        for row in found:
            values = (
                f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
            )
            click.echo(f"{title}: " + "  ".join(values))


if __name__ == "__main__":
    main()

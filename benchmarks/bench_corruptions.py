"""The 19 corruptions of ImageNet-C against the package imagecorruptions, per image of 224 × 224 pixels, on one core.

The package needs an environment of its own:

python -m venv ENV
ENV/bin/pip install 'setuptools<80' 'numpy<2' 'scikit-image==0.20.*' imagecorruptions
OMP_NUM_THREADS=1 python benchmarks/bench_corruptions.py --reference ENV/bin/python [--device cuda]

Both run in turn, corruption by corruption and severity by severity. The package takes and returns uint8 images of
numpy; testbed takes and returns batches of float tensors, which is what models are fed with. So two ratios are printed:
against the package alone, and against the package between such tensors, where a setting would call it. On a GPU there
is nothing to compare with: images per second are printed.

On a machine whose cores others use, too, a batch is interrupted more often than a single image, which is over sooner.
With ``--cpu-time`` both are measured by the time that their processes computed.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import torch
from paired import machine, seconds

from testbed.corruptions import IMAGENET_C, SEVERITIES, corrupt
from testbed.errors import UnsupportedError

SIZE = 224

# Takes a picture and the name of a clock. Reads "NAME SEVERITY" from its input, and answers with the seconds that one
# image took, alone and between tensors.
REFERENCE = """
import sys, time, warnings
warnings.filterwarnings("ignore")
import numpy as np, cv2
import imagecorruptions.corruptions as published
from imagecorruptions import corrupt
from skimage.filters import gaussian
cv2.setNumThreads(1)
published.gaussian = lambda image, *given, multichannel=False, **options: gaussian(
    image, *given, channel_axis=-1 if multichannel else None, **options)
image = np.load(sys.argv[1])
clock = getattr(time, sys.argv[2])
tensor = np.ascontiguousarray(image.transpose(2, 0, 1)).astype(np.float32) / np.float32(255)
for line in sys.stdin:
    name, severity = line.split()
    start = clock()
    made = corrupt(image, corruption_name=name, severity=int(severity))
    alone = clock() - start
    start = clock()
    given = np.ascontiguousarray((tensor * np.float32(255) + np.float32(0.5)).astype(np.uint8).transpose(1, 2, 0))
    np.ascontiguousarray(made.transpose(2, 0, 1)).astype(np.float32) / np.float32(255)
    print(alone, alone + clock() - start, flush=True)
"""


def photo() -> Any:
    """A real photo, uint8 [224, 224, 3]."""
    import numpy as np
    from PIL import Image
    from skimage import data

    return np.asarray(Image.fromarray(data.astronaut()).resize((256, 256)).crop((16, 16, 240, 240)))


@click.command()
@click.option("--reference", type=click.Path(path_type=Path), help="The Python that has imagecorruptions.")
@click.option("--device", default="cpu", show_default=True)
@click.option("--batch", default=8, show_default=True, help="Images in a batch.")
@click.option("--repeats", default=5, show_default=True, help="For each corruption and severity.")
@click.option("--only", multiple=True, help="Only these corruptions.")
@click.option("--cpu-time", is_flag=True, help="Measure the time of the processor, not that of the clock.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    reference: Path | None,
    device: str,
    batch: int,
    repeats: int,
    only: tuple[str, ...],
    cpu_time: bool,
    as_json: bool,
) -> None:
    """Prints milliseconds per image and their ratio for each corruption, medians over repetitions and severities."""
    import tempfile

    import numpy as np

    clock = "process_time" if cpu_time else "perf_counter"
    images = torch.from_numpy(photo().copy()).permute(2, 0, 1).float().div(255)
    images = images.expand(batch, -1, -1, -1).contiguous().to(device)
    click.echo(f"{machine()}, batches of {batch} on {device}, {clock}", err=as_json)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "photo.npy", photo())
        peer = _start(reference, Path(folder) / "photo.npy", clock) if reference else None
        for name in only or IMAGENET_C:
            row = _compare(name, images, peer, repeats, clock)
            if row is not None:
                rows.append(row)
                if not as_json:
                    click.echo(_line(row))
        if peer is not None:
            peer.communicate()
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios)) if ratios else None
    if as_json:
        click.echo(
            json.dumps({"device": device, "batch": batch, "corruptions": rows, "geometric_mean": mean}, indent=1)
        )
    elif mean is not None:
        click.echo(f"geometric mean of the ratios {mean:.1f}, the least {min(ratios):.2f}")


def _start(python: Path, image: Path, clock: str) -> subprocess.Popen[str]:
    command = [str(python), "-c", REFERENCE, str(image), clock]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(peer: subprocess.Popen[str] | None, name: str, severity: int) -> tuple[float, float]:
    if peer is None:
        return math.nan, math.nan
    assert peer.stdin is not None
    assert peer.stdout is not None
    peer.stdin.write(f"{name} {severity}\n")
    peer.stdin.flush()
    answer = peer.stdout.readline()
    if not answer:
        sys.exit("the reference ended; see its error above")
    alone, between = answer.split()
    return float(alone), float(between)


def _compare(
    name: str, images: torch.Tensor, peer: subprocess.Popen[str] | None, repeats: int, clock: str
) -> dict[str, Any] | None:
    seeds = list(range(len(images)))

    def work(severity: int) -> None:
        corrupt(images, name, severity, seeds)
        if images.is_cuda:
            torch.cuda.synchronize()

    medians = []
    try:
        for severity in SEVERITIES:
            work(severity)
            _ask(peer, name, severity)
            triples = [
                (seconds(partial(work, severity), clock) / len(images), *_ask(peer, name, severity))
                for _ in range(repeats)
            ]
            medians.append([statistics.median(column) * 1e3 for column in zip(*triples, strict=True)])
    except UnsupportedError as error:
        click.echo(f"{name}: {error}", err=True)
        return None
    ours, alone, between = (statistics.fmean(column) for column in zip(*medians, strict=True))
    if peer is None:
        return {"corruption": name, "ms": ours, "ratio": None}
    return {
        "corruption": name,
        "ms": ours,
        "alone_ms": alone,
        "ratio": alone / ours,
        "between_ms": between,
        "between_ratio": between / ours,
    }


def _line(row: dict[str, Any]) -> str:
    own = f"{row['corruption']:18} testbed {row['ms']:8.3f} ms"
    if row["ratio"] is None:
        return f"{own}  {1e3 / row['ms']:10,.0f} images/s"
    return (
        f"{own}  imagecorruptions {row['alone_ms']:8.2f} ms  {row['ratio']:7.2f} ×"
        f"   between tensors {row['between_ms']:8.2f} ms  {row['between_ratio']:7.2f} ×"
    )


if __name__ == "__main__":
    main()

"""``testbed corrupt``: writes corrupted copies of a folder of images, in the layout of the published ImageNet-C."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from testbed.console.options import EXIT_ERROR, ManyWords, data_root_option, plain_command
from testbed.console.output import count
from testbed.console.streams import show_in_place
from testbed.errors import DataError, SampleError
from testbed.inputs import Inputs, active, use_in_this_thread
from testbed.process.processes import begin, process_context

CHUNK = 16  # images per batch


@dataclass(frozen=True)
class Job:
    """The corruptions to apply to each image, and how to write them.

    Attributes:
        source: The input folder.
        target: The output folder.
        cells: Corruptions and severities.
        size: The side of the center crop after resizing; 0 leaves images unchanged.
        form: ``"png"`` or ``"jpeg"``.
        quality: JPEG quality.
        seed: The same as for ``testbed run``.
    """

    source: Path
    target: Path
    cells: tuple[tuple[str, int], ...]
    size: int
    form: str
    quality: int
    seed: int

    def path(self, name: str, corruption: str, severity: int) -> Path:
        """The output path of an image, with the suffix of the output format."""
        suffixes = (".png",) if self.form == "png" else (".jpg", ".jpeg")
        place = self.target / corruption / str(severity) / name
        return place if place.suffix.lower() in suffixes else place.with_name(place.name + suffixes[0])


@plain_command
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--corruptions", cls=ManyWords, metavar="NAME", help="The corruptions.  [default: the 19 of ImageNet-C]")
@click.option("--severities", cls=ManyWords, type=click.IntRange(1, 5), help="Severities from 1 to 5.  [default: all]")
@click.option(
    "--size",
    type=click.IntRange(0),
    default=224,
    show_default=True,
    help="Resize the shorter side to 8/7 of this and crop the central square of this size, as models for ImageNet do; 0"
    " leaves images unchanged.",
)
@click.option(
    "--format", "form", type=click.Choice(["png", "jpeg"]), default="png", show_default=True, help="The file format."
)
@click.option(
    "--quality", type=click.IntRange(1, 100), default=85, show_default=True, help="The quality of JPEG files."
)
@click.option("--seed", default=0, show_default=True, help="The same as for testbed run.")
@click.option("--processes", type=click.IntRange(1), help="The number of processes.  [default: one for each core]")
@data_root_option
def command(
    source: Path,
    target: Path,
    corruptions: Sequence[str],
    severities: Sequence[int],
    size: int,
    form: str,
    quality: int,
    seed: int,
    processes: int | None,
) -> int:
    """Write corrupted copies of a folder of images.

    A corrupted image of SOURCE is TARGET/CORRUPTION/SEVERITY/NAME.

    Each image's random numbers depend only on its path and the seed. They are the same as in the setting
    imagenet-c.CORRUPTION.SEVERITY_in-memory (imagenet-c-bar.… for its corruptions), and so are the images, except for
    elastic_transform: the settings use its affine form. Existing files are left unchanged, so the same command resumes
    an interrupted run.

    \b
    Example:
      testbed corrupt photos/ photos-c/ --corruptions fog snow --severities 1 3 5
    """
    job = _job(source, target, corruptions, severities, size, form, quality, seed)
    names = _images(source)
    written, kept, failed = 0, 0, []
    for wrote, skipped, errors in _work(job, names, processes or os.cpu_count() or 1):
        written, kept = written + wrote, kept + skipped
        failed += errors
        show_in_place(f"{written + kept:,} of {len(names) * len(job.cells):,} images")
    click.echo(err=True)
    for error in failed:
        click.echo(f"Unreadable: {error}", err=True)
    there = f"; {kept:,} already existed" if kept else ""
    click.echo(f"{count(written, 'image')} written to {target}{there}")
    return EXIT_ERROR if failed else 0


def _job(
    source: Path, target: Path, names: Sequence[str], severities: Sequence[int], size: int, form: str, *rest: int
) -> Job:
    """The job, validated before any image is read."""
    from testbed.corruptions import IMAGENET_C, SEVERITIES, Corruption

    if not source.is_dir():
        raise DataError(f"{source} is not a folder; give a folder of images")
    inside = target.resolve()
    if inside == source.resolve() or source.resolve() in inside.parents:
        raise DataError(f"{target} is inside {source}, the input folder; give another output folder")
    cells = []
    for name in names or IMAGENET_C:
        for severity in sorted(set(severities)) or SEVERITIES:
            Corruption(name, severity).require()
            cells.append((name, severity))
    quality, seed = rest
    return Job(source, target, tuple(cells), size, form, quality, seed)


def _images(source: Path) -> list[str]:
    from testbed.data.decode import IMAGE_EXTENSIONS
    from testbed.data.formats.image_folder import image_files
    from testbed.data.left_out import LeftOutLog

    leaving = LeftOutLog()
    names = sorted(image_files(source, leaving))
    for item in leaving.found():
        click.echo(f"Data of {source}: {item}", err=True)
    if not names:
        raise DataError(f"{source} contains no images (extensions {' '.join(IMAGE_EXTENSIONS)})")
    return names


def _work(job: Job, names: Sequence[str], processes: int) -> Iterator[tuple[int, int, list[str]]]:
    """Yields the counts of each finished chunk."""
    chunks = [names[start : start + CHUNK] for start in range(0, len(names), CHUNK)]
    if processes == 1 or len(chunks) == 1:
        yield from (corrupt_files(job, chunk) for chunk in chunks)
        return
    context = process_context(["testbed.extensions.exchange.commands.corrupt"])
    pool = ProcessPoolExecutor(min(processes, len(chunks)), context, _set_up_worker, (active(), dict(os.environ)))
    try:
        for future in [pool.submit(corrupt_files, job, chunk) for chunk in chunks]:
            yield future.result()
    finally:  # after Ctrl-C or an error, cancel the chunks that have not started
        pool.shutdown(cancel_futures=True)


def _set_up_worker(inputs: Inputs, environment: Mapping[str, str]) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # with SIGTERM
    begin(environment)
    use_in_this_thread(inputs)
    torch.set_num_threads(1)


def corrupt_files(job: Job, names: Sequence[str]) -> tuple[int, int, list[str]]:
    """Corrupts some images; returns how many were written, how many already existed, and the read errors."""
    import torch

    wanted = [name for name in names if not all(job.path(name, *cell).exists() for cell in job.cells)]
    written, kept, errors = 0, (len(names) - len(wanted)) * len(job.cells), []
    images: dict[str, Any] = {}
    for name in wanted:
        try:
            images[name] = _read(job, name)
        except SampleError as error:
            errors.append(str(error))
    groups = [list(images)] if job.size else [[name] for name in images]
    for group in groups if images else []:
        batch = torch.stack([images[name] for name in group])
        for cell in job.cells:
            fresh = [place for place, name in enumerate(group) if not job.path(name, *cell).exists()]
            kept += len(group) - len(fresh)
            if fresh:
                _write(job, [group[place] for place in fresh], batch[fresh], *cell)
                written += len(fresh)
    return written, kept, errors


def _read(job: Job, name: str) -> Any:
    """An image as a float tensor [3, H, W] in [0, 1]."""
    from torchvision.transforms import functional

    from testbed.data.decode import decode_file
    from testbed.models.base.transform import StandardTransform

    image = decode_file(job.source / name)
    return StandardTransform(job.size * 8 // 7, job.size)(image) if job.size else functional.to_tensor(image)


def _write(job: Job, names: Sequence[str], images: Any, corruption: str, severity: int) -> None:
    import torch
    from PIL import Image

    from testbed.corruptions import IMAGENET_C_BAR, Corruption
    from testbed.data.perturbation import sample_seed
    from testbed.paths import write_atomically

    family = "imagenet-c-bar" if corruption in IMAGENET_C_BAR else "imagenet-c"
    key = f"{family}.{corruption}.{severity}_in-memory"
    corrupted = Corruption(corruption, severity)(images, [sample_seed(key, name, job.seed) for name in names])
    eight = corrupted.mul(255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
    for name, pixels in zip(names, eight, strict=True):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, job.form.upper(), **({"quality": job.quality} if job.form == "jpeg" else {}))
        path = job.path(name, corruption, severity)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, file.getvalue())
        except OSError as error:
            raise DataError(
                f"{path} cannot be written: {error.strerror}; run the same command again to resume"
            ) from error

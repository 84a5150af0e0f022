"""``testbed export webdataset``: writes a data set in CLIP benchmark's webdataset format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from testbed.console.options import data_root_option, plain_command, plugin_option, use
from testbed.console.output import count
from testbed.console.streams import show_in_place
from testbed.errors import DataError
from testbed.inputs import Inputs

if TYPE_CHECKING:
    from testbed.data.source import ImageSource
    from testbed.eval_settings.eval_setting_base import EvalSetting


class ExportRequest(NamedTuple):
    """A data set to write, and the class names and templates of its setting."""

    source: ImageSource
    kind: str
    class_names: Sequence[str] | None
    templates: Any


@plain_command
@click.option("-d", "--dataset", required=True, metavar="NAME", help="An eval setting, such as digits or cifar10.")
@click.option("-s", "--split", default="test", show_default=True, help="The split, and the name of its folder.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="The output folder; it may contain other splits.",
)
@click.option(
    "--image-format",
    type=click.Choice(["webp", "png", "jpg"]),
    default="webp",
    show_default=True,
    help="The image format; webp and png are lossless.",
)
@click.option(
    "--max-count",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="The maximum number of images in a shard.",
)
@click.option(
    "--max-size",
    type=click.IntRange(1),
    default=1_000_000_000,
    show_default=True,
    help="A shard with this many bytes of images is full.",
)
@click.option("--retrieval", is_flag=True, help="Expect images with captions.  [default: the data set's kind]")
@click.option("--multilabel", is_flag=True, help="Expect images with several labels.  [default: the data set's kind]")
@click.option("--overwrite", is_flag=True, help="Replace an existing split.")
@plugin_option
@data_root_option
@click.option("-r", "--dataset-root", "dataset_root", metavar="DIR", help="The same as --data-root.")
def command(
    dataset: str,
    split: str,
    output: Path,
    image_format: str,
    max_count: int,
    max_size: int,
    retrieval: bool,
    multilabel: bool,
    overwrite: bool,
    plugins: Sequence[str],
    dataset_root: str | None,
) -> int:
    """Write a data set in CLIP benchmark's webdataset format.

    The eval setting wds/NAME can read it if the folder is below the data root. The output is deterministic. The options
    have the names of clip_benchmark_export_wds.

    \b
    Example:
      testbed export webdataset -d digits -s test -o data/wds_digits
    """
    from testbed.extensions.exchange.webdataset_export import export

    if dataset_root:
        use(Inputs.from_environment().but(data_root=dataset_root))
    wanted = find(dataset, split, plugins)
    _check_kind(dataset, wanted.kind, retrieval, multilabel)
    templates = wanted.templates
    if isinstance(templates, Mapping):
        click.echo("The per-class prompts of this setting are not exported: the format cannot hold them.", err=True)
        templates = None
    total = len(wanted.source)

    def progress(done: int) -> None:
        if done % 100 == 0 or done == total:
            show_in_place(f"{done:,} of {total:,} images")
        if done == total:
            click.echo(err=True)

    shards = export(
        wanted.source,
        output,
        split,
        wanted.kind,
        wanted.class_names,
        templates,
        image_format,
        max_count,
        max_size,
        overwrite,
        progress,
    )
    click.echo(f"{count(total, 'image')} written to {output / split} in {count(shards, 'shard')} ({wanted.kind})")
    return 0


def _check_kind(name: str, kind: str, retrieval: bool, multilabel: bool) -> None:
    for flag, given in (("retrieval", retrieval), ("multilabel", multilabel)):
        if given and kind != flag:
            raise DataError(f"--{flag} was given, but {name} is a {kind} data set; omit the option")


def find(name: str, split: str, plugins: Sequence[str] = ()) -> ExportRequest:
    """Finds the samples of an eval setting, or of another split of its data set.

    Args:
        name: The setting.
        split: The split.
        plugins: Files that define settings.

    Raises:
        UnknownNameError: If the setting is unknown.
        DefinitionError: If its data set has no such split.
        DataError: If the data are missing or cannot be written in the format.
    """
    from testbed.data.source import with_images
    from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS, parse_name
    from testbed.registry import registry

    registry.load(list(plugins))
    parsed = parse_name(name)
    if parsed is None:
        return _of_setting(registry.get_eval_setting(name), split)
    benchmark = BENCHMARKS.dataset(parsed.dataset)
    if split not in benchmark.splits:
        raise DataError(f"{benchmark.name} has no split {split!r}; its splits are {', '.join(benchmark.splits)}")
    language = parsed.language or benchmark.languages[0]
    source = with_images(benchmark.dataset(split, language).open())
    return ExportRequest(
        source,
        benchmark.kind,
        benchmark.class_names(language) if benchmark.class_names is not None else source.class_names,
        benchmark.templates(language) if benchmark.templates is not None else None,
    )


def _of_setting(setting: EvalSetting, split: str) -> ExportRequest:
    """The samples of a setting of any family that uses its data set unchanged."""
    from testbed.data.sets.imagenet import SelectedSamples

    if setting.perturbation or setting.adversarial_attack or setting.transform is not None:
        raise DataError(
            f"{setting.name} changes the images of its data set, which cannot be exported; export the data set itself"
        )
    if setting.class_groups is not None:
        raise DataError(f"{setting.name} groups classes, which the format cannot express; export its data set")
    dataset: Any = setting.dataset
    if hasattr(dataset, "with_split"):
        dataset = dataset.with_split(split)
    source = dataset.open()
    if setting.idx_subsample_list is not None or setting.samples.first:
        positions = setting.samples.positions(source)
        source = SelectedSamples(
            source, positions, [source.targets[number] for number in positions], source.class_names
        )
    names, templates = source.class_names, None
    if setting.prompts.templates is not None:
        prompts = setting.prompts.spec(source.class_names)
        names, templates = prompts["class_names"], prompts["templates"]
        if setting.class_sublist is not None:
            names = [names[number] for number in setting.class_sublist]
    return ExportRequest(source, setting.task, names, templates)

"""``testbed run --download``: downloads a run's data sets before it begins."""

from __future__ import annotations

from collections.abc import Sequence

import click

from testbed.errors import DataError, DefinitionError


def download_missing(settings: Sequence[str], url: str) -> None:
    """Downloads the splits that settings need; prints their sizes, and which data sets cannot be downloaded.

    Args:
        settings: Canonical names.
        url: URL of webdatasets; empty for those on the hub.
    """
    from testbed.data.libraries.downloads import download

    for dataset, split in dict.fromkeys(needed for setting in settings for needed in _needed(setting)):
        try:
            if not download(dataset, split, url, lambda line: click.echo(line, err=True)):
                click.echo(f"note: testbed cannot download {dataset}; it must be below the data root", err=True)
        except (DataError, DefinitionError) as error:
            click.echo(f"note: {dataset} was not downloaded: {error}", err=True)


def _needed(setting: str) -> list[tuple[str, str]]:
    """Returns a setting's data set with each split that it reads; nothing without a named data set."""
    from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS, parse_name
    from testbed.eval_settings.benchmark_families.benchmark_names import LINEAR_PROBE

    name = parse_name(setting)
    if name is None:
        return []
    declared = BENCHMARKS.declared(name.dataset)
    splits = [name.split or (declared.splits[0] if declared is not None else "test")]
    if name.task == LINEAR_PROBE:
        splits += [name.train or "train", *([name.validation] if name.validation is not None else [])]
    return [(name.dataset, split) for split in splits]

"""Runs CLIP-CC-Bench's configuration files: translates them into options of a run, and writes its result files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.run.part import RunOption, RunPart, RunRequest
from testbed.console.options import Option
from testbed.console.output import count
from testbed.errors import DefinitionError, RunError
from testbed.inputs import active
from testbed.paths import expanded

if TYPE_CHECKING:
    from testbed.data.sets.clip_cc_config import ClipCcConfig
    from testbed.db.store import Store
    from testbed.entities import Result
    from testbed.execution.progress import Progress
    from testbed.execution.report import Outcome, Report
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog

SETTING = "clip-cc-bench"
DEFAULT_CHUNKING = ("nltk", "auto")  # the default of a setting


@dataclass(frozen=True)
class ClipCcRun(RunPart):
    """A run of a configuration file: its translation, and the files written after the run.

    Attributes:
        config: The file's content.
        models: Words for ``--models``.
        results: The folder for CLIP-CC-Bench's files.
        inputs: Locations of the references and the predictions, for `testbed.inputs.Inputs.but`.
    """

    config: ClipCcConfig
    models: tuple[str, ...]
    results: Path
    inputs: Mapping[str, Any]

    @property
    def form(self) -> str:
        """The layout of its result files, see `testbed.extensions.clip_cc_bench.clip_cc_forms.FORMS`."""
        from testbed.extensions.clip_cc_bench.clip_cc_forms import FIRST, TODAY

        return TODAY if self.config.section == "embedding_model" else FIRST

    @property
    def scale(self) -> str:
        """The scale of its result files: CLIP-CC-Bench's current code leaves cosines unchanged."""
        from testbed.extensions.clip_cc_bench.clip_cc_forms import TODAY

        return "raw" if self.form == TODAY else "unit"

    def changed(self, request: RunRequest) -> RunRequest:
        """Returns the request with the models and options of the file."""
        return request.but(models=self.models, options=self.options(request.options))

    def settings(self, catalog: Catalog, scorers: Sequence[str] = ()) -> list[str]:
        """Returns the settings that compare captions as configured in the file:
        ``clip-cc-bench[.coarse|.METHOD]@DECODER``.

        Args:
            catalog: Catalog to look scorers up in.
            scorers: Names, patterns or collections of decoders in addition to the file's.
        """
        from testbed.registry.select import select

        fine = self.config.decoder.fine_grained
        word = "" if fine.chunking_method in DEFAULT_CHUNKING else f".{fine.chunking_method}"
        how = f"{SETTING}{word if fine.enabled else '.coarse'}"
        decoders = [self.config.decoder.name, *select(catalog.models, catalog.model_collections, scorers)]
        return [f"{how}@{decoder}" for decoder in dict.fromkeys(decoders)]

    def options(self, given: RunOptions) -> RunOptions:
        """Returns the options of a run, with the file's decoder, processing and paths.

        Raises:
            RunError: If it names a device that is not available.
        """
        processing = self.config.processing
        fields: dict[str, Any] = {
            "plugins": (*given.plugins, str(self.config.path.resolve())),
            "clear_cache_interval": processing.clear_cache_interval,
            "progress_interval": processing.progress_interval,
            "inputs": (given.inputs or active()).but(**self.inputs),
        }
        if given.gpus is None and given.cpu_processes is None:
            fields |= _device(self.config)
        return replace(given, **fields)

    def watching(self, progress: Progress, options: RunOptions) -> AbstractContextManager[Progress]:
        """Also writes the run's reports to its log file, unless only part of the samples run."""
        from testbed.extensions.clip_cc_bench.clip_cc_files import short_name
        from testbed.extensions.clip_cc_bench.clip_cc_forms import FORMS
        from testbed.extensions.clip_cc_bench.run_log import logged

        if options.limit:
            return nullcontext(progress)
        folder = self.results / FORMS[self.form].logs(short_name(self.config.decoder.name))
        return logged(self.config, folder, progress, options.progress_interval)

    def ended(self, report: Report, results: Sequence[Result]) -> None:
        """Writes the outcomes to the log file."""
        from testbed.extensions.clip_cc_bench.run_log import log_outcomes

        log_outcomes(report, results)

    def printed(self, catalog: Catalog, options: RunOptions, store: Store, report: Report) -> None:
        """Writes CLIP-CC-Bench's files."""
        export_run(store, report.finished, self.results, options.limit is not None, self.scale, self.form)


def _part(given: Mapping[str, Any], request: RunRequest) -> ClipCcRun | None:
    path, base_dir = given["clip_cc"], given["base_dir"]
    if path is None:
        if base_dir is not None:
            raise click.UsageError("--base-dir requires --clip-cc")
        return None
    return translate(path, base_dir, request.models, click.get_current_context().params["predictions"])


def translate(path: Path, base_dir: Path | None, models: Sequence[str], predictions: str | None) -> ClipCcRun:
    """Reads a configuration file.

    Args:
        path: The file.
        base_dir: The folder that its paths are relative to; None infers it from the file's location.
        models: Names of captioners, each a file of predictions; empty means those of the file. Words with a colon
            (``replay:…``) or ending in ``.json`` are used as they are, a text file stands for the names in it.
        predictions: A folder of predictions to use instead of the file's.

    Raises:
        DefinitionError: If the file is invalid, or no captioners are given.
    """
    from testbed.data.sets.clip_cc_config import read_config

    if base_dir is not None and not expanded(base_dir).is_dir():
        raise DefinitionError(f"--base-dir {base_dir}: no such folder")
    config = read_config(path)
    words = _words(models) or list(config.models_to_evaluate)
    if not words:
        raise DefinitionError(f"{config.path} names no captioners (models_to_evaluate); give --models NAME…")
    paths = config.data_paths
    folder = expanded(predictions) if predictions else config.resolved(paths.predictions_dir, base_dir)
    return ClipCcRun(
        config,
        tuple(_model(word, folder.absolute()) for word in words),
        config.resolved(paths.results_base_dir, base_dir),
        {
            "clip_cc_base": base_dir,
            "clip_cc_ground_truth": config.resolved(paths.ground_truth_file, base_dir),
            "predictions": folder,
        },
    )


def _words(models: Sequence[str]) -> list[str]:
    """The words, with text files replaced by their names."""
    from testbed.registry.select import read_names

    words = []
    for word in models:
        words += read_names(Path(word)) if word.endswith(".txt") and Path(word).is_file() else [word]
    return words


def _model(word: str, folder: Path) -> str:
    """The model behind the name of a captioner."""
    from testbed.data.formats.text_records import SUFFIXES

    if ":" in word:
        return word
    if word.endswith(SUFFIXES):
        return f"replay:{word}"
    lines = folder / f"{word}.jsonl"
    return f"replay:{lines if lines.is_file() else folder / f'{word}.json'}"


def _device(config: ClipCcConfig) -> dict[str, Any]:
    """The options of a run for the file's device."""
    from testbed.execution.resources import visible_gpus

    device = config.processing.device
    if device is None:
        return {}
    if device == "cpu":
        return {"cpu_processes": 1}
    if not device.startswith("cuda"):
        raise RunError(
            f"{config.path}: processing.device is {device}, which testbed does not support; write cpu or cuda:0,"
            " or"
            " omit the key to use what is available"
        )
    visible = visible_gpus()
    wanted = int(device.partition(":")[2] or 0)
    if wanted >= visible:
        found = f"{visible} (numbered from 0)" if visible else "no GPU"
        raise RunError(
            f"{config.path}: processing.device is {device}, but torch sees {found}; write cpu or another one, omit"
            " the"
            " key to use what is available, or give --cpu-processes 1 or --gpus"
        )
    return {"gpus": (wanted,)}


# Results ----------------------------------------------------------------------------------------------------------


def export(
    store: Store,
    folder: Path,
    models: Sequence[str],
    settings: Sequence[str],
    scale: str = "unit",
    first: Collection[int] = (),
    form: str = "decoders",
) -> None:
    """Writes CLIP-CC-Bench's files and prints a summary; see `clip_cc_files.export_clip_cc`.

    Raises:
        StoreError: If there is nothing to write, or it cannot be written.
    """
    from testbed.cli.options.stored import note
    from testbed.extensions.clip_cc_bench.clip_cc_files import export_clip_cc

    written = export_clip_cc(store, folder, models, settings, scale, note, first, form)
    click.echo(
        f"{count(written.captioners, 'evaluation')} by {', '.join(written.decoders)}: {count(written.files, 'file')}"
        f" written to {folder}",
        err=True,
    )


def export_run(
    store: Store,
    outcomes: Sequence[Outcome],
    folder: Path,
    partial: bool = False,
    scale: str = "unit",
    form: str = "decoders",
) -> None:
    """Writes CLIP-CC-Bench's files of a run's captioners, by all decoders that scored them in the same way.

    Skips partial runs, whose files would look like those of all samples and replace them.
    """
    from testbed.extensions.clip_cc_bench.clip_cc_files import settings_beside
    from testbed.registry.references import SettingReference

    if partial:
        click.echo(
            f"note: with --limit nothing is written to {folder}; testbed export clip-cc DIR writes the stored scores",
            err=True,
        )
        return
    scored = [outcome for outcome in outcomes if SettingReference.parse(outcome.setting).judge]
    if not scored:
        click.echo(f"note: no captioner was scored, so nothing is written to {folder}", err=True)
        return
    models = list(dict.fromkeys(outcome.model for outcome in scored))
    own = {outcome.evaluation_id for outcome in scored if outcome.evaluation_id is not None}
    export(store, folder, models, settings_beside(store, [outcome.setting for outcome in scored]), scale, own, form)


_ANY_PATH = click.Path(path_type=Path)
OPTION = RunOption(
    [
        Option(
            ["--clip-cc"],
            heading="Data and checkpoints",
            type=_ANY_PATH,
            metavar="FILE.yaml",
            help="Run a configuration file of CLIP-CC-Bench; models are then names of prediction files.",
        ),
        Option(
            ["--base-dir"],
            heading="Data and checkpoints",
            type=_ANY_PATH,
            metavar="DIR",
            help="With --clip-cc: the folder that its paths are relative to.  [default: above src/configs, else the"
            " file's own]",
        ),
    ],
    _part,
)

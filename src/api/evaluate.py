"""``testbed.evaluate``: models on eval settings, from Python."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.api.data_at_hand import found_settings, notes_of, setting_names, transforms_of
from testbed.api.models_at_hand import INSTEAD, Beside, model_names
from testbed.api.results import Results
from testbed.errors import DefinitionError, RunError
from testbed.inputs import STORED, TURN, AnyPath, Inputs, Preprocessing, using
from testbed.paths import expanded
from testbed.planning.own_names import own_names_of, with_short_names
from testbed.registry import registry
from testbed.registry.folders import settings_of_folders
from testbed.registry.select import select
from testbed.tracing.patches import tracing

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.execution.progress import Progress
    from testbed.graph.options import RunOptions
    from testbed.trackers.mirrors import Mirror


def evaluate(
    models: Any,
    eval_settings: str | Path | EvalSetting | Iterable[str | Path | EvalSetting],
    *,
    transform: Callable[[Any], Any] | None = None,
    name: str | None = None,
    data_root: AnyPath | None = None,
    db: str | Path | None = None,
    plugins: Sequence[AnyPath] = (),
    limit: int | None = None,
    batch_size: int | None = None,
    gpus: Sequence[int] = (),
    workers: int | None = None,
    cpu_processes: int | None = None,
    dtype: str = "float32",
    store_dtype: str | None = None,
    seed: int = 0,
    random_weights: bool = False,
    override: bool = False,
    executor: str = "processes",
    ray_address: str | None = None,
    compile: bool = False,
    channels_last: bool = False,
    decoded_cache: int = 0,
    profile: bool = False,
    image_size: int | tuple[int, int] | None = None,
    mean: tuple[float, float, float] | None = None,
    std: tuple[float, float, float] | None = None,
    interpolation: str | None = None,
    exif: str = STORED,
    payload_url: str | None = None,
    until: float | str | None = None,
    log: Sequence[str] = (),
    raise_on_failure: bool = False,
    progress: bool = True,
) -> Results:
    """Runs models on eval settings, and stores every output and every metric.

    Stored results are not computed again. `docs/running.md` explains the options, which are those of ``testbed run``.

    Args:
        models: Names, patterns, collections, definitions, or models in memory, one or several: networks (an
            ``nn.Module``), torchvision's weights, image classifiers of transformers, fitted classifiers of
            scikit-learn, functions from images to logits, paths of ONNX, ``.pt2`` and TorchScript files; or a mapping
            from names to models in memory.
        eval_settings: Names, patterns, collections, definitions, paths of data, or objects that hold images and labels
            (`docs/python.md`): one, several, or a mapping from display names to objects.
        transform: For models in memory: a function from a PIL image to a tensor, such as torchvision's
            ``weights.transforms()``, timm's ``create_transform(…)`` or an image processor of transformers; a
            ``Normalize`` at its end is applied after corruptions. Default: that of the network's own configuration
            (timm).
        name: Name for the only model that is in memory or in a file. Default: the architecture and six digits of a
            digest of its content; for a file, its stem, made unique in the store.
        data_root: The folder with the data sets. Default: ``$TESTBED_DATA``, or the parent of a folder of images.
        db: The store: a file or a database URL. Default: ``$TESTBED_DB``, else ``testbed.db`` in the working folder.
        plugins: Definition files.
        limit: Maximum number of samples of each setting, evenly spread.
        batch_size: Default: each model's own.
        gpus: Ids of GPUs. Default: all, else the CPU.
        workers: Data-loading processes for each evaluation process.
        cpu_processes: Evaluation processes on the CPU.
        dtype: ``"float32"``, ``"tf32"``, ``"bfloat16"`` or ``"float16"``.
        store_dtype: ``"float16"`` stores outputs computed in float32 at half the size.
        seed: Of perturbations, sampling and random weights.
        random_weights: Whether to build untrained architectures.
        override: Whether to run stored cells again.
        executor: ``"processes"``, ``"inline"``, ``"ray"``, or an installed one. Definitions that exist only in this
            program are always computed in this process.
        ray_address: The Ray cluster, such as ``"10.0.0.1:6379"``. Default: this machine's, else a new one.
        compile: Whether to compile networks by torch.compile.
        channels_last: Whether to keep images and weights in the channels_last layout.
        decoded_cache: Bytes of disk for decoded and transformed images; 0 for none.
        profile: Whether to measure where time goes; ``testbed show MODEL SETTING --profile`` prints it.
        image_size: For checkpoints, and for models in memory without a transform: side of the crop, or (side after
            resizing, side of the crop), pixels.
        mean: For checkpoints: channel means, in [0, 1].
        std: For checkpoints: channel standard deviations, in (0, 1].
        interpolation: For checkpoints: interpolation of the resizing.
        exif: ``"turn"`` reads images turned by their EXIF orientation, as viewers show them; these results are stored
            separately.
        payload_url: Where outputs are stored (fsspec), if not in the database.
        until: Runs on more and more samples in random order, until the main metric on all of them is known to ± this
            many points (``0.5``), or until it is decided which model is better (``"better:MODEL"``); ``"METRIC:0.5"``
            and ``"METRIC:better:MODEL"`` use another metric. `Results.until` has the progress of each model, and the
            results cover the samples used until then.
        log: Experiment trackers that get the metrics: ``"tensorboard:DIR"``, ``"wandb"``, ``"wandb:PROJECT"``,
            ``"mlflow"``, ``"mlflow:URI"``.
        raise_on_failure: Whether a cell that fails raises an error after the others are done. Otherwise its reason is
            in `Results.failed` and in `Results.frame`.
        progress: Whether to show the progress.

    Returns:
        The results of these models on these settings.

    Raises:
        TestbedError: If a name is unknown, or the whole run cannot start or continue. Stored results are kept.
    """
    from testbed.graph.options import RunOptions

    if exif not in (STORED, TURN):
        raise DefinitionError(f"exif is {exif!r}; expected {STORED!r} or {TURN!r}")
    resize, crop = image_size if isinstance(image_size, tuple) else (image_size, image_size)
    preprocessing = Preprocessing(resize, crop, mean, std, interpolation)
    inputs = replace(
        Inputs.from_environment().but(data_root=data_root),
        preprocessing=preprocessing,
        exif=exif,
    )
    options = RunOptions(
        db_url=None if db is None else str(db),
        payload_url=payload_url,
        plugins=tuple(str(expanded(plugin).resolve()) for plugin in plugins),
        limit=limit,
        batch_size=batch_size,
        gpus=tuple(gpus) or None,
        data_workers=workers,
        cpu_processes=cpu_processes,
        dtype=dtype,
        store_dtype=store_dtype,
        seed=seed,
        random_weights=random_weights,
        override=override,
        executor=executor,
        ray_address=ray_address,
        compile=compile,
        channels_last=channels_last,
        decoded_cache=decoded_cache,
        profile=profile,
    )
    logged = [log] if isinstance(log, str) else log
    with tracing():
        results, ok, interrupted = _evaluate(
            models, eval_settings, Beside(transform, name, preprocessing), options, inputs, until, logged, progress
        )
    if raise_on_failure and not ok:
        raise RunError(results.failure or "the run was interrupted")
    if interrupted:
        raise KeyboardInterrupt
    return results


def _evaluate(
    models: Any,
    eval_settings: Any,
    beside: Beside,
    options: RunOptions,
    inputs: Inputs,
    until: float | str | None,
    log: Sequence[str],
    progress: bool,
) -> tuple[Results, bool, bool]:
    """Resolves the arguments and runs them; returns the results, whether all succeeded, whether it was interrupted."""
    from testbed.runner.run import run

    with using(inputs):
        registry.load(options.plugins)
        inputs = replace(inputs, own_names=own_names_of(options.db_url))
    with using(inputs):
        settings_found = found_settings(eval_settings)
        written, chosen_name = model_names(models, replace(beside, of_data=partial(transforms_of, settings_found)))
        found = select(registry.models, registry.model_collections, written)
        chosen_models, inputs, said = with_short_names(registry, found, inputs, options.db_url, chosen_name)
    with using(inputs):
        named = setting_names(settings_found)
        words, inputs = settings_of_folders(registry, named, inputs)
    with using(inputs):
        chosen_settings = select(registry.eval_settings, registry.eval_setting_collections, words)
    options = replace(options, inputs=inputs)
    trackers = _trackers(log, options, until)
    shown = progress_here() if progress else None
    if shown is not None:
        for line in [*said, *notes_of(settings_found)]:
            shown.note(line)
    try:
        if until is not None:
            with using(inputs):
                results, ok, interrupted = _until(options, chosen_models, chosen_settings, until, shown)
        else:
            report = run(registry, options, chosen_models, chosen_settings, shown)
            with using(inputs):
                results = Results.of_run(options.db_url, report)
            ok, interrupted = report.ok, report.interrupted
            _log(options, trackers, report.evaluations)
        if shown is not None:
            for line in _remarks(results):
                shown.note(line)
    finally:
        if shown is not None:
            shown.close()
    return results, ok, interrupted


def _remarks(results: Results) -> list[str]:
    """Lines about a run that the user should see besides its results, as `testbed run` prints them."""
    from testbed.models.base.normalize import SPLIT_OFF

    unusual = [line for line in results.preprocessing if SPLIT_OFF in line or INSTEAD in line]
    return [*unusual, *(line for line in results.remarks if line not in results.said)]


def _trackers(words: Sequence[str], options: RunOptions, until: float | str | None) -> list[Mirror]:
    """Returns the trackers, after checking that they are installed."""
    if not words:
        return []
    from testbed.trackers.results import mirrors_of

    if until is not None:
        raise RunError("until runs on more and more samples; it cannot be used with log")
    return mirrors_of(words, options.db_url)


def _log(options: RunOptions, trackers: Sequence[Mirror], evaluations: Sequence[int]) -> None:
    """Logs results; an unreachable tracker is a warning, since the results are stored."""
    if not trackers:
        return
    from testbed.db.store import Store
    from testbed.trackers.results import log_evaluations

    with Store.open(options.db_url, mode="write") as store:
        for problem in log_evaluations(store, trackers, evaluations):
            warnings.warn(f"{problem}; the results are stored, and the same call logs them", stacklevel=4)


def _until(
    options: RunOptions, models: Sequence[str], settings: Sequence[str], until: float | str, shown: Progress | None
) -> tuple[Results, bool, bool]:
    """Runs until a goal is reached; returns the results, whether nothing failed, and whether it was interrupted."""
    from testbed.runner.run import run_pairs
    from testbed.runner.until import goal_of, run_until

    if options.limit is not None or options.override:
        other = "override" if options.override else "limit"
        raise RunError(f"until runs on more and more samples; it cannot be used with {other}")
    goal = goal_of(str(until), registry, models)
    found = run_until(
        registry, options, models, settings, goal, lambda pairs: run_pairs(registry, options, pairs, shown)
    )
    ok = not found.interrupted and not any(cell.why for cell in found.cells)
    return Results.of_looks(options.db_url, found), ok, found.interrupted


def progress_here() -> Progress:
    """Returns bars in a notebook or on a terminal, lines elsewhere."""
    from testbed.execution.progress import LineProgress, RichProgress

    if _in_notebook():
        from testbed.api.notebook import NotebookProgress

        return NotebookProgress()
    if not sys.stderr.isatty():
        return LineProgress(sys.stderr)
    from rich.console import Console

    return RichProgress(Console(stderr=True))


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell"

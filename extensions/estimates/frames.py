"""Estimates from the stored outputs of results, as pandas frames: methods of `testbed.api.results.Results`.

``frame.attrs["notes"]`` has the notes that the command would print about omissions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from testbed.api.results import Results, Words, noted, require, words
from testbed.db.store import Store

if TYPE_CHECKING:
    import pandas as pd


def estimate(
    results: Results, eval_settings: Words, known: str, models: Words = None, calibrate: bool = False
) -> pd.DataFrame:
    """Estimates accuracies without labels, like ``testbed estimate``; returns a row for each cell.

    Columns: ``model``, ``eval_setting``, ``n``, ``known`` (the accuracy where labels are used), ``true`` (if stored,
    else missing), and one for each method. They are estimates, not measured values. ``frame.attrs["summary"]`` has the
    errors of each method over all cells whose truth is stored, ``frame.attrs["lines"]`` the line of agreements of each
    setting (slope, bias, r2; None if missing), and ``frame.attrs["temperatures"]`` the divisor of each model's logits.

    Args:
        eval_settings: The settings whose labels are not used: names or patterns.
        known: A setting with labels and the same classes: the command's ``--from``.
        models: Names or patterns; None means all of these results.
        calibrate: Whether to divide logits by a temperature fitted on the known setting.

    Raises:
        StoreError: If there are no logits, or no score of 0 and 1 on the known setting.
        DataError: If the known setting is among the others.

    Examples:
        >>> frame = testbed.results("testbed.db").estimate("rain", known="val", models=["vgg11", "resnet18"])
        >>> frame[["model", "eval_setting", "known", "true", "ATC-MC"]].round(3)
              model eval_setting  known   true  ATC-MC
        0  resnet18         rain  0.733  0.700   0.567
        1     vgg11         rain  0.867  0.517   0.800
    """
    import pandas as pd

    from testbed.extensions.estimates.label_free import label_free

    notes: list[str] = []
    with Store.open(results.db) as store:
        _, on = results.chosen(models, eval_settings)
        shifts = [text for text in on if text != known or known in words(eval_settings)]
        chosen = results.with_outputs(models, [known, *shifts], notes)
        found = label_free(store, chosen, shifts, known, calibrate, notes.append, results.measured())
    rows = [
        {"model": row.model, "eval_setting": row.eval_setting, "n": row.n, "known": row.known}
        | {"true": row.true, **row.estimates}
        for row in found.rows
    ]
    frame = noted(pd.DataFrame(rows), notes)
    frame.attrs["summary"] = [vars(method_errors) for method_errors in found.summary]
    frame.attrs["lines"] = {
        name: None if line is None else {field: getattr(line, field) for field in ("slope", "bias", "r2")}
        for name, line in found.lines.items()
    }
    frame.attrs["temperatures"] = dict(found.temperatures)
    return frame


def choose_anchors(
    results: Results,
    eval_setting: str,
    file: str | Path,
    size: int = 100,
    models: Words = None,
    score: str | None = None,
    method: str = "best",
    estimator: str | None = None,
    families: str | Path | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Chooses samples that represent all, like ``testbed anchors choose``, and writes them to a file.

    ``testbed.evaluate(model, f"{eval_setting}.anchors:{file}")`` evaluates another model on these alone.

    The frame has a row for each way, the best first: ``method``, ``estimator``, and the errors on held-out models:
    ``mean_absolute``, ``quantile`` (the error bound for the share ``level`` of new models: 90 %, or m/(m + 1)
    with fewer than nine families) and ``rank_correlation``. ``frame.attrs["chosen"]`` is the way of the file: its
    method, estimator, and the errors ``held_out`` and of as many ``random`` samples.

    Args:
        eval_setting: The setting.
        file: Output file; its name ends in ``.json``.
        size: The number of anchors.
        models: The models to choose by: names or patterns; None means all of these results.
        score: The score of each sample; None: the main one of the setting.
        method: ``"best"``, ``"stratified"``, ``"random"``, ``"lure"``, ``"irt"`` or ``"clusters"``.
        estimator: ``"weighted"``, ``"assisted"``, ``"p-irt"`` or ``"gp-irt"``; None: the best for the method.
        families: A CSV file with the columns ``model`` and ``family``; None: the models' declarations.
        seed: Random seed.

    Raises:
        StoreError: If there are too few models.
        DataError: If there are not more samples than anchors, or the file cannot be written.

    Examples:
        >>> stored = testbed.results("testbed.db")
        >>> frame = stored.choose_anchors("val", "anchors.json", size=10, method="stratified")
        >>> frame.attrs["chosen"]["method"]
        'stratified'
    """
    import pandas as pd

    from testbed.eval_settings.base.anchor_file import check_path
    from testbed.extensions.estimates.choosing import choose_anchors
    from testbed.extensions.estimates.families import read_families
    from testbed.paths import expanded
    from testbed.stored_results.main_scores import main_score
    from testbed.stored_results.side_by_side import evaluations_on

    path, notes, own = expanded(file), list[str](), results.measured()
    check_path(path)
    given = None if families is None else read_families(expanded(families))
    require(size >= 1, f"size must be at least 1; got {size}")
    with Store.open(results.db) as store:
        _, (on,) = results.chosen(None, eval_setting)
        chosen = results.with_outputs(models, [on], notes)
        score = score or main_score(store, {on: evaluations_on(store, on, own).values()})
        found = choose_anchors(store, on, chosen, score, size, method, estimator, given, seed, notes.append, first=own)
    found.file.write(path)
    rows = [{"method": way[0], "estimator": way[1], **vars(value)} for way, value in found.errors.items()]
    frame = noted(pd.DataFrame(rows), notes)
    held_out, by_chance = vars(found.file.held_out), vars(found.file.random)
    frame.attrs["chosen"] = {"method": found.file.method, "estimator": found.file.estimator}
    frame.attrs["chosen"] |= {"held_out": dict(held_out), "random": dict(by_chance)}
    return frame


def estimate_from_anchors(results: Results, file: str | Path, models: Words = None) -> pd.DataFrame:
    """Estimates scores on all samples from those on anchors, like ``testbed anchors estimate``.

    Columns: ``model``, ``value`` with ``low`` to ``high`` (of the confidence ``frame.attrs["level"]``),
    ``rank`` with ``rank_low`` to ``rank_high`` among the models that the anchors were chosen by, ``true`` (if all
    samples are stored, else missing) and ``full`` (whether the anchors' scores were taken from there). They are
    estimates, not measured values. ``frame.attrs`` has ``eval_setting``, ``score``, ``anchors``, ``n`` and ``level``.

    Args:
        file: The output file of `choose_anchors`.
        models: Names or patterns; None means all of these results.

    Raises:
        StoreError: If a model has not been evaluated on the anchors.
        DataError: If it is not an anchor file, or the samples differ.

    Examples:
        >>> testbed.results("testbed.db").estimate_from_anchors("anchors.json", "vgg11")[["model", "true"]].round(3)
           model   true
        0  vgg11  0.867
    """
    import pandas as pd

    from testbed.eval_settings.base.anchor_file import read_anchors
    from testbed.extensions.estimates.estimating import estimate
    from testbed.paths import expanded

    path = expanded(file)
    anchors = read_anchors(path)
    with Store.open(results.db) as store:
        chosen, _ = results.chosen(models, None)
        frame = pd.DataFrame(vars(each) for each in estimate(store, chosen, anchors, path, results.evaluation))
    frame.attrs |= {"eval_setting": anchors.eval_setting, "score": anchors.score}
    frame.attrs |= {"anchors": len(anchors.samples), "n": anchors.n, "level": anchors.held_out.level}
    return frame

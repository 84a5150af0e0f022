"""Analyses of a store that estimate or select, as pandas frames: a part of `testbed.api.results.Results`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.db.store import Store
from testbed.entities import ELSEWHERE, Evaluation, Result
from testbed.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Words = str | Iterable[str] | None


class Estimates:
    """What the stored outputs of some results say besides their scores.

    Each frame has in ``frame.attrs["notes"]`` what the command would print about what it left out.
    """

    db: str | None
    _found: list[Result]

    def _chosen(self, models: Words, eval_settings: Words) -> tuple[list[str], list[str]]:
        """The chosen models and settings."""
        raise NotImplementedError

    def _evaluation(self, store: Store, model: str, eval_setting: str) -> Evaluation:
        """The evaluation of a cell."""
        raise NotImplementedError

    def _own(self) -> frozenset[int]:
        """The evaluations that these results are of."""
        return frozenset(each.evaluation_id for each in self._found if each.origin not in ELSEWHERE)

    def _with_outputs(self, models: Words, eval_settings: list[str], notes: list[str]) -> list[str]:
        """The chosen models that have outputs on all of some settings; one that is named is never left out."""
        named, there = words(models), {(each.model, each.eval_setting) for each in self._found}
        found = []
        for model in self._chosen(models, None)[0]:
            lacks = [each for each in eval_settings if (model, each) not in there]
            if lacks and model not in named:
                notes.append(f"left out: {model} (no outputs on {', '.join(lacks)})")
            else:
                found.append(model)
        return found

    def selective(
        self,
        eval_settings: Words = None,
        models: Words = None,
        risk: float = 5.0,
        by: str = "probability",
        delta: float = 0.05,
    ) -> pd.DataFrame:
        """What models are worth if they may abstain, as ``testbed selective`` has it: a row for each cell.

        Columns: ``eval_setting``, ``model``, ``n``, ``clusters`` (groups that are drawn as wholes, else missing),
        ``unread``, ``error`` (the risk if all samples are answered), ``aurc`` with its 95 % interval ``aurc_low`` to
        ``aurc_high``, ``excess``, ``coverage`` at the accepted risk with ``coverage_low`` to ``coverage_high``,
        and the ``guaranteed`` coverage, of answers from the confidence ``threshold`` on (0 and missing if nothing is
        guaranteed). Rates are fractions.

        Args:
            eval_settings: Names or patterns; None means all of these results.
            models: Names or patterns; None means all of these results.
            risk: The wrong answers that are accepted, in percent of those given.
            by: How sure a model is: ``"probability"``, ``"margin"``, ``"entropy"`` or ``"logit"``.
            delta: How often the guarantee may be wrong.

        Raises:
            StoreError: If a model has no logits on a setting.
            DataError: If an argument has no possible value.

        Examples:
            >>> frame = testbed.results("testbed.db").selective("val", risk=10)
            >>> frame[["model", "error", "coverage"]].head(1).round(3)
               model  error  coverage
            0  vgg11  0.133     0.917
        """
        import pandas as pd

        from testbed.extensions.analyses.answered import MEASURED, selective_predictions

        _require(0 < risk < 100, f"risk is a percentage between 0 and 100; got {risk:g}")
        _require(0 < delta < 1, f"delta is a probability between 0 and 1; got {delta:g}")
        _require(by in MEASURED, f"by is one of {', '.join(MEASURED)}; got {by!r}")
        notes: list[str] = []
        with Store.open(self.db) as store:
            chosen, on = self._chosen(models, eval_settings)
            found = selective_predictions(store, chosen, on, risk / 100, by, delta, notes.append, self._evaluation)
        rows: list[dict[str, Any]] = []
        for each in found:
            area, at = each.area, each.at_risk
            row: dict[str, Any] = {name: getattr(each, name) for name in ("eval_setting", "model", "n", "clusters")}
            row |= {"unread": each.unread, "error": each.error, "aurc": area.value, "aurc_low": area.low}
            row |= {"aurc_high": area.high, "excess": area.excess, "coverage": at.coverage, "coverage_low": at.low}
            row |= {"coverage_high": at.high, "guaranteed": at.guaranteed, "threshold": at.threshold}
            rows.append(row)
        return _noted(pd.DataFrame(rows), notes)

    def estimate(self, eval_settings: Words, known: str, models: Words = None, calibrate: bool = False) -> pd.DataFrame:
        """Accuracies without the labels of the settings, as ``testbed estimate`` has them: a row for each cell.

        Columns: ``model``, ``eval_setting``, ``n``, ``known`` (the accuracy where labels are used), ``true`` (where it
        is stored, else missing), and one for each method. They are estimates, no measured values.
        ``frame.attrs["summary"]`` has the errors of each method over all cells whose truth is stored,
        ``frame.attrs["lines"]`` the line of agreements of each setting (slope, bias, r2; None where there is none), and
        ``frame.attrs["temperatures"]`` what the logits of each model were divided by.

        Args:
            eval_settings: The settings whose labels are not used: names or patterns.
            known: A setting with labels and the same classes: the command's ``--from``.
            models: Names or patterns; None means all of these results.
            calibrate: Whether logits are divided by a temperature that is fitted on the known setting.

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
        with Store.open(self.db) as store:
            _, on = self._chosen(models, eval_settings)
            shifts = [each for each in on if each != known or known in words(eval_settings)]
            chosen = self._with_outputs(models, [known, *shifts], notes)
            found = label_free(store, chosen, shifts, known, calibrate, notes.append, self._own())
        rows = [
            {"model": each.model, "eval_setting": each.eval_setting, "n": each.n, "known": each.known}
            | {"true": each.true, **each.estimates}
            for each in found.rows
        ]
        frame = _noted(pd.DataFrame(rows), notes)
        frame.attrs["summary"] = [vars(each) for each in found.summary]
        frame.attrs["lines"] = {
            name: None if line is None else {each: getattr(line, each) for each in ("slope", "bias", "r2")}
            for name, line in found.lines.items()
        }
        frame.attrs["temperatures"] = dict(found.temperatures)
        return frame

    def choose_anchors(
        self,
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
        """Chooses samples that tell the score of all, as ``testbed anchors choose`` does, and writes them to a file.

        ``testbed.evaluate(model, f"{eval_setting}.anchors:{file}")`` evaluates another model on these alone.

        The frame has a row for each way, the best first: ``method``, ``estimator``, and the errors on models that were
        held out: ``mean_absolute``, ``quantile`` (the error that the share ``level`` of new models stay below: 90 %, or
        m/(m + 1) with fewer than nine families) and ``rank_correlation``.
        ``frame.attrs["chosen"]`` is the way of the file: its method, estimator, and the errors ``held_out`` and of as
        many ``random`` samples.

        Args:
            eval_setting: The setting.
            file: Is written; its name ends in ``.json``.
            size: The number of anchors.
            models: The models to choose by: names or patterns; None means all of these results.
            score: The score of each sample; None: the main one of the setting.
            method: ``"best"``, ``"stratified"``, ``"random"``, ``"lure"``, ``"irt"`` or ``"clusters"``.
            estimator: ``"weighted"``, ``"assisted"``, ``"p-irt"`` or ``"gp-irt"``; None: the best for the method.
            families: A CSV file with the columns ``model`` and ``family``; None: what models declare.
            seed: Of what is drawn.

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

        from testbed.extensions.estimates.choosing import choose_anchors
        from testbed.extensions.estimates.families import read_families
        from testbed.results.main_scores import main_score
        from testbed.results.side_by_side import evaluations_on
        from testbed.eval_settings.base.anchor_file import check_path
        from testbed.paths import expanded

        path, notes, own = expanded(file), list[str](), self._own()
        check_path(path)
        given = None if families is None else read_families(expanded(families))
        _require(size >= 1, f"size is a number of samples, at least 1; got {size}")
        with Store.open(self.db) as store:
            _, (on,) = self._chosen(None, eval_setting)
            chosen = self._with_outputs(models, [on], notes)
            score = score or main_score(store, {on: evaluations_on(store, on, own).values()})
            found = choose_anchors(
                store, on, chosen, score, size, method, estimator, given, seed, notes.append, first=own
            )
        found.file.write(path)
        rows = [{"method": way[0], "estimator": way[1], **vars(each)} for way, each in found.errors.items()]
        frame = _noted(pd.DataFrame(rows), notes)
        held_out, by_chance = vars(found.file.held_out), vars(found.file.random)
        frame.attrs["chosen"] = {"method": found.file.method, "estimator": found.file.estimator}
        frame.attrs["chosen"] |= {"held_out": dict(held_out), "random": dict(by_chance)}
        return frame

    def estimate_from_anchors(self, file: str | Path, models: Words = None) -> pd.DataFrame:
        """Models' scores on all samples from those on anchors, as ``testbed anchors estimate`` has them.

        Columns: ``model``, ``value`` with ``low`` to ``high`` (of the confidence ``frame.attrs["level"]``),
        ``rank`` with ``rank_low`` to ``rank_high`` among the models that the anchors were chosen by, ``true`` (where
        all samples are stored, else missing) and ``full`` (whether the anchors' scores were taken from there). They are
        estimates, no measured values. ``frame.attrs`` has ``eval_setting``, ``score``, ``anchors``, ``n`` and
        ``level``.

        Args:
            file: What `choose_anchors` has written.
            models: Names or patterns; None means all of these results.

        Raises:
            StoreError: If a model has not been evaluated on the anchors.
            DataError: If it is no such file, or the samples are others.

        Examples:
            >>> testbed.results("testbed.db").estimate_from_anchors("anchors.json", "vgg11")[["model", "true"]].round(3)
               model   true
            0  vgg11  0.867
        """
        import pandas as pd

        from testbed.extensions.estimates.estimating import estimate
        from testbed.eval_settings.base.anchor_file import read_anchors
        from testbed.paths import expanded

        path = expanded(file)
        anchors = read_anchors(path)
        with Store.open(self.db) as store:
            chosen, _ = self._chosen(models, None)
            frame = pd.DataFrame(vars(each) for each in estimate(store, chosen, anchors, path, self._evaluation))
        frame.attrs |= {"eval_setting": anchors.eval_setting, "score": anchors.score}
        frame.attrs |= {"anchors": len(anchors.samples), "n": anchors.n, "level": anchors.held_out.level}
        return frame


def words(given: Words) -> list[str]:
    """Names and patterns as a list; none means all."""
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _noted(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    frame.attrs["notes"] = notes
    return frame


def _require(fits: bool, told: str) -> None:
    if not fits:
        raise DataError(told)

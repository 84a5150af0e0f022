"""Reads files of published values, claim by claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from testbed.claims.document import Document
from testbed.claims.names import NO_MODEL, NO_SETTING, eval_setting, is_model
from testbed.claims.tables import metric_in, named
from testbed.entities import OVERALL, Claim
from testbed.metric_specs import MetricSpec

MEAN = "a mean over several eval settings"
NOT_DEFINED = "not defined (NaN)"
PERCENT = 100
FRACTION = 1
# Accuracies of a data set on which testbed's setting of that name measures something else.
OTHER_MEASURE = {"imagenet-o": "accuracy on ImageNet-O alone; the eval setting measures out-of-distribution detection"}
ACCURACIES = ("top1", "top5", "mean_per_class_recall")


class Reading:
    """The contents of a file.

    Args:
        own_names: Whether models may have any names.
        settings: Names of settings that are known besides the registry's; None: any.
        models: Names of models that are known besides testbed's → the names that the store has for them.

    Attributes:
        claims: The values that are claims.
        left_out: Column → how many of its values are not claims, such as numbers of parameters.
        rows: How many rows or records were read.
    """

    def __init__(
        self,
        document: Document,
        own_names: bool = False,
        settings: Collection[str] | None = (),
        models: Mapping[str, str] | None = None,
    ) -> None:
        self.document = document
        self.models = models or {}
        self.own_names = own_names
        self.settings = settings
        self.claims: list[Claim] = []
        self.left_out: Counter[str] = Counter()
        self.rows = len(document.rows) or len(document.records)

    def takes(self, setting: str) -> bool:
        """Checks whether a name that is not in the registry is a setting."""
        return self.settings is None or setting in self.settings

    def leave(self, column: str, text: object) -> None:
        """Counts a value that is not a claim, unless it is empty."""
        if text is not None and str(text).strip():
            self.left_out[column] += 1

    def claim(
        self,
        model: str,
        setting: str,
        spec: MetricSpec,
        text: object,
        row: str,
        column: str,
        whole: int = FRACTION,
        protocol: Mapping[str, str] | None = None,
        why: str | None = None,
        n: int | None = None,
        slice: str = OVERALL,
        stderr: float | None = None,
    ) -> None:
        """Adds the claim in a field, if it is not empty; a NaN is counted as left out.

        Args:
            model: testbed's name of the model, or the publisher's.
            setting: testbed's name of the setting, or the publisher's.
            text: The field.
            row: For people.
            column: The column or key.
            whole: How the fraction 1 is written.
            protocol: What is known of how it was measured; empty texts are left out.
            why: Why the model or the setting is unknown to testbed, if the form can tell; names are also looked up.
            n: The number of samples.
            slice: Of the samples.
            stderr: The standard error, in the unit of the metric.

        Raises:
            StoreError: If the field is not a number or out of range.
        """
        where = f"{self.document.path}, {row}, column {column}"
        metric = metric_in(spec, "" if text is None else str(text), whole, where)
        if metric is None or metric.value is None:
            self.leave(NOT_DEFINED, text)
            return
        setting, known = eval_setting(named(setting, where, "eval setting"))
        if why is None and not self.own_names and model not in self.models and not is_model(model):
            why = NO_MODEL
        if why is None and not known and not self.takes(setting):
            why = NO_SETTING
        if why is None and spec.name in ACCURACIES:
            why = OTHER_MEASURE.get(setting)
        told = {key: value for key, value in (protocol or {}).items() if value}
        model = named(self.models.get(model, model), where)
        self.claims.append(
            Claim(
                *(model, setting, spec.name, metric.value, spec.unit, metric.published or ""),
                *(row, column, slice, n, stderr),
                **spec.declared(),
                protocol=told,
                why=why,
            )
        )

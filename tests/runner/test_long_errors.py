"""The reason of an error that users' code raises: short, and there even where the error cannot give its message."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from toy import ToyDataset, ToyImages, ToyNetwork, toy_catalog, toy_model, toy_setting

from testbed.errors import LONGEST

LONG = 5_000_000


class Mute(Exception):
    """An error that raises another one when it is asked for its message."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*given: Any, **more: Any) -> Any:
        raise error

    return fail


class Failing(ToyNetwork):
    error: BaseException = ValueError("x" * LONG)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        raise self.error


class Damaged(ToyDataset):
    def open(self) -> ToyImages:
        source = super().open()
        source.image = raising(ValueError("z" * LONG))  # type: ignore[method-assign]
        return source


def metrics_with_cause(logits: Any, targets: Any) -> Any:
    raise RuntimeError("y" * LONG) from ValueError("x" * LONG)


CASES: dict[str, Callable[[], Any]] = {
    "a loader": lambda: toy_catalog(
        toy_model(weights="w", classifier_loader=raising(ValueError("x" * LONG))), toy_setting(count=20)
    ),
    "a network": lambda: toy_catalog(
        toy_model(weights="w", classifier_loader=lambda: Failing(0)), toy_setting(count=20)
    ),
    "a perturbation that cannot say why": lambda: toy_catalog(
        toy_model(), toy_setting(count=20, perturbation_fn_gpu=raising(Mute()))
    ),
    "metrics with a cause": lambda: toy_catalog(toy_model(), toy_setting(count=20, metrics_fn=metrics_with_cause)),
    "several lines": lambda: toy_catalog(
        toy_model(weights="w", classifier_loader=raising(OSError("\n".join(["line " * 1000] * 1000)))),
        toy_setting(count=20),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_reason_is_short_and_names_the_class(lab: Any, name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "testbed")
    report = lab.run(CASES[name]())
    (outcome,) = report.outcomes
    assert outcome.status == "failed"
    assert len(outcome.reason) <= LONGEST + 100
    assert any(each in outcome.reason for each in ("ValueError", "Mute", "RuntimeError", "OSError"))
    with lab.open() as store:
        kept = [each.error or "" for each in store.evaluations.find()]
    assert all(len(each) <= LONGEST + 100 for each in kept)
    assert len(caplog.text) < 100_000


def test_the_error_of_a_sample_is_short(lab: Any) -> None:
    setting = toy_setting(count=20, dataset=Damaged(20))
    lab.run(toy_catalog(toy_model(), setting))
    with lab.open() as store:
        errors = [text for each in store.evaluations.find() for text in store.outputs.errors(each.id).values()]
    assert len(errors) in (0, 20)
    assert all(len(each) <= LONGEST + 100 for each in errors)

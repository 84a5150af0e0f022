"""Numbers of a run against published ones: said at once where they differ, silent where they do not."""

from __future__ import annotations

import csv
import math

import pytest
import torch
from toy import ToyNetwork, toy_catalog, toy_model, toy_setting

from testbed.compat.importing import import_results
from testbed.db.store import Store
from testbed.models.base.published import Published


def published(value, setting="toy-all", metric="top1"):
    return [Published(setting, metric, value, "a paper")]


def wilson(right, n, z=1.959963984540054):
    """Wilson (1927), written out."""
    p = right / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


@pytest.fixture(scope="module")
def value():
    """The toy model's accuracy, as ten lines without testbed compute it."""
    source = toy_setting().dataset.open()
    pixels = torch.from_numpy(source.pixels).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        right = ToyNetwork(0)(pixels).argmax(1) == torch.tensor(source.targets)
    return right.double().mean().item()


@pytest.mark.parametrize("offset", [-0.05, 0.05])
def test_a_number_outside_of_it_is_said_with_both_numbers_and_the_source(lab, value, offset):
    report = lab.run(toy_catalog(toy_model(published=published(value + offset)), toy_setting()))
    (line,) = report.disagreements
    low, high = wilson(round(600 * value), 600)
    for word in (
        f"toy on toy-all: top1 is {100 * value:.2f} %",
        f"({100 * low:.2f} to {100 * high:.2f} with 95 % confidence, n = 600)",
        f"{100 * (value + offset):.2f} % is published (a paper)",
    ):
        assert word in line
    assert line in lab.progress.notes


def test_the_borders_are_wilsons(new_lab, value):
    low, high = wilson(round(600 * value), 600)
    for border, lines in ((low + 1e-6, 0), (low - 1e-6, 1), (high - 1e-6, 0), (high + 1e-6, 1)):
        catalog = toy_catalog(toy_model(published=published(border)), toy_setting())
        assert len(new_lab(f"{border}").run(catalog).disagreements) == lines


def test_other_settings_other_metrics_and_untrained_models_are_not_compared(lab):
    model = toy_model(published=[*published(0.9, "val"), *published(0.9, metric="top3"), *published(0.9)])
    assert lab.run(toy_catalog(model, toy_setting()), random_weights=True).disagreements == []
    assert len(lab.run(toy_catalog(model, toy_setting())).disagreements) == 1


def test_of_a_mean_over_classes_the_interval_is_that_of_its_standard_error(lab, new_lab):
    lab.run(toy_catalog(toy_model(), toy_setting()))
    recall = lab.metrics("toy", "toy-all")["mean_per_class_recall"]
    assert abs(600 * recall.value - round(600 * recall.value)) > 1e-3  # no share of the samples
    for sigmas, lines in ((1.9, 0), (2.0, 1)):
        number = published(recall.value + sigmas * recall.stderr, metric="mean_per_class_recall")
        assert (
            len(new_lab(f"{sigmas}").run(toy_catalog(toy_model(published=number), toy_setting())).disagreements)
            == lines
        )


def test_what_is_stored_already_is_not_said_again(lab):
    catalog = toy_catalog(toy_model(published=published(0.9)), toy_setting())
    assert len(lab.run(catalog).disagreements) == 1
    assert lab.run(catalog).disagreements == []


def test_an_imported_number_counts_as_published(lab, value, tmp_path):
    table = tmp_path / "table.csv"
    for offset, lines in ((1.0, 0), (20.0, 1)):
        with table.open("w", newline="") as file:
            csv.writer(file).writerows([["model", "toy-all"], ["toy", f"{100 * value + offset:.3f}"]])
        with Store.create(lab.url) as store:
            import_results(store, table)
        report = lab.run(toy_catalog(toy_model(), toy_setting()), override=True)
        assert len(report.disagreements) == lines  # the last import counts
        assert all("imported from table.csv" in line for line in report.disagreements)


def test_a_derived_cell_is_compared_too(lab):
    catalog = toy_catalog(
        toy_model(published=published(0.9, "toy-part")),
        toy_setting(),
        toy_setting("toy-part", 600, parent_eval_setting="toy-all", class_sublist=list(range(10))),
    )
    report = lab.run(catalog)
    assert [outcome.status for outcome in report.outcomes] == ["complete", "derived"]
    assert len(report.disagreements) == 1

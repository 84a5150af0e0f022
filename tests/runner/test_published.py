"""Numbers of a run beside published ones: compared in every run, and said at once where they differ."""

from __future__ import annotations

import math

import pytest
import sqlalchemy as sa
import torch
from toy import ToyNetwork, toy_catalog, toy_model, toy_setting

from testbed.claims.hook import comparisons
from testbed.db.store import Store
from testbed.entities import Claim, ClaimSource
from testbed.models.base.published import Published


def published(value, setting="toy-all", metric="top1"):
    return [Published(setting, metric, value, "a paper")]


def verdicts(report):
    return [(each.model, each.eval_setting, each.verdict) for each in comparisons(report.hooks)]


@pytest.fixture(scope="module")
def value():
    """The toy model's accuracy, as ten lines without testbed compute it."""
    source = toy_setting().dataset.open()
    pixels = torch.from_numpy(source.pixels).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        right = ToyNetwork(0)(pixels).argmax(1) == torch.tensor(source.targets)
    return right.double().mean().item()


@pytest.mark.parametrize("offset", [-0.08, 0.08])
def test_a_number_that_differs_is_said_at_once_and_again_in_later_runs(lab, value, offset):
    catalog = toy_catalog(toy_model(published=published(value + offset)), toy_setting())
    (found,) = comparisons(lab.run(catalog).hooks)
    error = math.sqrt(value * (1 - value) / 599)
    assert (found.source, found.verdict) == ("a paper", "differs")
    assert found.points == pytest.approx(-100 * offset)
    assert found.z == pytest.approx(-offset / error, rel=1e-6)
    line = f"toy on toy-all: published {100 * (value + offset):.2f} (a paper); measured {100 * value:.2f} ± "
    line += f"{100 * error:.2f}: differs by {'−' if offset > 0 else '+'}8.0 points (z = {abs(found.z):.1f})"
    assert line in lab.progress.notes
    assert comparisons(lab.run(catalog).hooks) == [found]  # reused


def test_the_limit_is_1_96_standard_errors(new_lab, value):
    error = math.sqrt(value * (1 - value) / 599)
    for errors, verdict in ((-1.97, "differs"), (-1.95, "agrees"), (1.95, "agrees"), (1.97, "differs")):
        catalog = toy_catalog(toy_model(published=published(value + errors * error)), toy_setting())
        assert verdicts(new_lab(f"{errors}").run(catalog)) == [("toy", "toy-all", verdict)]


def test_other_settings_other_metrics_and_untrained_models_are_not_compared(lab):
    model = toy_model(published=[*published(0.9, "val"), *published(0.9, metric="top3"), *published(0.9)])
    assert comparisons(lab.run(toy_catalog(model, toy_setting()), random_weights=True).hooks) == []
    assert len(comparisons(lab.run(toy_catalog(model, toy_setting())).hooks)) == 1


def test_of_a_mean_over_classes_the_error_is_the_stored_one(lab, new_lab):
    lab.run(toy_catalog(toy_model(), toy_setting()))
    recall = lab.metrics("toy", "toy-all")["mean_per_class_recall"]
    assert abs(600 * recall.value - round(600 * recall.value)) > 1e-3  # no share of the samples
    for errors, verdict in ((1.9, "agrees"), (2.0, "differs")):
        number = published(recall.value + errors * recall.stderr, metric="mean_per_class_recall")
        report = new_lab(f"{errors}").run(toy_catalog(toy_model(published=number), toy_setting()))
        assert verdicts(report) == [("toy", "toy-all", verdict)]


def test_claims_in_the_store_count_with_what_definitions_carry(lab, value):
    with Store.create(lab.url) as store:
        claims = [Claim("toy", "toy-all", "top1", value + 0.2, "fraction", "0", "row 2", "top1")]
        store.claims.add(ClaimSource("blog", "table.csv", "a" * 64, "a table", revision="c" * 40), claims)
    catalog = toy_catalog(toy_model(published=published(value)), toy_setting())
    report = lab.run(catalog)
    assert [(each.source, each.verdict) for each in comparisons(report.hooks)] == [
        ("blog ccccccc", "differs"),
        ("a paper", "agrees"),
    ]
    changed = toy_catalog(toy_model(published=published(value + 0.3)), toy_setting())
    assert {each.source: each.verdict for each in comparisons(lab.run(changed).hooks)}["a paper"] == "differs"
    with lab.open() as store:  # what definitions carry is a claim, too: the last that was seen
        assert [each.value for each in store.claims.find(["toy"], sources=["definition"])] == [value + 0.3]


def test_a_derived_cell_is_compared_too(lab):
    catalog = toy_catalog(
        toy_model(published=published(0.9, "toy-part")),
        toy_setting(),
        toy_setting("toy-part", 600, parent_eval_setting="toy-all", class_sublist=list(range(10))),
    )
    report = lab.run(catalog)
    assert [outcome.status for outcome in report.outcomes] == ["complete", "derived"]
    assert verdicts(report) == [("toy", "toy-part", "differs")]


def test_claims_are_looked_up_once_for_a_run(lab):
    models = [toy_model(f"toy{number}", number, published=published(0.9)) for number in range(4)]
    catalog = toy_catalog(*models, toy_setting(), toy_setting("toy-more"))
    asked = []

    def note(connection, cursor, statement, *_):
        if statement.startswith("SELECT") and "FROM claims" in statement:
            asked.append(statement)

    lab.run(catalog)
    sa.event.listen(sa.engine.Engine, "before_cursor_execute", note)
    try:
        assert len(comparisons(lab.run(catalog).hooks)) == 4
    finally:
        sa.event.remove(sa.engine.Engine, "before_cursor_execute", note)
    assert len(asked) == 2  # which models, and what about them

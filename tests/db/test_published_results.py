"""The view `results` where nothing was measured: what is published, of several values that of the first source."""

from __future__ import annotations

from typing import Any

from testbed.db.store import Store
from testbed.entities import Claim, ClaimSource, Metric


def claim(value: float, metric: str = "top1", **given: Any) -> Claim:
    fields: dict[str, Any] = {"model": "net", "eval_setting": "val", "metric": metric, "unit": "fraction"}
    fields |= {"value": value, "published": f"{100 * value:.1f}", "row": "row 2", "column": metric}
    fields |= {"better": "higher", "lowest": 0.0, "highest": 1.0, "headline": 10, "zero_one": True}
    return Claim(**{**fields, **given})


def source(name: str, place: int = 0, sha256: str = "a" * 64) -> ClaimSource:
    return ClaimSource(name, "table.csv", sha256, "a table", place=place)


def shown(store: Store) -> list[tuple[Any, ...]]:
    found = store.results.find()
    return [(each.model, each.eval_setting, each.metric, each.slice, each.origin, each.value) for each in found]


def test_what_is_published_is_a_result_with_all_that_its_metric_declares(store: Store) -> None:
    claims = [claim(0.761, n=50_000, stderr=0.002), claim(0.9, slice="easy"), claim(0.5, why="no such model")]
    store.claims.add(source("a"), [*claims, claim(0.5, model="other", why="no such model")])
    assert shown(store) == [
        ("net", "val", "top1", "overall", "published", 0.761),
        ("net", "val", "top1", "easy", "published", 0.9),
    ]
    (one,) = store.results.find(slices=["overall"])
    assert (one.n, one.stderr, one.unit, one.published) == (50_000, 0.002, "fraction", "76.1")
    assert (one.better, one.lowest, one.highest, one.headline, one.zero_one) == ("higher", 0.0, 1.0, 10, True)
    assert (one.evaluation_id, one.scorer, one.dtype, one.sample_limit) == (0, "", None, None)
    assert (one.random_weights, one.completed_at, one.model_type) == (False, None, None)
    store.names.set_types({"net": "Standard training"})
    assert {each.model_type for each in store.results.find()} == {"Standard training"}
    assert [each.name for each in store.names.all("model")] == ["net"]
    assert store.results.sampled_settings() == {"val": False}


def test_what_was_measured_comes_first_metric_by_metric(store: Store, builder: Any) -> None:
    store.claims.add(source("a"), [claim(0.7), claim(0.9, "top5"), claim(0.6, model="other")])
    evaluation = builder(store).complete("net", "val", metrics=[Metric("top1", 0.5)])
    assert shown(store) == [
        ("net", "val", "top5", "overall", "published", 0.9),
        ("net", "val", "top1", "overall", "run", 0.5),
        ("other", "val", "top1", "overall", "published", 0.6),
    ]
    store.removal.hide_evaluation(evaluation.id)
    assert ("net", "val", "top1", "overall", "published", 0.7) in shown(store)


def test_of_several_values_that_of_the_first_source_is_shown_in_any_order_of_adding(store: Store) -> None:
    for name, place, value in (("late", 2, 0.1), ("a", 1, 0.2), ("b", 1, 0.3)):
        store.claims.add(source(name, place), [claim(value)])
    assert [row[-1] for row in shown(store)] == [0.2]
    assert store.claims.order() == ["a", "b", "late"]
    store.claims.prefer(["late"])
    assert [row[-1] for row in shown(store)] == [0.1]
    assert store.claims.order() == ["late", "a", "b"]
    store.claims.add(source("late", 2, "b" * 64), [claim(0.4)])  # another version of its file: the latest counts
    assert [row[-1] for row in shown(store)] == [0.4]
    store.claims.add(source("new", 1), [claim(0.5), claim(0.6, "top5")])
    assert [row[-1] for row in shown(store)] == [0.4, 0.6]


def test_removed_and_renamed_names_take_what_is_published_along(store: Store) -> None:
    store.claims.add(source("a"), [claim(0.7), claim(0.6, model="other")])
    store.names.rename("model", "net", "mine")
    assert [row[0] for row in shown(store)] == ["mine", "other"]
    store.names.rename("eval setting", "val", "valid")
    assert {row[1] for row in shown(store)} == {"valid"}
    store.names.hide("model", "mine")
    assert [row[0] for row in shown(store)] == ["other"]
    store.names.hide("eval setting", "valid")
    assert shown(store) == []
    assert store.results.sampled_settings() == {}

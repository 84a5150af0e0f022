"""Which of several evaluations of a cell is reported, and what belongs to the identity of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from toy import ToyDataset, toy_catalog, toy_model, toy_setting

from testbed.db.connection.lookup import complete_cells
from testbed.db.store import Store
from testbed.db.upkeep.merge import merge
from testbed.entities import current


def scaled(factor: float) -> Any:
    def scale(images: torch.Tensor) -> torch.Tensor:
        return images * factor

    return toy_catalog(toy_model(), toy_setting("shade", perturbation_fn_gpu=scale))


def reported(store: Store) -> set[int]:
    """What all that shows numbers takes: the view, the entities, the lookup without SQLAlchemy."""
    viewed = {each.evaluation_id for each in store.results.find(["toy"], ["shade"])}
    known = [each for each in store.evaluations.find(["toy"], ["shade"]) if each.status == "complete"]
    (chosen,) = current(known)
    looked_up = complete_cells(store.full_url, "toy", "shade")
    assert looked_up is not None
    (quick,) = current([each.evaluation for each in looked_up])
    assert {chosen.id} == {quick.id} == viewed
    return viewed


def test_after_a_way_back_the_evaluation_of_today_is_reported(lab: Any) -> None:
    (first,) = lab.run(scaled(0.5)).outcomes
    (second,) = lab.run(scaled(0.8)).outcomes
    with lab.open() as store:
        assert reported(store) == {second.evaluation_id}
    (third,) = lab.run(scaled(0.5)).outcomes
    assert (third.status, third.evaluation_id) == ("stored", first.evaluation_id)
    with lab.open() as store:
        assert reported(store) == {first.evaluation_id}
    lab.run(scaled(0.8))
    with lab.open() as store:
        assert reported(store) == {second.evaluation_id}


def test_so_it_is_after_a_merge(lab: Any, tmp_path: Path) -> None:
    for factor in (0.5, 0.8, 0.5):
        lab.run(scaled(factor))
    with lab.open() as store, Store.create(str(tmp_path / "target.db")) as target:
        values = {each.metric: each.value for each in store.results.find(["toy"], ["shade"]) if each.slice == "overall"}
        merge(store, target)
        found = {each.metric: each.value for each in target.results.find(["toy"], ["shade"]) if each.slice == "overall"}
        assert found == values
        lab.run(scaled(0.8))  # found again there; the target has both already
        merge(store, target)
        values = {each.metric: each.value for each in store.results.find(["toy"], ["shade"]) if each.slice == "overall"}
        found = {each.metric: each.value for each in target.results.find(["toy"], ["shade"]) if each.slice == "overall"}
        assert found == values


class Named(ToyDataset):
    """A data set whose definition does not show the names of its classes."""

    names: list[str] = [f"class {index}" for index in range(10)]  # noqa: RUF012 -- changed by the test

    def open(self) -> Any:
        source = super().open()
        source.class_names = list(self.names)
        return source

    def spec(self) -> dict[str, Any]:
        return {"named": True}


def test_swapped_names_of_classes_swap_the_slices(lab: Any, work: Any, monkeypatch: Any) -> None:
    catalog = toy_catalog(toy_model(), toy_setting("named", dataset=Named()))
    lab.run(catalog)

    def recalls() -> dict[str, float | None]:
        with lab.open() as store:
            rows = store.results.find(["toy"], ["named"])
            return {each.slice: each.value for each in rows if each.metric == "top1" and each.slice != "overall"}

    before = recalls()
    monkeypatch.setattr(Named, "names", [Named.names[1], Named.names[0], *Named.names[2:]])
    work.clear()
    lab.run(catalog)
    after = recalls()
    one, other = (next(name for name in before if name.endswith(f"class {index}")) for index in (0, 1))
    assert (after[one], after[other]) == (before[other], before[one]) != (before[one], before[other])
    assert work["images through networks"] == 0

"""Names that somebody exchanged in the database are noticed by what they are defined as today."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from toy import darker, noisy, toy_catalog, toy_model, toy_setting

from testbed.db.store import Store
from testbed.graph.options import RunOptions
from testbed.registry import Catalog
from testbed.runner.name_check import misnamed
from testbed.runner.run import run

SETTINGS = ("few", "many", "dark", "noise", "noise2")


def catalog_of(*models: str) -> Catalog:
    return toy_catalog(
        *(toy_model(name, seed) for seed, name in enumerate(models, start=1)),
        toy_setting("few", 20),
        toy_setting("many", 30),
        toy_setting("dark", 20, perturbation_fn_gpu=darker),
        toy_setting("noise", 20, perturbation_fn_gpu=noisy),
        toy_setting("noise2", 20, perturbation_fn_gpu=noisy),
    )


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluated") / "store.db"
    run(catalog_of("one", "two", "three"), RunOptions(db_url=str(path), executor="inline"), ["one", "two"], SETTINGS)
    return path


@pytest.fixture
def stored(evaluated: Path, tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(shutil.copy(evaluated, tmp_path / "store.db")), "write") as store:
        yield store


def exchange(store: Store, table: str, one: str, other: str) -> None:
    with store.database.writing() as session:
        for old, new in ((one, "?"), (other, one), ("?", other)):
            statement = sa.text(f"UPDATE {table} SET name = :new WHERE name = :old")
            session.execute(statement, {"old": old, "new": new})


def found(store: Store, catalog: Catalog) -> tuple[list[str], list[str]]:
    left: list[str] = []
    faults = [fault.text for fault in misnamed(store, catalog, lambda _, why: left.append(why))]
    return faults, left


def test_names_that_are_right_are_no_faults(stored: Store) -> None:
    assert found(stored, catalog_of("one", "two", "three")) == ([], [])


def test_two_models_that_were_exchanged_are_named(stored: Store) -> None:
    exchange(stored, "models", "one", "two")
    faults, left = found(stored, catalog_of("one", "two", "three"))
    assert len(faults) == 2 * len(SETTINGS)
    assert left == []
    assert any("(one on few): by today's definitions, this is of the model two" in fault for fault in faults)
    assert any("(two on noise): by today's definitions, this is of the model one" in fault for fault in faults)


@pytest.mark.parametrize("pair", [("few", "many"), ("few", "dark"), ("dark", "noise"), ("noise", "noise2")])
def test_two_settings_that_were_exchanged_are_named(stored: Store, pair: tuple[str, str]) -> None:
    exchange(stored, "eval_settings", *pair)
    faults, left = found(stored, catalog_of("one", "two", "three"))
    assert len(faults) == 4
    assert left == []
    assert (
        sum(f"on {pair[0]}): by today's definitions, this is of the setting {pair[1]}" in each for each in faults) == 2
    )


def test_evaluations_that_were_given_to_another_model_or_setting_are_named(stored: Store) -> None:
    with stored.database.writing() as session:
        session.execute(sa.text("UPDATE models SET name = 'three' WHERE name = 'one'"))
    assert len(found(stored, catalog_of("one", "two", "three"))[1]) == len(SETTINGS)  # nothing here is called one
    with stored.database.writing() as session:
        session.execute(sa.text("UPDATE models SET name = 'one' WHERE name = 'three'"))
        two, few = (
            session.scalar(sa.text(f"SELECT id FROM {table} WHERE name = '{name}'"))
            for table, name in (("models", "two"), ("eval_settings", "few"))
        )
        session.execute(sa.text("DELETE FROM evaluations WHERE model_id = :two"), {"two": two})
        statement = "UPDATE evaluations SET model_id = :two WHERE eval_setting_id = :few"
        session.execute(sa.text(statement), {"two": two, "few": few})
    (fault,) = found(stored, catalog_of("one", "two", "three"))[0]
    assert "(two on few): by today's definitions, this is of the model one" in fault


def test_a_definition_that_has_changed_or_is_not_here_is_said_to_be_left_out(stored: Store) -> None:
    changed = toy_catalog(toy_model("one", 7), toy_model("two", 2), toy_setting("few", 20))
    faults, left = found(stored, changed)
    assert faults == []
    assert sum("has changed since" in why for why in left) == 1
    assert sum("not in the registry" in why for why in left) == 2 * (len(SETTINGS) - 1)


def test_two_names_of_one_definition_are_no_fault(stored: Store) -> None:
    same: Any = toy_catalog(toy_model("one", 1), toy_model("two", 1), toy_setting("few", 20))
    faults, _ = found(stored, same)
    assert faults == []

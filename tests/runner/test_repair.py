"""After damage and ``testbed store repair``, the runs that it names compute what was lost, and nothing else."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from golden import SCORED, golden_catalog
from stored_cells import damage

from testbed.db.store import Store
from testbed.execution.report import Report
from testbed.graph.options import RunOptions
from testbed.registry import Catalog
from testbed.runner.run import run
from testbed.scoring.deep_check import deep_faults

MODELS = {"towers", "says"}
TOWERS = "(SELECT id FROM models WHERE name = 'towers')"
SHOWN = f"(SELECT id FROM evaluations WHERE model_id = {TOWERS} AND eval_setting_id = (SELECT id FROM eval_settings"
NOISY = f"{SHOWN} WHERE name = 'shown-noisy'))"
IMAGES = f"{SHOWN} WHERE name = 'described' AND node = 'image_embeddings'))"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of small cells of all kinds."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    evaluate(path)
    return path


@pytest.fixture
def lab(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(whole, tmp_path / "store.db"))


def evaluate(path: Path) -> Report:
    """Runs all cells of the store."""
    catalog = golden_catalog()
    options = RunOptions(db_url=str(path), executor="inline", data_workers=0)
    return run(catalog, options, sorted(MODELS), [*catalog.eval_setting_names(), *SCORED])


def numbers(store: Store) -> dict[tuple[str, ...], tuple[float | None, int | None]]:
    """Every metric that is stored."""
    return {
        (each.model, each.eval_setting, each.scorer, each.metric, each.slice): (each.value, each.n)
        for each in store.results.find()
    }


def _close(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-5))


def all_faults(path: Path, catalog: Catalog) -> list[str]:
    with Store.open(str(path)) as store:
        deep = [fault.text for fault in deep_faults(store, catalog, lambda evaluation, why: pytest.fail(why))]
        return [*store.maintenance.check(), *deep]


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE output_chunks SET payload = zeroblob(length(payload)) WHERE evaluation_id = {NOISY}",
        pytest.param(f"UPDATE output_chunks SET shape = '[' WHERE evaluation_id = {IMAGES}", marks=pytest.mark.long),
        pytest.param(
            f"UPDATE scores SET payload = zeroblob(length(payload)) WHERE evaluation_id = {NOISY}",
            marks=pytest.mark.long,
        ),
        f"UPDATE samples SET target = '9' WHERE dataset_id = (SELECT dataset_id FROM evaluations WHERE id = {NOISY})",
        pytest.param(f"UPDATE evaluations SET fingerprint = 'another' WHERE id = {NOISY}", marks=pytest.mark.long),
        "UPDATE definitions SET content = '{}' WHERE kind = 'view'",
        "UPDATE item_values SET payload = zeroblob(length(payload))",
    ],
)
def test_a_run_completes_what_a_repair_dropped(lab: Path, statement: str) -> None:
    with Store.open(str(lab)) as store:
        before = numbers(store)
    damage(lab, statement)
    with Store.open(str(lab), "write") as store:
        repaired = store.maintenance.repair()
        if "item_values" in statement:  # whose texts they are is found by scoring again
            store.maintenance.repair(
                lambda: deep_faults(store, golden_catalog(), lambda evaluation, why: pytest.fail(why))
            )
    assert repaired.done
    assert not repaired.left
    assert not evaluate(lab).of("failed")
    with Store.open(str(lab)) as store:
        after = numbers(store)
        assert after.keys() == before.keys()
        assert all(after[key][1] == before[key][1] and _close(after[key][0], before[key][0]) for key in before)
    assert all_faults(lab, golden_catalog()) == []


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (f"UPDATE metrics SET value = value + 0.125 WHERE evaluation_id = {NOISY} AND name = 'top1'", "top1"),
        (f"UPDATE metrics SET stderr = 0.7 WHERE evaluation_id = {NOISY} AND name = 'top1'", "top1"),
        (f"UPDATE metrics SET unit = 'x' WHERE evaluation_id = {NOISY} AND name = 'top1'", "top1"),
        (f"UPDATE metrics SET scorer = 'x@1' WHERE evaluation_id = {NOISY}", "is of x@1"),
        (f"DELETE FROM metrics WHERE evaluation_id = {NOISY} AND name = 'top5'", "top5 is missing"),
        (f"DELETE FROM scores WHERE evaluation_id = {NOISY} AND name = 'top1'", "the score top1"),
    ],
)
def test_a_deep_check_computes_scores_and_metrics_again(lab: Path, statement: str, named: str) -> None:
    catalog = golden_catalog()
    damage(lab, statement)
    assert any("(towers on shown-noisy)" in fault and named in fault for fault in all_faults(lab, catalog))
    with Store.open(str(lab), "write") as store:
        store.maintenance.repair(lambda: deep_faults(store, catalog, lambda evaluation, why: None))
        found = store.evaluations.find(["towers"], ["shown-noisy"])
        assert ("failed", []) in [(each.status, store.results.metrics(each.id)) for each in found]


def test_the_metrics_of_a_changed_definition_are_no_fault(lab: Path) -> None:
    left_out: list[str] = []
    with Store.open(str(lab)) as store:
        assert list(deep_faults(store, Catalog(), lambda evaluation, why: left_out.append(why))) == []
    assert left_out
    assert "--plugin" in left_out[0]

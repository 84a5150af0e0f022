"""Identities stay as they are: a store that was filled before goes on to be found.

``assets/golden_identities.json`` has the fingerprints of tiny cells of every kind and the digests of everything that is
registered and needs no data. A change that moves one makes every stored result of its kind a stranger, so it must be
meant, named in the changelog, and comes with a higher `testbed.identity.SCHEME` where the same definitions get other
digests. ``python tests/test_golden_identities.py`` writes the file anew.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from testbed.db import migrations
from testbed.db.store import Store, upgrade
from testbed.db.urls import resolve_url
from testbed.errors import DataError, MissingExtraError, TestbedError
from testbed.graph.options import RunOptions
from testbed.identity import describe_fields, digest
from testbed.registry import Catalog, registry
from testbed.runner.finish import compute_scores, same_scores
from testbed.runner.run import run

ASSETS = Path(__file__).parent / "assets"
GOLDEN = ASSETS / "golden_identities.json"
# What names and fields of registered models come from: another release may have others.
LIBRARIES = ("torchvision", "timm", "open_clip_torch", "pyautoattack")
# What was registered with a mistake when the file was written, and has been corrected since: what was wrong.
CORRECTED: dict[str, str] = {}
FIELDS = (
    "perturbation_fn_cpu",
    "perturbation_fn_gpu",
    "metrics_fn",
    "adversarial_attack",
    "class_sublist",
    "idx_subsample_list",
    "parent_eval_setting",
    "transform",
    "task",
    "class_groups",
    "language",
    "keep_embeddings",
    "image_set",
    "task_options",
)

# Options of a run → its models and settings; none means all.
RUNS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "usual": ({}, [], []),
    "limit": ({"limit": 3}, ["net", "towers", "says"], ["plain", "captions", "described"]),
    "seed": ({"seed": 1}, ["net", "own", "says"], ["plain", "noisy", "described-noisy"]),
    "bfloat16": ({"dtype": "bfloat16"}, ["net", "towers"], ["plain", "kept", "captions"]),
    "random": ({"random_weights": True}, ["net"], ["plain", "noisy", "attacked"]),
}
# What computes metrics that there were not yet when the store was filled: a run adds them, from the stored texts.
LATER = {"overlap@1"}
SCORED = ("described@letters", "described.coarse@letters", "described.clip_score@towers", "prompted.zero@letters")


def golden_catalog() -> Catalog:
    """The tiny definitions."""
    name = "golden_definitions"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ASSETS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    definitions = sys.modules[name]
    catalog = Catalog(rooms=(), entry_points=False)
    for model in definitions.models():
        catalog.add_model(model)
    for setting in definitions.settings():
        catalog.add_eval_setting(setting)
    return catalog


def cells(folder: Path) -> dict[str, dict[str, str]]:
    """Run, model and setting → the digests of their evaluation, of its parts too, to see which one moved."""
    found: dict[str, dict[str, str]] = {}
    for name, (given, models, settings) in RUNS.items():
        catalog = golden_catalog()
        url = str(folder / f"{name}.db")
        options = RunOptions(db_url=url, executor="inline", data_workers=0, **given)
        everything = [*catalog.eval_setting_names(), *SCORED]
        run(catalog, options, models or catalog.model_names(), settings or everything)
        with Store.open(url) as store:
            for each in store.evaluations():
                if each.status != "complete":
                    continue
                identity = store.identity(each)
                parts = {part: digest(identity[part])[:12] for part in ("model", "forward", "view", "samples")}
                whole = {"fingerprint": each.fingerprint, "forward fingerprint": each.forward_fingerprint or ""}
                found[f"{name}/{each.model}/{each.eval_setting}"] = {**whole, **parts}
            with store.reading() as session:
                rows = session.execute(sa.text("SELECT kind, fingerprint FROM artifacts ORDER BY kind, fingerprint"))
                heads = [fingerprint for kind, fingerprint in rows if kind != "text-embeddings"]
                found[f"{name}/heads and probes"] = {str(number): each for number, each in enumerate(heads)}
    return found


def registered(kind: str) -> dict[str, str]:
    """The name of each model or eval setting that can be described here → the beginning of its digest."""
    found = {}
    for name in registry.model_names() if kind == "models" else registry.eval_setting_names():
        try:
            fields = registry.get_model(name).spec() if kind == "models" else setting_fields(name)
            found[name] = digest(describe_fields(fields))[:8]
        except TestbedError:  # it needs data, or a package that is not installed
            continue
    return found


def setting_fields(name: str) -> dict[str, Any]:
    """What a setting says besides its data set, which depends on folders."""
    setting = registry.get_eval_setting(name)
    fields = {field: getattr(setting, field) for field in FIELDS}
    prompts = None
    if setting.prompts.templates is not None:
        try:
            prompts = setting.prompts.spec(["some", "classes"])
        except (DataError, MissingExtraError):  # they come with the data, or from a package
            prompts = "not here"
    return {**fields, "prompts": prompts}


def libraries() -> dict[str, str]:
    """The releases that are installed."""
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN.read_text())
    return found


def test_cells_of_every_kind_keep_their_fingerprints(tmp_path: Path) -> None:
    before, now = golden()["cells"], cells(tmp_path)
    assert len(before) >= 60
    assert {name for name in before if name not in now} == set()
    moved = {name: [part for part in before[name] if now[name].get(part) != before[name][part]] for name in before}
    assert {name: parts for name, parts in moved.items() if parts} == {}


@pytest.mark.parametrize("kind", ["models", "eval settings"])
def test_whatever_is_registered_keeps_its_identity(kind: str) -> None:
    before, now = golden()[kind], registered(kind)
    moved = {name for name in before.keys() & now.keys() if before[name] != now[name]}
    gone = before.keys() - now.keys()
    if libraries() != golden()["libraries"]:
        assert len(moved) + len(gone) < len(before) / 10, "too many to be the libraries' doing"
        pytest.skip(f"recorded with {golden()['libraries']}, here are {libraries()}")
    assert (moved, gone) == (CORRECTED.keys() & before.keys(), set())


# A store of before the graph ----------------------------------------------------------------------------------------


def copied(url: str) -> str:
    """The kept store, at the URL of an empty database of either kind."""
    kept = ASSETS / "golden_store_0004.db"
    resolved = resolve_url(url)
    if resolved.get_backend_name() == "sqlite":
        shutil.copy(kept, str(resolved.database))
        return url
    source, target = sa.create_engine(f"sqlite:///{kept}"), sa.create_engine(resolved)
    with source.connect() as old, target.begin() as new:
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = new
        command.upgrade(config, "0004")
        tables, mirrored = sa.MetaData(), sa.MetaData()
        tables.reflect(old)
        mirrored.reflect(new)
        for table in mirrored.sorted_tables:
            rows = [dict(row) for row in old.execute(sa.select(tables.tables[table.name])).mappings()]
            if rows and table.name != "alembic_version":
                new.execute(table.insert(), rows)
            if "id" in table.columns:
                new.execute(
                    sa.text(
                        f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), (SELECT max(id) FROM {table}))"
                    )
                )
    source.dispose()
    target.dispose()
    return url


def numbers(store: Store) -> dict[tuple[str, ...], tuple[float | None, int | None]]:
    """Every metric that is stored."""
    return {
        (each.model, each.eval_setting, each.scorer, each.metric, each.slice): (each.value, each.n)
        for each in store.results()
    }


@pytest.mark.skip("names of classes are part of a data set now: its cells are derived anew, and some computed")
def test_a_store_of_before_the_graph_is_found_whole(empty_url: str) -> None:
    url = copied(empty_url)
    upgrade(url)
    catalog = golden_catalog()
    with Store.open(url) as store:
        before = numbers(store)
        for each in store.evaluations():  # texts that were embedded are found in their new table
            if each.status == "complete":
                scores, metrics = compute_scores(store, catalog, each.id)
                known = [score for score in scores if score.scorer not in LATER]
                assert same_scores(store, each.id, known, [one for one in metrics if one.scorer not in LATER]), each
    assert len(before) > 500
    options = RunOptions(db_url=url, executor="inline", data_workers=0)
    report = run(catalog, options, catalog.model_names(), [*catalog.eval_setting_names(), *SCORED])
    assert {each.status for each in report.outcomes} == {"stored", "derived", "unsupported"}
    added = {each.setting for each in report.outcomes if each.status == "derived"}
    assert added == {"described", "described-noisy", "prompted"}
    assert (report.passes, report.stored_bytes) == (0, 0)
    with Store.open(url) as store:
        now = numbers(store)
    assert {cell: value for cell, value in now.items() if cell[2] not in LATER} == before
    assert {cell[1] for cell in now if cell[2] in LATER} == added


def main() -> None:
    """Writes the file."""
    with tempfile.TemporaryDirectory() as folder:
        content = {
            "libraries": libraries(),
            "cells": cells(Path(folder)),
            "models": registered("models"),
            "eval settings": registered("eval settings"),
        }
    GOLDEN.write_text(json.dumps(content, indent=0, sort_keys=True) + "\n")
    print({name: len(part) for name, part in content.items()})


if __name__ == "__main__":
    main()

"""Identities stay as they are: a store that was filled before goes on to be found.

``assets/golden_identities.json`` has the fingerprints of tiny cells of every kind and the digests of everything that is
registered and needs no data. A change that moves one makes every stored result of its kind a stranger, so it must be
meant and named in the changelog. It is written anew by
``PYTHONPATH=tests/support python tests/identity/test_golden_identities.py``.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import sqlalchemy as sa
from golden import ASSETS, SCORED, golden_catalog

from testbed.db.store import Store, upgrade
from testbed.entities import Metric
from testbed.errors import DataError, MissingExtraError, TestbedError
from testbed.graph.options import RunOptions
from testbed.identity.describe import describe_fields, digest
from testbed.metrics.scorers.classification import F1_SCORER
from testbed.registry import registry
from testbed.runner.run import run
from testbed.scoring.changes import compared
from testbed.scoring.finish import compute_scores

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
            for each in store.evaluations.find():
                if each.status != "complete":
                    continue
                identity = store.evaluations.identity(each)
                parts = {part: digest(identity[part])[:12] for part in ("model", "forward", "view", "samples")}
                whole = {"fingerprint": each.fingerprint, "forward fingerprint": each.forward_fingerprint or ""}
                found[f"{name}/{each.model}/{each.eval_setting}"] = {**whole, **parts}
            with store.database.reading() as session:
                rows = session.execute(sa.text("SELECT kind, fingerprint FROM artifacts ORDER BY kind, fingerprint"))
                heads = [fingerprint for kind, fingerprint in rows if kind != "text-embeddings"]
                found[f"{name}/heads and probes"] = {str(number): each for number, each in enumerate(heads)}
    return found


def registered(kind: str) -> dict[str, str]:
    """The name of each model or eval setting that can be described here → the beginning of its digest.

    timm's models are alike: one in eight, chosen by its name.
    """
    found = {}
    names = registry.model_names() if kind == "models" else registry.eval_setting_names()
    for name in [name for name in names if not name.startswith("timm/") or crc32(name.encode()) % 8 == 0]:
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


# A kept store -------------------------------------------------------------------------------------------------------


# Scorers whose versions were raised since, for samples that the kept store has none of: what a comparison says of them.
LATER = ("captioning", "clip_score", "caption_similarity", "overlap")  # refused samples; texts in other Unicode forms
RAISED = tuple(f"is of {name}@1, computed by {name}@2" for name in LATER)


def told(metrics: Iterable[Metric]) -> dict[tuple[object, ...], tuple[float, float]]:
    """Values and standard errors, by what they are of, and whether there is a value."""
    return {
        (_as_first(each.scorer), each.name, each.slice, each.n, each.value is None): (each.value or 0, each.stderr or 0)
        for each in metrics
    }


def near(values: dict[Any, tuple[float, float]]) -> dict[Any, Any]:
    """What equals these values but for the last bits of a sum, in which processors differ."""
    return {key: pytest.approx(value, rel=1e-13, abs=1e-15, nan_ok=True) for key, value in values.items()}


def _as_first(scorer: str | None) -> str | None:
    """A scorer by its first version, where that was raised for what the kept store does not have."""
    name, at, _ = (scorer or "").partition("@")
    return f"{name}{at}1" if name in LATER else scorer


def test_the_metrics_of_a_kept_store_are_computed_from_its_outputs(tmp_path: Path) -> None:
    url = str(shutil.copy(ASSETS / "golden_store.db", tmp_path / "store.db"))
    upgrade(url)
    catalog, computed = golden_catalog(), 0
    with Store.open(url) as store:
        assert list(store.maintenance.check()) == []
        for each in store.evaluations.find(statuses=["complete"]):
            scores, metrics = compute_scores(store, catalog, each.id)
            metrics = [metric for metric in metrics if metric.scorer != F1_SCORER]  # which came after it
            changes = compared(store, each.id, scores, metrics)
            assert not [line for line in changes.differing if not line.endswith(RAISED)], each
            assert told(metrics) == near(told(store.results.metrics(each.id))), each
            computed += len(metrics)
    assert computed > 500


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

"""A published table made up for the tests, with every column that a figure wants, and a store that holds it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import BROWSER
from sample_world import sample_store

from testbed.corruptions import IMAGENET_C
from testbed.db.store import Store
from testbed.extensions.published.importing import import_results
from testbed.registry import Catalog

SHIFTS = (
    *("imagenetv2-matched-frequency-format-val", "objectnet-1.0-beta", "imagenet-sketch", "imagenet-a"),
    *("imagenet-r", "imagenet-vid-robust_pm0", "ytbb-robust_pm0", "imagenet-vid-robust_pm10", "ytbb-robust_pm10"),
    *("imagenetv2-matched-frequency-format-val_subsampled_class_1_8", "greyscale", "stylized_imagenet"),
    *("pgd.linf.eps0.5", "pgd.linf.eps2", "pgd.l2.eps0.1"),
)
EASIER = (
    *("val-on-objectnet-classes", "val-on-imagenet-a-classes", "val-on-imagenet-r-classes"),
    *("val-on-vid-robust-classes", "val-on-ytbb-robust-classes", "val_subsampled_class_1_8"),
)
CORRUPTED = tuple(
    f"imagenet-c.{name}.{severity}_{form}"
    for name in (*IMAGENET_C[:2], "brightness")
    for form in ("in-memory", "on-disk")
    for severity in range(1, 6)
)
TYPES = {
    "resnet50": "Standard training",
    "vgg19": "Standard training",
    **{f"standard{number}": "Standard training" for number in range(12)},
    "standard_aws": "Standard training",
    **{f"more{number}": "Trained with more data" for number in range(4)},
    **{f"resnet50_robust{number}": "Other robustness intervention" for number in range(4)},
    **{f"lp{number}": "Lp adversarially robust" for number in range(4)},
    "weak": "Low Accuracy CNN",
    "resnet50_imagenet_subsample_1_of_2_batch64_original_images": "Low Accuracy CNN",
}


def logit(p):
    return np.log(p / (1 - p))


def expit(z):
    return 1 / (1 + np.exp(-z))


def made_up(seed: int = 0) -> dict[str, dict[str, float]]:
    """Model → column → percent; standard models lie on lines, others above them."""
    generator = np.random.default_rng(seed)
    table: dict[str, dict[str, float]] = {}
    for name, kind in TYPES.items():
        val = {"weak": 0.2, "lp0": 0.48}.get(name, generator.uniform(0.58, 0.88))
        above = 0.0 if kind == "Standard training" else 0.3
        row = {"val": val}
        for column in (*SHIFTS, *CORRUPTED):
            noise = generator.normal(0, 0.05)
            row[column] = expit(0.95 * logit(val) - 0.7 + above * generator.uniform() + noise)
        for column in EASIER:
            easier = 1.3 if column == "val-on-imagenet-a-classes" else 2.2
            row[column] = expit(logit(val) + easier + generator.normal(0, 0.05))
        table[name] = {column: round(100 * value, 3) for column, value in row.items()}
    del table["more0"]["pgd.l2.eps0.1"]
    table["more0"]["pgd.l2.eps0.1_10percent"] = 33.3
    del table["more1"]["imagenet-c.brightness.3_on-disk"]
    return table


def write_table(path: Path, table: dict[str, dict[str, float]]) -> Path:
    columns = sorted({column for row in table.values() for column in row})
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", *columns])
        writer.writerows([name, *(row.get(column, "") for column in columns)] for name, row in table.items())
    return path


@pytest.fixture(scope="session")
def table() -> dict[str, dict[str, float]]:
    return made_up()


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory, table: dict[str, dict[str, float]]) -> str:
    """The URL of a store into which the table was imported."""
    folder = tmp_path_factory.mktemp("published")
    write_table(folder / "table.csv", table)
    with (folder / "types.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["model", "model_type"], *TYPES.items()])
    url = f"sqlite:///{folder / 'store.db'}"
    with Store.create(url) as store:
        import_results(store, folder / "table.csv", folder / "types.csv")
    return url


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Catalog]:
    """A store with samples of every task, and the catalog of its models and settings; whoever writes makes a copy."""
    return sample_store(tmp_path_factory.mktemp("samples"))

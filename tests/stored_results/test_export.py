"""Exports: file names that every system takes, logits as files that need no testbed, runs as files."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import string
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
import torch
from stored_cells import put_numbers
from tables import cases

from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, DatasetInfo, Evaluation, Metric, SampleInfo
from testbed.errors import MissingExtraError, StoreError, UnknownNameError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.graph.values import Values
from testbed.paths import safe_name
from testbed.stored_results.export import MANIFEST, save_logits, write_run
from testbed.tasks.classification import task

# File names -------------------------------------------------------------------------------------------------------

ODD_NAMES = [
    *("a/b", "a\\b", "a:b", "a b", "a|b", "a?b", "a*b", "a<b", "a>b", 'a"b', "a\nb", "a\tb", "a\0b", "a__b", "a_b"),
    *("Resnet", "resnet", "RESNET", "rESNET", "ü", "Ü", "u", "ö", "模型", "模", "🙂", "é", "e\u0301", "ß", "ss"),
    *("x" * 119, "x" * 120, "x" * 121, "x" * 300, "x" * 301, "X" * 300, "a/" * 200, "ü" * 200, safe_name("a/b")),
    *(
        *(".", "..", "...", "/", "//", "_", "__", " ", "-", ".hidden", "hidden.", "hidden. ", "hidden", " hidden"),
        "hidden_",
    ),
    *("con", "CON", "Con", "prn", "aux", "nul", "com1", "COM9", "lpt1", "LPT9", "con.txt", "nul.tar.gz", "conin"),
    *("ViT-B-32,laion400m_e32", "vit-b-32,laion400m_e32", "ViT-B-32/laion400m_e32", "timm/vit_b.augreg"),
    "../../etc/passwd",
]


@cases(
    "name",
    [
        *("resnet50", "imagenet-c.brightness.1_in-memory", "pgd.linf.eps0.5", "imagenet_a", "a+b", "a=b", "a@b", "a,b"),
        *("0", "convnext_tiny.fb_in22k", "config", "console", "nullable", "auxiliary", "com", "com10", "lptx"),
    ],
)
def test_a_plain_name_stays_as_it_is(name: str) -> None:
    assert safe_name(name) == name


def test_file_names_are_taken_by_every_system() -> None:
    allowed = set(string.ascii_letters + string.digits + "._+,=@-")
    for name in ODD_NAMES:
        safe = safe_name(name)
        assert safe, repr(name)
        assert set(safe) <= allowed, repr(name)
        assert not safe.startswith("."), repr(name)
        assert not safe.endswith("."), repr(name)
        assert len(safe) <= 130, repr(name)


def test_different_names_have_different_files_also_where_case_does_not_count() -> None:
    safe = [safe_name(name).lower() for name in ODD_NAMES]
    assert len(set(safe)) == len(set(ODD_NAMES)) == len(ODD_NAMES)


def test_one_name_has_always_the_same_file() -> None:
    assert safe_name("ViT-B-32/x") == "ViT-B-32_x-" + hashlib.sha256(b"ViT-B-32/x").hexdigest()[:8]


RESERVED = {"con", "prn", "aux", "nul", *(f"com{i}" for i in range(1, 10)), *(f"lpt{i}" for i in range(1, 10))}


@cases("name", ["con", "CON", "Prn", "aux", "nul", "com1", "COM9", "lpt5", "con.", "nul "])
@cases("suffix", ["", ".txt", ".net", ".tar.gz"])
def test_names_that_windows_keeps_for_itself_are_avoided(name: str, suffix: str) -> None:
    assert safe_name(name + suffix).split(".")[0].lower() not in RESERVED


def test_the_names_of_a_setting_and_a_model_cannot_be_taken_apart_in_two_ways() -> None:
    assert "__".join(map(safe_name, ("a", "b__c"))) != "__".join(map(safe_name, ("a__b", "c")))
    assert "__".join(map(safe_name, ("a_", "b"))) != "__".join(map(safe_name, ("a", "_b")))


# Logits -----------------------------------------------------------------------------------------------------------

CLASSES = ["ant", "bee", "cat", "dog", "elk", "fox"]


class Lab:
    """Evaluations whose metrics are what the classification task makes of their logits."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def samples(self, targets: Sequence[Any], places: Sequence[int] | None = None) -> list[SampleInfo]:
        places = range(len(targets)) if places is None else places
        return [
            SampleInfo(f"bild/ü {place}.png", f"d{place}", target)
            for place, target in zip(places, targets, strict=True)
        ]

    def evaluate(
        self,
        model: str,
        setting: str,
        samples: Sequence[SampleInfo],
        logits: Any = None,
        class_names: Sequence[str] | None = CLASSES,
        class_sublist: list[int] | None = None,
        restricted: bool = False,
        prompts: Sequence[str] | None = None,
        class_groups: list[list[int]] | None = None,
        source: Evaluation | None = None,
        metrics: Sequence[Metric] | None = None,
        **record: Any,
    ) -> Evaluation:
        fingerprint = f"data-{setting}-{len(samples)}-{class_names}"
        dataset = self.store.datasets.ensure(DatasetInfo("photos", fingerprint[:64], samples, class_names))
        forward: dict[str, Any] = {"restricted": restricted}
        if prompts is not None:
            forward["prompts"] = {"class_names": list(prompts), "templates": ["a {c}"]}
        cell = CellRecord(
            model,
            setting,
            f"f-{model}-{setting}-{record}"[:64],
            size=len(samples),
            origin="derived" if source else "run",
            derived_from=source.id if source else None,
            identity={"forward": forward, "view": {"class_sublist": class_sublist, "class_groups": class_groups}},
            **record,
        )
        evaluation = self.store.evaluations.begin(cell, dataset, {}, {})
        if source is None:
            self.store.outputs.append([Chunk(evaluation.id, "logits", 0, logits)])
        if metrics is None:
            definition = EvalSetting(
                setting, StandardDataset(path="."), 1, class_sublist=class_sublist, class_groups=class_groups
            )
            outputs = Values(self.store.outputs.read(evaluation.id, "logits"), samples, restricted)
            _, metrics = task.score(outputs, definition, None)
        self.store.evaluations.complete(evaluation.id, [], metrics)
        return self.store.evaluations.get(evaluation.id)


@pytest.fixture
def backend() -> str:
    """What files are written does not depend on the database."""
    return "sqlite"


@pytest.fixture
def lab(store: Store) -> Lab:
    return Lab(store)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def logits_of(rows: int, classes: int = 6, seed: int = 0, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).standard_normal((rows, classes)).astype(dtype)


def targets_of(rows: int, classes: int = 6, seed: int = 1) -> list[int]:
    drawn: list[int] = np.random.default_rng(seed).integers(0, classes, rows).tolist()
    return drawn


def only_file(folder: Path, entries: list[dict[str, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of the one file that was written, read by numpy alone."""
    (entry,) = entries
    with np.load(folder / entry["file"], allow_pickle=False) as loaded:
        return {name: loaded[name] for name in loaded.files}


def top1(arrays: dict[str, Any]) -> float:
    """What a reader without testbed computes."""
    return float((arrays["logits"].argmax(axis=1) == arrays["targets"]).mean())


def test_logits_are_saved_with_all_that_belongs_to_them(store: Store, lab: Lab, out: Path) -> None:
    logits, targets = logits_of(40), targets_of(40)
    lab.evaluate("net", "val", lab.samples(targets), logits)
    arrays = only_file(out, save_logits(store, "val", out))
    assert set(arrays) == {"logits", "targets", "sample_ids", "class_names"}
    assert arrays["logits"].dtype == np.float32
    assert arrays["logits"].tobytes() == logits.tobytes()
    assert arrays["targets"].tolist() == targets
    assert arrays["sample_ids"].tolist() == [f"bild/ü {place}.png" for place in range(40)]
    assert arrays["class_names"].tolist() == CLASSES
    assert top1(arrays) == store.results.find(metrics=["top1"])[0].value


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_logits_of_other_precisions_are_saved_as_they_are_read(store: Store, lab: Lab, out: Path, dtype: str) -> None:
    logits: Any = logits_of(20)
    logits = torch.from_numpy(logits).to(torch.bfloat16) if dtype == "bfloat16" else logits.astype(dtype)
    lab.evaluate("net", "val", lab.samples(targets_of(20)), logits)
    entries = save_logits(store, "val", out)
    arrays = only_file(out, entries)
    expected = logits.float().numpy() if dtype == "bfloat16" else logits
    assert arrays["logits"].dtype == expected.dtype
    assert arrays["logits"].tobytes() == expected.tobytes()
    assert entries[0]["stored_dtype"] == dtype


@pytest.mark.parametrize("sublist", [[0, 2, 3], [5, 1], [3]])
def test_of_a_setting_with_a_class_sublist_the_logits_of_these_classes_are_saved(
    store: Store, lab: Lab, out: Path, sublist: list[int]
) -> None:
    logits, targets = logits_of(60), targets_of(60, len(sublist))
    lab.evaluate("net", "val", lab.samples(targets), logits, class_sublist=sublist)
    arrays = only_file(out, save_logits(store, "val", out))
    assert (arrays["logits"] == logits[:, sublist]).all()
    assert arrays["class_sublist"].tolist() == sublist
    assert arrays["class_names"].tolist() == [CLASSES[index] for index in sublist]
    assert top1(arrays) == store.results.find(metrics=["top1"])[0].value


@pytest.mark.parametrize("prompts", [None, CLASSES])
def test_of_a_setting_with_groups_of_classes_the_largest_logit_of_each_is_saved(
    store: Store, lab: Lab, out: Path, prompts: Any
) -> None:
    logits, names = logits_of(40), ["insects", "beasts"]
    groups = [[0, 1], [4, 2, 3]]
    made = {"class_names": names, "class_groups": groups, "prompts": prompts}
    lab.evaluate("net", "val", lab.samples(targets_of(40, 2)), logits, **made)
    arrays = only_file(out, save_logits(store, "val", out))
    assert (arrays["logits"] == np.stack([logits[:, group].max(axis=1) for group in groups], axis=1)).all()
    assert arrays["class_names"].tolist() == names
    assert top1(arrays) == store.results.find(metrics=["top1"])[0].value


def test_logits_that_the_model_restricted_itself_are_saved_as_they_are(store: Store, lab: Lab, out: Path) -> None:
    logits, targets = logits_of(30, 2), targets_of(30, 2)
    names = ["fox", "bee"]
    lab.evaluate("net", "val", lab.samples(targets), logits, class_sublist=[5, 1], restricted=True, class_names=names)
    arrays = only_file(out, save_logits(store, "val", out))
    assert (arrays["logits"] == logits).all()
    assert arrays["class_names"].tolist() == names
    assert top1(arrays) == store.results.find(metrics=["top1"])[0].value


def test_a_derived_evaluation_is_saved_with_its_own_samples_and_classes(store: Store, lab: Lab, out: Path) -> None:
    logits = logits_of(50)
    source = lab.evaluate("net", "all", lab.samples(targets_of(50)), logits)
    places = [49, 3, 3 + 4, 0, 22, 11]
    samples = lab.samples([0, 1, 1, 0, 0, 1], places)
    lab.evaluate("net", "part", samples, class_sublist=[4, 2], source=source)
    entries = save_logits(store, "part", out)
    arrays = only_file(out, entries)
    assert (arrays["logits"] == logits[places][:, [4, 2]]).all()
    assert arrays["sample_ids"].tolist() == [f"bild/ü {place}.png" for place in places]
    assert arrays["class_names"].tolist() == ["elk", "cat"]
    assert top1(arrays) == store.results.find(["net"], ["part"], ["top1"])[0].value == entries[0]["metrics"]["top1"]


def test_the_classes_of_a_zero_shot_head_are_those_of_its_prompts(store: Store, lab: Lab, out: Path) -> None:
    prompts = [f"a {name}" for name in CLASSES]
    lab.evaluate("clip", "val", lab.samples([0, 1]), logits_of(2), prompts=prompts)
    assert only_file(out, save_logits(store, "val", out))["class_names"].tolist() == prompts


@pytest.mark.parametrize("names", [None, ["too", "few"]])
def test_classes_whose_names_are_not_known_are_numbered(store: Store, lab: Lab, out: Path, names: Any) -> None:
    lab.evaluate("net", "val", lab.samples([0, 1]), logits_of(2), class_names=names)
    arrays = only_file(out, save_logits(store, "val", out))
    assert arrays["class_names"].tolist() == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_tables_give_every_bit_back(store: Store, lab: Lab, out: Path, dtype: str, form: str) -> None:
    logits = logits_of(50, dtype=dtype)
    logits[0] = [0.0, -0.0, np.inf, -np.inf, np.finfo(dtype).tiny, np.finfo(dtype).max]
    targets = targets_of(50)
    lab.evaluate("net", "val", lab.samples(targets), logits)
    (entry,) = save_logits(store, "val", out, form=form)
    assert entry["file"].endswith(f".{form}")
    if form == "csv":
        with (out / entry["file"]).open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        frame = pd.DataFrame({name: [row[place] for row in rows] for place, name in enumerate(header)})
        frame = frame.astype({name: int if name == "target" else dtype for name in header[1:]})
    else:
        frame = pd.read_parquet(out / entry["file"])
    assert list(frame.columns) == ["sample_id", "target", *(f"logit_{index}" for index in range(6))]
    assert frame["sample_id"].tolist() == [f"bild/ü {place}.png" for place in range(50)]
    assert frame["target"].tolist() == targets
    back = np.column_stack([frame[f"logit_{index}"].to_numpy() for index in range(6)])
    assert back.dtype == dtype
    assert back.tobytes() == logits.tobytes()


def test_parquet_without_pyarrow_names_the_extra(
    store: Store, lab: Lab, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.evaluate("net", "val", lab.samples([0, 1]), logits_of(2))
    for name in ("pyarrow", "pyarrow.parquet", "fastparquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"--format parquet needs .*pip install -e '\.\[parquet\]'"):
        save_logits(store, "val", out, form="parquet")
    assert list(out.iterdir()) == []


def test_the_manifest_says_what_each_file_is(store: Store, lab: Lab, out: Path) -> None:
    metrics = [Metric("top1", 0.5, 4), Metric("top1", 1.0, 1, slice="easy"), Metric("top5", None, 4)]
    evaluation = lab.evaluate("net", "val", lab.samples([0, 1, 2, 3]), logits_of(4), metrics=metrics, sample_limit=4)
    other = lab.evaluate("Other/Net", "val", lab.samples([0, 1, 2, 3]), logits_of(4, seed=5), random_weights=True)
    entries = save_logits(store, "val", out / "new" / "folder")
    manifest = json.loads((out / "new" / "folder" / MANIFEST).read_text(encoding="utf-8"))
    assert manifest == {"files": entries}
    assert [entry["model"] for entry in entries] == ["Other/Net", "net"]
    assert entries[1] == {
        "model": "net",
        "eval_setting": "val",
        "file": "val__net.npz",
        "sha256": hashlib.sha256((out / "new" / "folder" / "val__net.npz").read_bytes()).hexdigest(),
        "samples": 4,
        "classes": 6,
        "stored_dtype": "float32",
        "evaluation": evaluation.id,
        "fingerprint": evaluation.fingerprint,
        "random_weights": False,
        "sample_limit": 4,
        "metrics": {"top1": 0.5, "top5": None},
    }
    assert entries[0]["evaluation"] == other.id
    assert entries[0]["random_weights"] is True
    on_disk = sorted(path.name for path in (out / "new" / "folder").iterdir())
    assert on_disk == sorted([MANIFEST, *(entry["file"] for entry in entries)])


def test_the_evaluation_that_counts_is_saved(store: Store, lab: Lab, out: Path) -> None:
    full = lab.evaluate("net", "val", lab.samples([0, 1, 2]), logits_of(3))
    lab.evaluate("net", "val", lab.samples([0, 1]), logits_of(2), sample_limit=2)
    put_numbers(store, "net", "val", Metric("top1", 0.75))
    (entry,) = save_logits(store, "val", out)
    assert (entry["evaluation"], entry["samples"]) == (full.id, 3)


def test_saving_again_replaces_the_files(store: Store, lab: Lab, out: Path) -> None:
    lab.evaluate("net", "val", lab.samples([0, 1]), logits_of(2))
    first = save_logits(store, "val", out)
    (out / first[0]["file"]).write_bytes(b"garbage")
    (out / "own.txt").write_text("stays")
    arrays = only_file(out, save_logits(store, "val", out))
    assert (arrays["logits"] == logits_of(2)).all()
    assert (out / "own.txt").read_text() == "stays"


def test_a_model_or_a_setting_without_logits_is_named(store: Store, lab: Lab, out: Path) -> None:
    lab.evaluate("net", "imagenet-a", lab.samples([0]), logits_of(1))
    for setting in ("imagenet-a", "imported"):
        put_numbers(store, "published", setting, Metric("top1", 0.5))
    for setting, models, said in (
        ("imagenet-b", None, r"unknown eval setting 'imagenet-b'.*did you mean 'imagenet-a'"),
        ("imagenet-a", ["net", "nobody"], "no logits of nobody on imagenet-a"),
        ("imagenet-a", ["net", "published"], "no logits of published on imagenet-a"),
        ("imported", None, "no logits on imported"),
    ):
        with pytest.raises(UnknownNameError, match=said):
            save_logits(store, setting, out / "out", models=models)
    assert not (out / "out").exists()
    assert [each["model"] for each in save_logits(store, "imagenet-a", out, models=["n*"])] == ["net"]


def test_damaged_logits_are_not_saved(store: Store, lab: Lab, out: Path) -> None:
    evaluation = lab.evaluate("net", "val", lab.samples([0]), logits_of(1))
    with store.database.writing() as session:
        session.execute(
            sa.text("UPDATE output_chunks SET checksum = 'another' WHERE evaluation_id = :id"), {"id": evaluation.id}
        )
    with pytest.raises(StoreError, match="checksum"):
        save_logits(store, "val", out)
    assert list(out.iterdir()) == []


def test_an_evaluation_without_samples_is_told(store: Store, lab: Lab, out: Path) -> None:
    evaluation = store.evaluations.begin(CellRecord("net", "val", "f", size=2), None, {}, {})
    store.outputs.append([Chunk(evaluation.id, "logits", 0, logits_of(2))])
    store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.5)])
    with pytest.raises(StoreError, match="has no samples"):
        save_logits(store, "val", out)


@pytest.mark.parametrize(
    ("targets", "as_texts"),
    [
        *((odd, True) for odd in ([None, None], [{"a": 1}, {"a": 2}], [[1], [2, 3]], [1, "1"])),
        *((["yes", "nö"], False), ([[1, 2], [3, 4]], False)),
    ],
)
def test_targets_that_are_no_array_are_saved_as_json_texts(
    store: Store, lab: Lab, out: Path, targets: Any, as_texts: bool
) -> None:
    """Frames of a video have one label or several; and nothing is ever written as a pickle. Also with odd metrics."""
    odd = [Metric("pm0", 0.5), Metric("perplexity", float("inf"), unit="")]
    evaluation = lab.evaluate("net", "val", lab.samples(targets), logits_of(2), metrics=odd)
    saved = only_file(out, save_logits(store, "val", out))["targets"].tolist()
    assert ([json.loads(text) for text in saved] if as_texts else saved) == targets
    save_logits(store, "val", out, form="csv")
    _, *rows = csv.reader((out / "val__net.csv").read_text().splitlines())
    if isinstance(targets[0], str):
        assert [row[1] for row in rows] == targets
    else:
        assert [json.loads(row[1]) for row in rows] == targets
    write_run(store, [evaluation.id], out)
    for name in (MANIFEST, "metrics.json"):
        json.loads((out / name).read_text(), parse_constant=pytest.fail)


def test_long_names_of_a_model_and_a_setting_fit_a_file_name(store: Store, lab: Lab, out: Path) -> None:
    lab.evaluate("m" * 140, "s" * 140, lab.samples([0]), logits_of(1))
    (entry,) = save_logits(store, "s" * 140, out)
    assert (out / entry["file"]).is_file()


# Runs -------------------------------------------------------------------------------------------------------------


def test_a_run_is_written_as_metrics_and_outputs(store: Store, lab: Lab, out: Path) -> None:
    logits = logits_of(8)
    metrics = [
        Metric("top1", 0.25, 8, 0.15, scorer="a@1"),
        Metric("top1", None, 2, None, "hard"),
        Metric("f", 3.5, unit="m"),
    ]
    first = lab.evaluate("Net/1", "val", lab.samples(targets_of(8)), logits, metrics=metrics)
    derived = lab.evaluate("Net/1", "part", lab.samples([0], [3]), source=first)
    put_numbers(store, "Net/1", "val", Metric("top1", 0.5))
    imported = max(each.id for each in store.evaluations.find())
    assert write_run(store, [first.id, derived.id, imported], out / "log" / "dir") == 2
    written = json.loads((out / "log" / "dir" / "metrics.json").read_text(encoding="utf-8"))
    assert [(entry["model"], entry["eval_setting"]) for entry in written] == [
        ("Net/1", "val"),
        ("Net/1", "part"),
        ("Net/1", "val"),
    ]
    by_key = {(each["metric"], each["slice"]): each for each in written[0]["metrics"]}
    assert by_key["top1", "overall"] == {
        "metric": "top1", "slice": "overall", "value": 0.25, "unit": "fraction", "n": 8, "stderr": 0.15,
    }  # fmt: skip
    assert by_key["top1", "hard"]["value"] is None
    assert by_key["f", "overall"]["unit"] == "m"
    assert "outputs" not in written[2]
    for entry, expected in zip(written[:2], (logits, logits[[3]]), strict=True):
        path = out / "log" / "dir" / entry["outputs"]
        assert re.fullmatch(r"(val|part)/Net_1-[0-9a-f]{8}\.npz", entry["outputs"])
        with np.load(path, allow_pickle=False) as arrays:
            assert (arrays["logits"] == expected).all()


def test_a_run_of_nothing_is_an_empty_list(store: Store, out: Path) -> None:
    assert write_run(store, [], out) == 0
    assert json.loads((out / "metrics.json").read_text()) == []

"""Published tables into the store and out again: ImageNet-testbed's form and CLIP benchmark's."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import cases

from testbed.claims.tables import read_csv
from testbed.db.store import Store
from testbed.entities import Metric
from testbed.errors import StoreError
from testbed.extensions.published.importing import import_results
from testbed.stored_results.imagenet_testbed_table import as_percent, export_csv, split_column

Write = Callable[..., Path]


@pytest.fixture
def backend() -> str:
    """Importing and exporting do not depend on the database."""
    return "sqlite"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a file: bytes or text as they are, or rows as CSV."""

    def make(content: Any, name: str = "table.csv") -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8", newline="")
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(content)
        return path

    return make


def values(store: Store) -> dict[tuple[str, str, str], float | None]:
    return {(each.model, each.eval_setting, each.metric): each.value for each in store.results.find()}


def refused(store: Store, path: Path, match: str) -> str:
    """Imports what must be refused; nothing may be in the store then. The message."""
    with pytest.raises(StoreError, match=match) as caught:
        import_results(store, path)
    assert store.evaluations.find() == []
    assert store.names.all("model") == []
    assert str(path) in str(caught.value)
    return str(caught.value)


# ImageNet-testbed's table -----------------------------------------------------------------------------------------

TABLE = [
    ["model", "val", "imagenet-a", "imagenet-vid-robust_pm0", "imagenet-vid-robust_pm10"],
    ["resnet50", "76.13", "0.0", "60.5", "50.25"],
    ["ViT-B-32,openai", "63.2", "", "", "40"],
    ["only-a", "", "100", "", ""],
]


def test_percent_become_fractions(store: Store, write: Write) -> None:
    report = import_results(store, write(TABLE))
    assert values(store) == {
        ("resnet50", "val", "top1"): 76.13 / 100,
        ("resnet50", "imagenet-a", "top1"): 0.0,
        ("resnet50", "imagenet-vid-robust", "pm0"): 60.5 / 100,
        ("resnet50", "imagenet-vid-robust", "pm10"): 50.25 / 100,
        ("ViT-B-32,openai", "val", "top1"): 63.2 / 100,
        ("ViT-B-32,openai", "imagenet-vid-robust", "pm10"): 0.4,
        ("only-a", "imagenet-a", "top1"): 1.0,
    }
    assert (report.form, report.values, report.cells, report.new, report.notes) == (
        "ImageNet-testbed's table", 7, 6, 7, [],
    )  # fmt: skip
    assert store.evaluations.find() == []
    assert {(each.source.name, each.source.path, each.why) for each in store.claims.find()} == {
        ("table", "table.csv", None)
    }
    assert {(each.origin, each.evaluation_id) for each in store.results.find()} == {("published", 0)}
    assert {(each.unit, each.n, each.stderr, each.slice) for each in store.results.find()} == {
        ("fraction", None, None, "overall")
    }


@cases(
    ("column", "meant"),
    [
        ("val", ("val", "top1")),
        ("imagenet-vid-robust_pm0", ("imagenet-vid-robust", "pm0")),
        ("ytbb-robust_pm10", ("ytbb-robust", "pm10")),
        ("imagenet-c.brightness.1_in-memory", ("imagenet-c.brightness.1_in-memory", "top1")),
        ("val_subsampled_class_1_8", ("val_subsampled_class_1_8", "top1")),
        ("a_pm1", ("a_pm1", "top1")),
        ("a_pm0_10percent", ("a_pm0_10percent", "top1")),
        ("apm0", ("apm0", "top1")),
        ("_pm0", ("_pm0", "top1")),
        ("pm10", ("pm10", "top1")),
        ("a_b_pm0", ("a_b", "pm0")),
    ],
)
def test_a_column_is_a_setting_or_one_with_its_metric(column: str, meant: tuple[str, str]) -> None:
    assert split_column(column) == meant


@pytest.mark.parametrize("empty", ["", " ", "nan", "NaN", "\t"])
def test_an_empty_field_is_no_value_and_what_has_none_is_not_added(store: Store, write: Write, empty: str) -> None:
    report = import_results(store, write([["model", "a", "b"], ["nothing", empty, empty], ["net", empty, "50"]]))
    assert values(store) == {("net", "b", "top1"): 0.5}
    assert report.values == 1
    assert [each.name for each in store.names.all("eval setting")] == ["b"]
    assert [each.name for each in store.names.all("model")] == ["net"]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfmodel,val\nnet,50\n",  # as Excel writes it
        *(b"model,val\r\nnet,50\r\n", b"model,val\nnet,50", b'"model","val"\n"net","50"\n', b"model,val\nnet,5e1\n"),
        *(b" model , val \nnet , 50 \n", b"model,val\n\nnet,50\n\n\n"),
        'model,"set""ting, ü"\n"mo,del 模",50\n'.encode(),
    ],
)
def test_forms_of_csv_that_programs_write_are_read(store: Store, write: Write, content: bytes) -> None:
    import_results(store, write(content))
    odd = "模".encode() in content
    assert values(store) == {("mo,del 模" if odd else "net", 'set"ting, ü' if odd else "val", "top1"): 0.5}


def test_a_table_with_low_values_is_not_taken_for_fractions(store: Store, write: Write) -> None:
    import_results(store, write([["model", "val", "a"], ["net", "1.01", "0.3"]]))
    assert values(store)["net", "a", "top1"] == 0.3 / 100


def test_importing_again_after_a_model_was_renamed_makes_no_second_model(store: Store, write: Write) -> None:
    import_results(store, write(TABLE))
    store.names.rename("model", "resnet50", "resnet50-v1")
    assert import_results(store, write(TABLE)).new == 0
    assert [each.name for each in store.names.all("model")] == ["ViT-B-32,openai", "only-a", "resnet50-v1"]
    assert values(store)["resnet50-v1", "val", "top1"] == 76.13 / 100


def test_of_a_corrected_table_the_new_values_count(store: Store, write: Write) -> None:
    import_results(store, write(TABLE))
    corrected = [row[:] for row in TABLE]
    corrected[1][1] = "77"
    report = import_results(store, write(corrected))
    assert report.new == 7
    assert values(store)["resnet50", "val", "top1"] == 0.77
    assert len(store.results.find(["resnet50"], ["val"])) == 1
    assert [each.published for each in store.claims.find(["resnet50"], ["val"])] in (["76.13", "77"], ["77", "76.13"])


def test_model_types_are_stored_with_the_models(store: Store, write: Write) -> None:
    types = write(
        [
            ["model", "model_type", "natural_shift_model_type"],
            ["resnet50", "Standard training", "x"],
            ["ViT-B-32,openai", "Trained with more data", "y"],
            ["not in the table", "Standard training", "z"],
        ],
        "types.csv",
    )
    import_results(store, write(TABLE), types)
    assert {each.name: each.model_type for each in store.names.all("model")} == {
        "resnet50": "Standard training",
        "ViT-B-32,openai": "Trained with more data",
        "only-a": None,
    }
    assert store.results.find(["resnet50"], ["val"])[0].model_type == "Standard training"


def test_a_table_of_types_without_its_columns_is_refused_and_nothing_imported(store: Store, write: Write) -> None:
    types = write([["name", "type"], ["resnet50", "x"]], "types.csv")
    with pytest.raises(StoreError, match=r"types\.csv should have the columns 'model' and 'model_type'.*name, type"):
        import_results(store, write(TABLE), types)
    with pytest.raises(StoreError, match="cannot be read"):
        import_results(store, write(TABLE), types.with_name("missing.csv"))
    assert store.evaluations.find() == []


# CLIP benchmark's table -------------------------------------------------------------------------------------------

CLIP = [
    ["acc1", "acc5", "mean_per_class_recall", "dataset", "model", "pretrained", "task", "image_retrieval_recall@5",
     "model_fullname"],
    ["0.25", "0.75", "0.125", "wds/vtab/cifar10", "ViT-B-32", "laion400m_e32", "zeroshot_classification", "",
     "ViT-B-32 laion400m_e32"],
    ["", "", "", "mscoco_captions", "ViT-B-32", "laion400m_e32", "zeroshot_retrieval", "0.5", "ViT-B-32 laion400m_e32"],
    ["0.5", "nan", "", "wds/vtab/cifar10", "RN50", "openai", "zeroshot_classification", "", "RN50 openai"],
]  # fmt: skip


def test_clip_benchmarks_table_is_recognised(store: Store, write: Write) -> None:
    report = import_results(store, write(CLIP, "benchmark.csv"))
    assert values(store) == {
        ("ViT-B-32,laion400m_e32", "wds/vtab/cifar10", "top1"): 0.25,
        ("ViT-B-32,laion400m_e32", "wds/vtab/cifar10", "top5"): 0.75,
        ("ViT-B-32,laion400m_e32", "wds/vtab/cifar10", "mean_per_class_recall"): 0.125,
        ("ViT-B-32,laion400m_e32", "mscoco_captions", "image_retrieval_recall@5"): 0.5,
        ("RN50,openai", "wds/vtab/cifar10", "top1"): 0.5,
    }
    assert (report.form, report.values, report.cells, report.new) == ("CLIP benchmark's table", 5, 3, 5)
    assert report.notes == ["not defined (NaN): 1 of its values are left out"]
    again = import_results(store, write(CLIP, "benchmark.csv"))
    assert (again.cells, again.new) == (3, 0)


def clip_row(**changed: str) -> list[str]:
    return [changed.get(column, value) for column, value in zip(CLIP[0], CLIP[1], strict=True)]


def test_of_a_cell_that_is_there_twice_the_first_value_counts(store: Store, write: Write) -> None:
    report = import_results(store, write([*CLIP, clip_row(acc1="0.3")]))
    assert (report.values, report.cells) == (8, 3)
    assert values(store)["ViT-B-32,laion400m_e32", "wds/vtab/cifar10", "top1"] == 0.25


def clip_records() -> list[dict[str, Any]]:
    """The same results as CLIP benchmark writes them to JSON: numbers as numbers, NaN bare."""
    records = []
    for row in CLIP[1:]:
        named = dict(zip(CLIP[0], row, strict=True))
        metrics = {name: named.pop(name) for name in list(named) if name.startswith(("acc", "mean", "image"))}
        numbers = {name: float(value) for name, value in metrics.items() if value}
        records.append({**named, "language": "en", "metrics": numbers, "classnames": ["cat", "dog"]})
    return records


@pytest.mark.parametrize("alone", [True, False])
def test_clip_benchmarks_json_is_its_table(store: Store, write: Write, tmp_path: Path, alone: bool) -> None:
    records = clip_records()
    if alone:  # one file for each cell, as the program writes them
        for number, record in enumerate(records):
            (tmp_path / f"{number}.json").write_text(json.dumps(record))
            assert import_results(store, tmp_path / f"{number}.json").cells == 1
    else:
        (tmp_path / "all.json").write_text(json.dumps(records))
        assert "NaN" in (tmp_path / "all.json").read_text()
        report = import_results(store, tmp_path / "all.json")
        assert (report.form, report.values, report.cells) == ("CLIP benchmark's table", 5, 3)
    found = values(store)
    import_results(store, write(CLIP, "benchmark.csv"))
    assert values(store) == found
    assert len(found) == 5


# Other files ------------------------------------------------------------------------------------------------------


ONE_RECORD = {"dataset": "d", "model": "m", "pretrained": "p", "task": "t", "metrics": {"acc1": 0.5}}
NO_NUMBERS = ["abc", "50%", "5O", "1,5", "0x10", "--", "1_0", "１0", "0x1", "1e", "5 0", "--5"]


def table(*cells: str) -> list[list[str]]:
    return [["model", "val", "sketch"], ["a", "50", "60"], list(cells)]


def record(**changed: Any) -> str:
    return json.dumps({key: value for key, value in {**ONE_RECORD, **changed}.items() if value != "left out"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((table("b", "50", no), r"row 3, column sketch: .* is not between 0 and 100") for no in
          ("100.1", "-0.1", "inf", "-inf", "7613")),
        *((table("b", text, "1"), f"row 3, column val: a number was expected.*{re.escape(repr(text))}")
          for text in NO_NUMBERS),
        ([["model", "val", "sketch"], ["a", "0.7613", "0.24"], ["b", "1.0", ""]], "seem to be fractions; give a table"),
        *((table(*["net", "50", "60", "70"][:n]), rf"row 3: 3 columns were expected, {n} were found")
          for n in (1, 2, 4)),
        ([["model", "val", "a", " val"], ["net", "1", "2", "3"]], "has the column 'val' twice"),
        (table("", "50", "60"), "row 3"),
        *((content, "is empty|is not a table") for content in ("", "\n\n", "\ufeff")),
        *((content, "cannot be read")
          for content in (random.Random(0).randbytes(500), b"model,val\nnet,\xff50\n")),
        (b"model,val\nn\0et,50\n", "row 2|cannot be read"),
        ("model" + "".join(f",{number}" for number in range(100_001)) + "\n", r"has 100,002 columns; at most 100,000"),
        ([CLIP[0], CLIP[2], clip_row(acc1="25.0")], r"row 3, column acc1: 25.0 is not between 0 and 1"),
        ([CLIP[0], clip_row(acc5="high")], "row 2, column acc5: a number was expected, 'high'"),
        ("{", "cannot be read as JSON"),
        ("[]", "should hold JSON objects"),
        ("[1]", "should hold JSON objects"),
        (record(metrics="left out"), "has an unknown format: it begins with dataset, model"),
        (record(pretrained=None), "record 1: an object with"),
        (record(metrics={"acc1": [1]}), "the metric acc1 should be a number"),
        (record(metrics={"acc1": 71.2}), "71.2 is not between 0 and 1"),
        (record(task="captioning", metrics={"CIDEr": "1e400"}), "1e400 is not finite"),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told_and_nothing_imported(
    store: Store, write: Write, content: Any, said: str
) -> None:
    is_json = isinstance(content, str) and content[:1] in ("{", "[")
    refused(store, write(content, "table.json" if is_json else "table.csv"), said)


def test_a_missing_file_and_a_folder_are_refused(store: Store, tmp_path: Path) -> None:
    refused(store, tmp_path / "missing.csv", "cannot be read: .*No such file")
    refused(store, tmp_path, "has no JSON files")


# Exporting --------------------------------------------------------------------------------------------------------


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_what_was_imported_is_exported_in_the_same_form(store: Store, write: Write, tmp_path: Path) -> None:
    import_results(store, write(TABLE))
    assert export_csv(store.results.find(), tmp_path / "out.csv") == (3, 4)
    header, *rows = read(tmp_path / "out.csv")
    assert header == ["model", "imagenet-a", "imagenet-vid-robust_pm0", "imagenet-vid-robust_pm10", "val"]
    assert rows == [
        ["resnet50", "0.0", "60.5", "50.25", "76.13"],
        ["ViT-B-32,openai", "", "", "40", "63.2"],
        ["only-a", "100", "", "", ""],
    ]


def test_models_are_ordered_by_val_and_those_without_it_come_last_by_name(
    store: Store, write: Write, tmp_path: Path
) -> None:
    rows = [
        ["c", "50", "1"],
        ["z", "", "9"],
        ["a", "50", "2"],
        ["zero", "0", ""],
        ["best", "90.5", ""],
        ["m", "", "99"],
    ]
    import_results(store, write([["model", "val", "sketch"], *rows]))
    export_csv(store.results.find(), tmp_path / "out.csv")
    assert [row[0] for row in read(tmp_path / "out.csv")[1:]] == ["best", "a", "c", "zero", "m", "z"]
    export_csv(store.results.find(), tmp_path / "out.csv", sort_by="sketch")
    assert [row[0] for row in read(tmp_path / "out.csv")[1:]] == ["m", "z", "a", "c", "best", "zero"]


def test_ones_own_value_is_exported_before_an_imported_one(
    store: Store, write: Write, builder: Any, tmp_path: Path
) -> None:
    import_results(store, write(TABLE))
    builder(store).complete("resnet50", "val", 0.5)
    builder(store).complete("own", "val", 0.25)
    export_csv(store.results.find(), tmp_path / "out.csv")
    table = {row[0]: row[-1] for row in read(tmp_path / "out.csv")}
    assert (table["resnet50"], table["own"], table["ViT-B-32,openai"]) == ("50.0", "25.0", "63.2")


def test_only_rates_of_all_samples_are_exported(store: Store, builder: Any, tmp_path: Path) -> None:
    metrics = [
        Metric("top1", 0.5),
        Metric("top1", 0.75, slice="easy"),
        Metric("top5", 0.9),
        Metric("loss", 2.0, unit="nats"),
    ]
    builder(store).complete("net", "val", metrics=metrics)
    builder(store).complete("net", "own", metrics=[Metric("top1", 12.0, unit="points")])
    builder(store).complete("net", "none", metrics=[Metric("top1", None)])
    export_csv(store.results.find(), tmp_path / "out.csv")
    assert read(tmp_path / "out.csv") == [["model", "val"], ["net", "50.0"]]


def test_an_empty_store_is_exported_as_a_header(store: Store, tmp_path: Path) -> None:
    assert export_csv(store.results.find(), tmp_path / "out.csv") == (0, 0)
    assert read(tmp_path / "out.csv") == [["model"]]


def percentages(kind: str, count: int = 400) -> list[float]:
    draw = random.Random(11)
    if kind == "decimals":
        return [round(draw.uniform(0, 100), draw.randrange(11)) for _ in range(count)]
    if kind.startswith("shares"):
        sizes = [10_000, 50_000] if kind == "shares" else [7500, 18_514, 30_000]
        return [100 * draw.randrange(size + 1) / size for size in draw.choices(sizes, k=count)]
    if kind == "float32":
        return [float(np.float32(draw.uniform(0, 100))) for _ in range(count)]
    return [draw.uniform(0, 100) for _ in range(count)]


def table_of(numbers: Sequence[float]) -> list[list[str]]:
    settings = [f"s{index:03d}" for index in range(20)]
    rows = [numbers[start : start + 20] for start in range(0, len(numbers), 20)]
    return [["model", *settings], *[[f"m{index:03d}", *map(repr, row)] for index, row in enumerate(rows)]]


@pytest.mark.parametrize("kind", ["decimals", "shares", "shares of odd sizes", "float32", "doubles"])
def test_percentages_and_their_values_come_back_bit_for_bit(
    store: Store, write: Write, tmp_path: Path, kind: str
) -> None:
    given = table_of(percentages(kind))
    import_results(store, write(given))
    export_csv(store.results.find(), tmp_path / "out.csv", sort_by="none")
    numbers = [
        {(row[0], column): float(text) for row in rows for column, text in zip(header[1:], row[1:], strict=True)}
        for header, *rows in (given, read(tmp_path / "out.csv"))
    ]
    assert numbers[0] == numbers[1]
    with Store.create(str(tmp_path / "other.db")) as other:
        import_results(other, tmp_path / "out.csv")
        assert values(other) == values(store)


def test_percentages_are_written_as_short_as_they_can_be() -> None:
    assert [as_percent(value) for value in (0.7613, 0.0, 1.0, 0.333, 1e-07, 0.5799)] == [
        "76.13", "0.0", "100.0", "33.3", "1e-05", "57.99",
    ]  # fmt: skip


def test_exporting_twice_writes_the_same_file(store: Store, write: Write, tmp_path: Path) -> None:
    import_results(store, write(table_of(percentages("shares"))))
    export_csv(store.results.find(), tmp_path / "one.csv")
    export_csv(reversed(store.results.find()), tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


# What neither database can store ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["x" * 600, "a\0b", "a\ud800b"], ids=["long", "NUL", "surrogate"])
@pytest.mark.parametrize("place", ["model", "pretrained", "dataset", "metrics", "eval_setting"])
def test_a_name_that_cannot_be_stored_is_refused_wherever_it_stands(
    store: Store, write: Write, place: str, bad: str
) -> None:
    content = record(**{"task": "zeroshot_classification", place: {bad: "0.5"} if place == "metrics" else bad})
    said = r"too long|NUL|cannot be printed|surrogate|not a metric"
    assert len(refused(store, write(content, "table.json"), said)) < 600


def test_a_type_of_models_that_cannot_be_stored_is_refused(store: Store, write: Write) -> None:
    types = write([["model", "model_type"], ["net", "x" * 300]], "types.csv")
    with pytest.raises(StoreError, match=r"model_type of the table models cannot hold .* 300 characters"):
        import_results(store, write([["model", "val"], ["net", "50"]]), types)
    assert store.evaluations.find() == []


def test_a_table_of_many_columns_is_read_in_one_go(write: Write) -> None:
    """Comparing each name with each other would take longer than a test may."""
    columns = [f"s{number}" for number in range(99_999)]
    assert read_csv(write([["model", *columns], ["net", *["50"] * len(columns)]]))[0] == ["model", *columns]

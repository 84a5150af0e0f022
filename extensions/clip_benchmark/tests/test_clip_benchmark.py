"""Results in CLIP benchmark's forms: written, read again, and put together."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from testbed.db.store import Store
from testbed.entities import Metric, Result
from testbed.errors import StoreError
from testbed.eval_settings.benchmark_families.clip_benchmark_names import place_of
from testbed.extensions.clip_benchmark import clip_benchmark_files
from testbed.extensions.clip_benchmark.clip_benchmark_files import (
    COLUMNS,
    records_by_cell,
    write_csv,
    write_json,
)
from testbed.extensions.published.importing import import_results


@pytest.fixture
def backend() -> str:
    """What is written and read does not depend on the database."""
    return "sqlite"


TOP = {"top1": 0.25, "top5": 0.75, "mean_per_class_recall": 0.125}
MODEL = "ViT-B-32,openai"


def some(**values: float | None) -> list[Metric]:
    return [Metric(name.replace("_at_", "@"), value, 4, scorer="test@1") for name, value in values.items()]


@pytest.fixture
def filled(store: Store, builder: Any) -> Store:
    """One cell of each task, in two languages, of three kinds of models' names."""
    build = builder(store)
    cells = {
        "cifar10": some(**TOP, nll=0.5),
        "imagenet1k.zeroshot.jp": some(**{**TOP, "top1": 1 / 3}),
        "digits": some(top1=0.5, top5=None),
        "voc2007_multilabel": some(mean_average_precision=0.6111),
        "cifar10.linear_probe": [*some(**TOP), Metric("weight_decay", 31.6, unit="")],
        "cifar10.linear_probe.k5": some(top1=0.9),
        "cifar10.linear_probe.lbfgs.k5": some(top1=0.8),
        "mscoco_captions": some(
            image_retrieval_recall_at_5=0.5, text_retrieval_recall_at_5=0.75, image_retrieval_recall_at_1=0.25,
            text_retrieval_recall_at_1=0.5, image_retrieval_recall_at_10=0.7, text_retrieval_recall_at_10=0.9,
        ),
        "sugar_crepe/add_att": some(image_acc=1.0, text_acc=0.85, acc=0.85),
    }  # fmt: skip
    for setting, metrics in cells.items():
        build.complete(MODEL, setting, metrics=metrics)
    for model in ("resnet50", "ViT-B-32,", "hf-hub:owner/name", "RN50,/runs/a,b/epoch 1.pt".replace(" ", "_")):
        build.complete(model, "cifar10", metrics=some(**TOP))
    return store


def everything(store: Store) -> dict[tuple[str, str, str], float | None]:
    """What CLIP benchmark's forms can hold."""
    return {
        (each.model, each.eval_setting, each.metric): each.value
        for each in store.results.find()
        if each.metric != "nll" and each.value is not None
    }


def exported(store: Store) -> list[dict[str, Any]]:
    results = sorted(store.results.find(), key=attrgetter("eval_setting", "model"))
    return [record for _, record in records_by_cell(results)]


def of(records: Sequence[dict[str, Any]], **wanted: str) -> dict[str, Any]:
    (found,) = [each for each in records if all(each.get(key) == value for key, value in wanted.items())]
    return found


# Records ----------------------------------------------------------------------------------------------------------


def test_a_record_has_clip_benchmarks_schema(filled: Store) -> None:
    assert of(
        exported(filled), dataset="cifar10", model="ViT-B-32", pretrained="openai", task="zeroshot_classification"
    ) == {
        "dataset": "cifar10",
        "model": "ViT-B-32",
        "pretrained": "openai",
        "task": "zeroshot_classification",
        "metrics": {"acc1": 0.25, "acc5": 0.75, "mean_per_class_recall": 0.125},
        "language": "en",
    }


def test_each_task_has_its_metrics_by_clip_benchmarks_names(filled: Store) -> None:
    records = exported(filled)
    assert of(records, dataset="voc2007_multilabel")["metrics"] == {"mean_average_precision": 0.6111}
    assert of(records, task="image_caption_selection")["metrics"] == {"image_acc": 1.0, "text_acc": 0.85, "acc": 0.85}
    assert list(of(records, task="zeroshot_retrieval")["metrics"].items()) == [
        ("image_retrieval_recall@1", 0.25), ("text_retrieval_recall@1", 0.5),
        ("image_retrieval_recall@5", 0.5), ("text_retrieval_recall@5", 0.75),
        ("image_retrieval_recall@10", 0.7), ("text_retrieval_recall@10", 0.9),
    ]  # fmt: skip
    probes = [each for each in records if each["task"] == "linear_probe" and "eval_setting" not in each]
    full, few = sorted((each["metrics"] for each in probes), key=lambda each: each["fewshot_k"])
    assert full == {
        "lp_acc1": 0.25, "lp_acc5": 0.75, "lp_mean_per_class_recall": 0.125, "weight_decay": 31.6,
        "fewshot_k": -1, "epochs": 10, "seed": 0, "normalized": True,
    }  # fmt: skip
    assert (few["lp_acc1"], few["lp_acc5"], few["fewshot_k"]) == (0.9, None, 5)
    assert of(records, language="jp")["dataset"] == "imagenet1k"


def test_a_setting_that_records_cannot_tell_is_named(filled: Store) -> None:
    assert [each["eval_setting"] for each in exported(filled) if "eval_setting" in each] == [
        "cifar10.linear_probe.lbfgs.k5"
    ]


def test_a_cell_without_such_metrics_is_left_out(store: Store, builder: Any) -> None:
    builder(store).complete("net", "videos", metrics=some(pm0=0.5))
    builder(store).complete("net", "nothing", metrics=some(top1=None))
    assert exported(store) == []


def test_ones_own_numbers_stand_before_imported_ones(store: Store, builder: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(record(metrics={"acc1": 0.9, "acc5": 0.95})))
    import_results(store, path)
    assert exported(store)[0]["metrics"]["acc1"] == 0.9
    builder(store).complete(MODEL, "cifar10", metrics=some(top1=0.5))
    (one,) = exported(store)
    assert one["metrics"] == {"acc1": 0.5, "acc5": None, "mean_per_class_recall": None}


# Files ------------------------------------------------------------------------------------------------------------


def test_each_record_is_a_file_of_valid_json(filled: Store, tmp_path: Path) -> None:
    records = exported(filled)
    assert write_json(records, tmp_path / "out" / "json") == len(records)
    files = sorted((tmp_path / "out" / "json").iterdir())
    assert len({path.name.lower() for path in files}) == len(files) == len(records)
    assert all(path.suffix == ".json" and not set(path.name) & set('/:\\*?"<>| ') for path in files)

    def no_constant(text: str) -> None:
        raise AssertionError(text)

    read = [json.loads(path.read_text(), parse_constant=no_constant) for path in files]
    assert sorted(map(json.dumps, read)) == sorted(map(json.dumps, records))


def test_the_table_has_its_columns_in_a_fixed_order(filled: Store, tmp_path: Path) -> None:
    write_csv(exported(filled), tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert tuple(header[: len(COLUMNS)]) == COLUMNS
    assert header[len(COLUMNS) :] == [
        "image_retrieval_recall@1", "text_retrieval_recall@1", "image_retrieval_recall@10",
        "text_retrieval_recall@10", "image_acc", "text_acc", "acc", "lp_acc1", "lp_acc5", "lp_mean_per_class_recall",
        "weight_decay", "fewshot_k", "epochs", "seed", "normalized", "language", "eval_setting", "model_fullname",
    ]  # fmt: skip
    assert {row[-1] for row in rows} >= {"ViT-B-32 openai", "resnet50"}


def test_a_table_like_the_published_one_has_no_other_columns(store: Store, builder: Any, tmp_path: Path) -> None:
    builder(store).complete(MODEL, "cifar10", metrics=some(**TOP))
    write_csv(exported(store), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == (
        "acc1,acc5,mean_per_class_recall,dataset,model,pretrained,task,mean_average_precision,"
        "image_retrieval_recall@5,text_retrieval_recall@5,model_fullname\n"
        "0.25,0.75,0.125,cifar10,ViT-B-32,openai,zeroshot_classification,,,,ViT-B-32 openai\n"
    )


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file cannot be written"):
        write_json([], tmp_path / "file")
    with pytest.raises(StoreError, match="cannot be written"):
        write_csv([], tmp_path / "file" / "table.csv")


# There and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "csv"])
def test_export_import_and_export_give_the_same(filled: Store, tmp_path: Path, form: str) -> None:
    records = exported(filled)
    path = tmp_path / f"first.{form}" if form == "csv" else tmp_path / "first"
    write = write_csv if form == "csv" else write_json
    write(records, path)
    with Store.create(f"sqlite:///{tmp_path / 'other.db'}") as other:
        report = import_results(other, path)
        assert (report.form, report.cells, report.notes) == ("CLIP benchmark's table", len(records), [])
        assert exported(other) == records
        assert everything(other) == everything(filled)
        write(exported(other), tmp_path / "second.csv")
        assert import_results(other, path).new == 0
    if form == "csv":
        assert (tmp_path / "second.csv").read_bytes() == path.read_bytes()


# Reading ----------------------------------------------------------------------------------------------------------


def record(**changed: Any) -> dict[str, Any]:
    whole = {
        "dataset": "cifar10", "model": "ViT-B-32", "pretrained": "openai", "task": "zeroshot_classification",
        "metrics": {"acc1": 0.5}, "language": "en",
    }  # fmt: skip
    return {**whole, **changed}


def imported(store: Store, path: Path, *records: dict[str, Any]) -> dict[tuple[str, str], float | None]:
    path.write_text(json.dumps(records))
    import_results(store, path)
    return {(each.eval_setting, each.metric): each.value for each in store.results.find()}


def test_several_tasks_and_languages_of_a_data_set_stand_in_one_file(store: Store, tmp_path: Path) -> None:
    probe = {"lp_acc1": 0.9, "lp_acc5": 1, "weight_decay": 100.0, "epochs": 10, "seed": 0, "normalized": True}
    found = imported(
        store,
        tmp_path / "all.json",
        record(),
        record(language="jp", metrics={"acc1": 0.4}),
        record(task="linear_probe", metrics={**probe, "fewshot_k": -1}),
        record(task="linear_probe", metrics={**probe, "fewshot_k": 5, "lp_acc1": 0.8}),
        record(dataset="coco", task="zeroshot_retrieval", metrics={"image_retrieval_recall@5": 0.3}),
        record(dataset="coco", task="zeroshot_retrieval", metrics={"image_retrieval_recall@1": 0.1}),
        record(dataset="coco", task="captioning", metrics={"CIDEr": 1.25}),
        record(dataset="voc", metrics={"mean_average_precision": 0.7, "acc1": None}),
    )
    assert found == {
        ("cifar10", "top1"): 0.5,
        ("cifar10.zeroshot.jp", "top1"): 0.4,
        ("cifar10.linear_probe", "top1"): 0.9,
        ("cifar10.linear_probe", "top5"): 1.0,
        ("cifar10.linear_probe", "weight_decay"): 100.0,
        ("cifar10.linear_probe.k5", "top1"): 0.8,
        ("cifar10.linear_probe.k5", "top5"): 1.0,
        ("cifar10.linear_probe.k5", "weight_decay"): 100.0,
        ("coco", "image_retrieval_recall@5"): 0.3,
        ("coco", "image_retrieval_recall@1"): 0.1,
        ("coco.captioning", "CIDEr"): 1.25,
        ("voc", "mean_average_precision"): 0.7,
    }


def test_whole_numbers_that_pandas_wrote_with_a_point_are_whole(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "dataset,model,pretrained,task,lp_acc1,acc1,fewshot_k,normalized\n"
        "cifar10,RN50,openai,linear_probe,0.5,,5.0,True\n"
        "cifar10,RN50,openai,linear_probe,0.6,,-1.0,False\n"
        "cifar10,RN50,openai,zeroshot_classification,,0.4,,\n"
    )
    import_results(store, path)
    assert {(each.eval_setting, each.value) for each in store.results.find()} == {
        ("cifar10.linear_probe.k5", 0.5), ("cifar10.linear_probe.unnormalized", 0.6), ("cifar10", 0.4),
    }  # fmt: skip


def test_a_folder_of_files_is_read_as_one(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(record()))
    (tmp_path / "b.json").write_text(json.dumps(record(dataset="food101")))
    (tmp_path / "c.json").write_text(json.dumps(record(dataset="short", metrics=None)))
    (tmp_path / "d.json").write_text(json.dumps(record()))
    (tmp_path / "table.csv").write_text("not one of them")
    report = import_results(store, tmp_path)
    assert (report.cells, report.new) == (2, 3)
    assert report.notes == ["metrics: 1 of its values are left out"]
    assert {each.row for each in store.claims.find(eval_settings=["cifar10"])} == {
        "a.json, record 1",
        "d.json, record 1",
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"dataset": "cif', "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        (json.dumps(record(metrics={"acc1": 71.2})), "71.2 is not between 0 and 1"),
        (json.dumps(record(task="linear_probe", metrics={"lp_acc1": 1, "fewshot_k": "five"})), "a whole number"),
        (json.dumps(record(task="linear_probe", metrics={"lp_acc1": 1, "weight_decay": "Infinity"})), "is not finite"),
        (json.dumps(record(dataset="")), "record 1: "),
    ],
)
def test_one_bad_file_keeps_the_whole_folder_out(store: Store, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "good.json").write_text(json.dumps(record(dataset="food101")))
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(StoreError, match=said) as caught:
        import_results(store, tmp_path)
    assert str(tmp_path / "bad.json") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert store.results.find() == []


def test_a_model_without_a_second_half_keeps_its_name(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps([record(model="resnet50", pretrained=""), record(model="ViT-B-32,", pretrained="")]))
    import_results(store, path)
    assert {each.model for each in store.results.find()} == {"resnet50", "ViT-B-32,"}


def test_a_large_store_is_exported_cell_by_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def place(*given: Any) -> Any:
        asked.append(given)
        return place_of(*given)

    monkeypatch.setattr(clip_benchmark_files, "place_of", place)
    fields: dict[str, Any] = dict.fromkeys(each.name for each in dataclasses.fields(Result))
    fields.update(eval_setting="mnist", slice="overall", unit="fraction", origin="run")

    def results() -> Iterator[Result]:
        for number in range(50):
            for metric in ("top1", "top5"):
                yield Result(**{**fields, "model": f"net{number:02d}", "metric": metric, "value": number / 50})
            assert len(list(tmp_path.iterdir())) >= number  # the cells before are written

    records = (record for _, record in clip_benchmark_files.records_by_cell(results()))
    assert write_json(records, tmp_path) == 50
    assert len(asked) == 1  # the setting is looked up once, not for each model
    assert json.loads((tmp_path / "mnist__net07.json").read_text())["metrics"]["acc1"] == 0.14

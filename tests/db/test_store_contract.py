"""The contract of the store: what every method promises, on SQLite and on Postgres alike."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
import torch
from stored_cells import put_numbers

from testbed.db.store import Store
from testbed.entities import (
    CellRecord,
    Chunk,
    DatasetInfo,
    Metric,
    Result,
    SampleInfo,
    Score,
    TrainingCheckpoint,
    current,
)
from testbed.errors import CorruptOutputError, DuplicateNameError, StoreError, UnknownNameError

MODEL = "model"
SETTING = "eval setting"
UNIDENTIFIED = "unidentified"


def names(store: Store, kind: Any) -> list[str]:
    return [each.name for each in store.names.all(kind)]


def count(connection: sa.Connection, table: str, where: str = "1 = 1") -> int:
    return int(connection.execute(sa.text(f"SELECT count(*) FROM {table} WHERE {where}")).scalar_one())


def visible(store: Store) -> set[int]:
    return {each.evaluation_id for each in store.results.find()}


# Names ------------------------------------------------------------------------------------------------------------


def exists(store: Store, kind: Any, name: str) -> bool:
    return name in [each.name for each in store.names.all(kind)]


def test_names_of_any_characters_are_kept(store: Store) -> None:
    odd = [
        "ViT-B-32,laion400m_e32",
        "wds/vtab/cifar10",
        "Modell ü 模型 🙂",
        'it\'s 100% "x"; --',
        "x" * 512,
        "Net",
        "net",
    ]
    for name in odd:
        assert store.names.add(MODEL, name)
    assert set(names(store, MODEL)) == set(odd)
    assert not exists(store, MODEL, "NET")
    assert store.names.add(SETTING, "net")  # a model's name may be a setting's too


def test_adding_a_name_again_says_that_it_is_not_new_and_updates_what_is_given(store: Store) -> None:
    assert store.names.add(MODEL, "net", model_type="old")
    assert not store.names.add(MODEL, "net")
    assert store.names.all(MODEL)[0].model_type == "old"
    assert not store.names.add(MODEL, "net", model_type="new")
    assert store.names.all(MODEL)[0].model_type == "new"


def test_adding_a_removed_name_brings_it_back_and_counts_as_new(store: Store) -> None:
    store.names.add(MODEL, "net")
    store.names.hide(MODEL, "net")
    assert store.names.add(MODEL, "net")
    assert names(store, MODEL) == ["net"]


def test_listings_count_the_complete_visible_evaluations(store: Store, build: Any) -> None:
    build.complete("net", "val")
    build.complete("net", "sketch")
    build.complete("other", "val")
    build.begin("net", "running")
    store.evaluations.fail(build.begin("net", "failed").id, "broke")
    build.complete("net", "removed")
    store.removal.hide("net", "removed")
    assert {each.name: each.evaluations for each in store.names.all(MODEL)} == {"net": 2, "other": 1}
    assert {each.name: each.evaluations for each in store.names.all(SETTING)} == {
        "val": 2,
        "sketch": 1,
        "running": 0,
        "failed": 0,
        "removed": 0,
    }


def test_an_unknown_name_suggests_the_nearest(store: Store) -> None:
    with pytest.raises(UnknownNameError, match="none are registered"):
        store.names.require(MODEL, "net")
    for name in ("resnet50", "resnet18", "vgg16"):
        store.names.add(MODEL, name)
    for ask in (lambda: store.names.require(MODEL, "resnet05"), lambda: store.names.rename(MODEL, "resnet05", "x")):
        with pytest.raises(UnknownNameError, match=r"unknown model 'resnet05' .*did you mean 'resnet50'") as caught:
            ask()
        assert "vgg16" in str(caught.value)
    store.names.require(MODEL, "resnet50")


def test_an_unknown_name_among_many_names_the_command_that_lists_them(store: Store) -> None:
    for number in range(13):
        store.names.add(SETTING, f"setting-{number}")
    with pytest.raises(UnknownNameError, match=r"there are 13, which .*testbed list settings --stored") as caught:
        store.names.require(SETTING, "qqqqqqqq")
    assert "did you mean" not in str(caught.value)


def test_renaming_a_setting_renames_it_where_it_is_a_parent(store: Store) -> None:
    store.names.add(SETTING, "val")
    store.names.add(SETTING, "val_10percent", parent="val")
    store.names.add(SETTING, "val_other", parent="value")
    store.names.add(MODEL, "val")
    store.names.rename(SETTING, "val", "validation")
    assert {each.name: each.parent for each in store.names.all(SETTING)} == {
        "validation": None,
        "val_10percent": "validation",
        "val_other": "value",
    }
    assert names(store, MODEL) == ["val"]


def test_renaming_to_a_taken_name_is_refused_and_changes_nothing(store: Store) -> None:
    for name in ("a", "b", "c"):
        store.names.add(SETTING, name)
    store.names.hide(SETTING, "c")
    with pytest.raises(DuplicateNameError, match=r"eval setting 'b' is already in the store; choose another") as caught:
        store.names.rename(SETTING, "a", "b")
    assert "removed" not in str(caught.value)
    with pytest.raises(DuplicateNameError, match=r"'c' is already in the store \(removed, not purged\)"):
        store.names.rename(SETTING, "a", "c")
    assert names(store, SETTING) == ["a", "b"]


def test_hiding_a_model_takes_its_evaluations_out_of_sight_and_unhiding_brings_them_back(
    store: Store, build: Any
) -> None:
    ids = {build.complete("net", setting).id for setting in ("val", "sketch")}
    other = build.complete("other", "val").id
    assert store.names.hide(MODEL, "net") == 2
    assert names(store, MODEL) == ["other"]
    assert visible(store) == {other}
    assert [each.id for each in store.evaluations.find()] == [other]
    assert {each.id for each in store.evaluations.find(hidden=True)} == ids
    assert all(each.hidden for each in store.evaluations.find(hidden=True))
    assert {each.name: each.evaluations for each in store.names.all(SETTING)} == {"val": 1, "sketch": 0}
    assert store.names.unhide(MODEL, "net") == 2
    assert visible(store) == {*ids, other}
    assert names(store, MODEL) == ["net", "other"]


def test_unhiding_brings_back_only_the_evaluations_that_went_along(store: Store, build: Any) -> None:
    earlier = build.complete("net", "val")
    along = build.complete("net", "sketch")
    store.removal.hide("net", "val")
    assert store.names.hide(MODEL, "net") == 1
    assert store.names.unhide(MODEL, "net") == 1
    assert visible(store) == {along.id}
    assert [each.id for each in store.evaluations.find(hidden=True)] == [earlier.id]


def test_hiding_a_model_and_a_setting_can_be_undone_in_any_order(store: Store, build: Any) -> None:
    cell = build.complete("net", "val").id
    store.names.hide(SETTING, "val")
    store.names.hide(MODEL, "net")
    assert store.names.unhide(SETTING, "val") == 1
    assert visible(store) == set(), "its model is still hidden"
    store.names.unhide(MODEL, "net")
    assert visible(store) == {cell}


def test_nodes_are_not_listed_and_go_with_their_setting(store: Store, build: Any) -> None:
    own, node = build.complete("net", "val"), build.complete("net", "val.image_embeddings")
    assert names(store, SETTING) == ["val"]
    assert {each.eval_setting for each in store.results.find()} == {"val"}
    store.names.rename(SETTING, "val", "photos")
    assert [each.id for each in store.evaluations.find(None, ["photos.image_embeddings"])] == [node.id]
    with pytest.raises(StoreError, match=r"photos\.image_embeddings is a node of photos; rename that setting"):
        store.names.rename(SETTING, "photos.image_embeddings", "x")
    assert store.names.hide(SETTING, "photos") == 2
    assert visible(store) == set()
    assert store.names.unhide(SETTING, "photos") == 2
    assert {each.id for each in store.evaluations.find()} == {own.id, node.id}


def test_a_node_stays_while_other_settings_take_its_outputs(store: Store, build: Any) -> None:
    own, node = build.complete("net", "val"), build.complete("net", "val.image_embeddings")
    derived = build.begin("net", "captions", derived_from=node.id, origin="derived")
    assert store.names.hide(SETTING, "val") == 1
    assert {each.id for each in store.evaluations.find()} == {node.id, derived.id}
    assert store.names.unhide(SETTING, "val") == 1
    assert {each.id for each in store.evaluations.find()} == {own.id, node.id, derived.id}


def test_unhiding_suggests_among_the_removed_names(store: Store) -> None:
    store.names.add(MODEL, "gone-net")
    store.names.add(MODEL, "here-net")
    store.names.hide(MODEL, "gone-net")
    with pytest.raises(UnknownNameError, match=r"store's removed ones; did you mean 'gone-net'") as caught:
        store.names.unhide(MODEL, "gonenet")
    assert "here-net" not in str(caught.value)
    with pytest.raises(StoreError, match="the model here-net has nothing to restore"):
        store.names.unhide(MODEL, "here-net")


def test_what_was_removed_comes_back_though_the_name_was_used_again(store: Store, build: Any) -> None:
    build.complete("net", "val", 0.25, fingerprint="f")
    build.complete("net", "sketch", 0.5, fingerprint="g")
    store.names.hide(MODEL, "net")
    build.complete("net", "val", 0.75, fingerprint="f")  # run again, which makes the name visible
    assert store.names.unhide(MODEL, "net") == 1
    assert {(each.eval_setting, each.value) for each in store.results.find()} == {("val", 0.75), ("sketch", 0.5)}
    assert store.names.unhide(MODEL, "net") == 0, "the other one was run again"


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "empty"), (" ", "empty"), ("x" * 513, "too long: 513"), ("a\0b", "NUL"), ("a\nb", "printed")],
)
@pytest.mark.parametrize("kind", [MODEL, SETTING])
def test_names_that_no_database_or_terminal_could_hold_are_refused(
    store: Store, build: Any, kind: Any, name: str, words: str
) -> None:
    store.names.add(kind, "old")
    with pytest.raises(StoreError, match=words):
        store.names.add(kind, name)
    with pytest.raises(StoreError, match=words):
        store.names.rename(kind, "old", name)
    with pytest.raises(StoreError, match=words):
        build.begin(name, "val") if kind == MODEL else build.begin("net", name)
    assert [each.name for each in store.names.all(kind)] == ["old"]


# Data sets --------------------------------------------------------------------------------------------------------


def test_a_data_set_is_stored_once_by_its_fingerprint(store: Store, raw: Any) -> None:
    first = store.datasets.ensure(DatasetInfo("a", "same", [SampleInfo("1", "d1", 0)]))
    again = store.datasets.ensure(DatasetInfo("b", "same", [SampleInfo("1", "d1", 0)]))
    other = store.datasets.ensure(DatasetInfo("a", "other", [SampleInfo("1", "d1", 0)]))
    assert first == again != other
    assert store.datasets.get(first).name == "a"
    with raw(store) as connection:
        assert count(connection, "datasets") == 2
        assert count(connection, "samples") == 2


def test_a_data_set_comes_back_with_its_samples_in_order_and_everything_about_them(store: Store) -> None:
    targets: list[Any] = [
        3,
        None,
        "a dog ü\n",
        1.5,
        [1, 2, [3]],
        {"answer": "yes", "n": [None, True]},
        False,
        [],
        "",
        0,
    ]
    samples = [
        SampleInfo(f"{9 - index}/ü {index}.png", f"d{index}", target, None if index % 2 else f"group {index}")
        for index, target in enumerate(targets)
    ]
    samples.append(SampleInfo("sliced", "d", 1, "g", {"category": "colour", "hard": True, "levels": [1, 2]}))
    for dataset in (DatasetInfo("mixed", "f", samples, ["katze", "hund 🐕"]), DatasetInfo("empty", "g", [])):
        assert store.datasets.get(store.datasets.ensure(dataset)) == dataset
    read = store.datasets.get(store.datasets.ensure(DatasetInfo("mixed", "f", [])))
    assert [type(sample.target) for sample in read.samples[:-1]] == [type(target) for target in targets]


def test_thousands_of_samples_keep_their_order(store: Store) -> None:
    order = list(range(7000))
    random.Random(0).shuffle(order)
    samples = [SampleInfo(f"{number}", f"d{number}", number) for number in order]
    read = store.datasets.get(store.datasets.ensure(DatasetInfo("large", "fingerprint", samples)))
    assert [sample.target for sample in read.samples] == order


# Beginning --------------------------------------------------------------------------------------------------------


def test_begin_stores_all_that_the_record_says(store: Store, build: Any) -> None:
    dataset = build.dataset(7)
    record = CellRecord(
        model="net",
        eval_setting="val",
        fingerprint="f",
        forward_fingerprint="forward",
        size=7,
        sample_limit=7,
        dtype="bfloat16",
        random_weights=True,
        environment={"gpu": "H200", "versions": {"torch": "2.15"}, "nothing": None},
        source="here",
    )
    before = datetime.now(UTC)
    begun = store.evaluations.begin(
        record, dataset, {"model_type": "Standard training"}, {"parent": "all", "task": "classification"}
    )
    assert begun == store.evaluations.get(begun.id)
    assert (begun.model, begun.eval_setting, begun.fingerprint, begun.forward_fingerprint) == (
        "net",
        "val",
        "f",
        "forward",
    )
    assert (begun.status, begun.origin, begun.error, begun.derived_from) == ("running", "run", None, None)
    assert (begun.dataset_id, begun.size, begun.sample_limit, begun.dtype) == (dataset, 7, 7, "bfloat16")
    assert begun.random_weights is True
    assert begun.hidden is False
    assert begun.source == "here"
    assert store.evaluations.get(begun.id).environment == record.environment
    assert before - timedelta(seconds=1) <= begun.created_at <= datetime.now(UTC)
    assert begun.completed_at is None
    assert store.names.all(MODEL)[0].model_type == "Standard training"
    assert store.names.all(SETTING)[0].parent == "all"


def test_begin_goes_on_with_the_evaluation_of_the_same_fingerprint(store: Store, build: Any) -> None:
    first = build.begin(fingerprint="f", environment={"host": "a"})
    store.outputs.append([Chunk(first.id, "logits", 0, build.logits(2))])
    again = build.begin(fingerprint="f", environment={"host": "b"})
    assert again.id == first.id
    assert again.status == "running"
    assert store.evaluations.get(first.id).environment == {"host": "b"}
    assert store.outputs.stored_ranges([first.id], "logits") == {first.id: [(0, 2)]}
    assert len(store.evaluations.find()) == 1


def test_begin_goes_on_with_a_failed_evaluation_and_forgets_its_error(store: Store, build: Any) -> None:
    failed = build.begin(fingerprint="f")
    store.evaluations.fail(failed.id, "out of memory")
    again = build.begin(fingerprint="f")
    assert (again.id, again.status, again.error) == (failed.id, "running", None)
    assert store.evaluations.get(failed.id).error is None


def test_begin_leaves_a_complete_evaluation_as_it_is(store: Store, build: Any) -> None:
    done = build.complete(fingerprint="f", environment={"host": "a"})
    again = build.begin(fingerprint="f", environment={"host": "b"}, dataset=build.dataset(2), origin="derived")
    assert again == done
    assert again.status == "complete"
    assert store.evaluations.get(done.id).environment == {"host": "a"}
    assert [metric.name for metric in store.results.metrics(done.id)] == ["top1"]


def test_another_fingerprint_model_or_setting_is_another_evaluation(store: Store, build: Any) -> None:
    ids = {
        build.begin("net", "val", "f").id,
        build.begin("net", "val", "g").id,
        build.begin("other", "val", "f").id,
        build.begin("net", "sketch", "f").id,
    }
    assert len(ids) == 4
    assert [each.id for each in store.evaluations.find()] == sorted(ids)


def test_a_hidden_evaluation_does_not_stand_in_the_way(store: Store, build: Any) -> None:
    removed = build.complete(fingerprint="f", top1=0.1)
    store.removal.hide_evaluation(removed.id)
    again = build.begin(fingerprint="f")
    assert again.id != removed.id
    assert again.status == "running"
    store.evaluations.complete(again.id, [], [Metric("top1", 0.9)])
    assert visible(store) == {again.id}
    assert store.evaluations.get(removed.id).hidden


def test_begin_makes_a_removed_model_and_setting_visible_but_not_their_evaluations(store: Store, build: Any) -> None:
    removed = build.complete("net", "val", fingerprint="f")
    store.names.hide(MODEL, "net")
    store.names.hide(SETTING, "val")
    begun = build.begin("net", "val", "g")
    assert names(store, MODEL) == ["net"]
    assert names(store, SETTING) == ["val"]
    assert [each.id for each in store.evaluations.find()] == [begun.id]
    assert store.evaluations.get(removed.id).hidden


def test_evaluations_are_found_by_model_and_setting_oldest_first(store: Store, build: Any) -> None:
    ids = {
        (model, setting): build.begin(model, setting).id for model in ("b", "a", "c") for setting in ("val", "sketch")
    }
    assert [each.id for each in store.evaluations.find()] == sorted(ids.values())
    assert {each.id for each in store.evaluations.find(["a", "b"])} == {
        id_ for (model, _), id_ in ids.items() if model in "ab"
    }
    assert [each.id for each in store.evaluations.find(["a"], ["val"])] == [ids["a", "val"]]
    assert [each.id for each in store.evaluations.find(eval_settings=iter(["sketch"]))] == [
        ids[model, "sketch"] for model in ("b", "a", "c")
    ]
    assert store.evaluations.find([]) == []
    assert store.evaluations.find(["nobody"]) == []


def test_beginning_completes_what_a_failed_try_knew(store: Store, build: Any) -> None:
    """A cell may fail at planning, before its data are opened; the same row is used when it runs at last."""
    store.evaluations.record_failure(CellRecord("net", "val", "f"), "failed", "no data", {}, {})
    begun = build.begin("net", "val", fingerprint="f", size=4, sample_limit=4, dtype="bfloat16", identity=IDENTITY)
    assert (begun.status, begun.error) == ("running", None)
    assert (begun.size, begun.sample_limit, begun.dtype) == (4, 4, "bfloat16")
    assert store.evaluations.identity(store.evaluations.get(begun.id)) == IDENTITY
    assert len(store.evaluations.find()) == 1


def test_samples_that_could_not_be_read_are_read_again(store: Store, build: Any) -> None:
    evaluation = build.begin("net", "val", fingerprint="f", size=6)
    whole, lacking = (Chunk(evaluation.id, "logits", start, build.logits(2)) for start in (0, 2))
    store.outputs.append([whole, lacking], {evaluation.id: {3: "away", 4: "away", 5: "away"}})
    assert store.outputs.stored_ranges([evaluation.id]) == {evaluation.id: [(0, 6)]}
    again = build.begin("net", "val", fingerprint="f", size=6)
    assert again.id == evaluation.id
    assert store.outputs.errors(evaluation.id) == {}
    assert store.outputs.stored_ranges([evaluation.id]) == {evaluation.id: [(0, 2)]}


def test_unreadable_samples_of_a_complete_evaluation_stay(store: Store, build: Any) -> None:
    evaluation = build.begin("net", "val", fingerprint="f", size=4)
    store.outputs.append([Chunk(evaluation.id, "logits", 0, build.logits(4))], {evaluation.id: {3: "broken"}})
    store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.5)])
    assert build.begin("net", "val", fingerprint="f", size=4).status == "complete"
    assert store.outputs.errors(evaluation.id) == {3: "broken"}
    assert store.outputs.unreadable([evaluation.id, 4711]) == {evaluation.id: 1}


def test_unreadable_samples_of_a_derived_evaluation_are_those_of_its_source(store: Store, build: Any) -> None:
    source = build.begin("net", "val", fingerprint="f", size=4)
    store.outputs.append([Chunk(source.id, "logits", 0, build.logits(4))], {source.id: {1: "broken", 3: "broken"}})
    store.evaluations.complete(source.id, [], [Metric("top1", 0.5)])
    whole = build.begin("net", "same", fingerprint="g", size=4, derived_from=source.id)
    some = build.begin("net", "first", fingerprint="h", size=3, derived_from=source.id)
    none = build.begin("net", "one", fingerprint="i", size=1, derived_from=source.id)
    assert store.outputs.unreadable([source.id, whole.id, some.id, none.id]) == {source.id: 2, whole.id: 2, some.id: 1}


# Failing ----------------------------------------------------------------------------------------------------------


def test_a_failed_evaluation_keeps_its_reason_and_its_outputs(store: Store, build: Any) -> None:
    evaluation = build.begin()
    store.outputs.append([Chunk(evaluation.id, "logits", 0, build.logits(2))])
    store.evaluations.fail(evaluation.id, "CUDA error: ü")
    read = store.evaluations.get(evaluation.id)
    assert (read.status, read.error, read.completed_at) == ("failed", "CUDA error: ü", None)
    assert store.outputs.stored_ranges([evaluation.id], "logits") == {evaluation.id: [(0, 2)]}


def test_a_complete_evaluation_cannot_fail_any_more(store: Store, build: Any) -> None:
    done = build.complete()
    store.evaluations.fail(done.id, "too late")
    assert store.evaluations.get(done.id) == done


def test_a_cell_that_could_not_be_planned_is_a_row_with_its_reason(store: Store) -> None:
    for model, status, reason in (("net", "failed", "no data"), ("clip", "unsupported", "lacks logits")):
        store.evaluations.record_failure(
            CellRecord(model, "val", UNIDENTIFIED), status, reason, {"model_type": "x"}, {"parent": "p"}
        )
    found = {each.model: (each.status, each.error, each.fingerprint) for each in store.evaluations.find()}
    assert found == {
        "net": ("failed", "no data", UNIDENTIFIED),
        "clip": ("unsupported", "lacks logits", UNIDENTIFIED),
    }
    assert store.results.find() == []


def test_evaluations_are_found_by_the_training_runs_of_their_checkpoints(store: Store, build: Any) -> None:
    first, second, other = (build.complete(model=name, fingerprint=name) for name in ("one", "two", "three"))
    assert store.checkpoints.training_runs() == []
    for each, run in ((second, "runs/b"), (first, 'runs/"a" ü')):
        store.checkpoints.note([each.id], TrainingCheckpoint(run, 1))
    store.checkpoints.claim(other.id, "told")
    assert store.checkpoints.training_runs() == ['runs/"a" ü', "runs/b"]
    assert [each.id for each in store.checkpoints.of_runs(["runs/b", "nowhere"])] == [second.id]
    store.removal.hide_evaluation(second.id)
    assert store.checkpoints.training_runs() == ['runs/"a" ü']
    assert store.checkpoints.of_runs(["runs/b"]) == []


def test_a_repeated_failure_replaces_the_reason(store: Store) -> None:
    record = CellRecord("net", "val", UNIDENTIFIED)
    store.evaluations.record_failure(record, "failed", "no data", {}, {})
    store.evaluations.record_failure(record, "unsupported", "no logits", {}, {})
    assert [(each.status, each.error) for each in store.evaluations.find()] == [("unsupported", "no logits")]


def test_a_failure_leaves_a_complete_evaluation_of_that_fingerprint_alone(store: Store, build: Any) -> None:
    done = build.complete(fingerprint="f")
    store.evaluations.record_failure(CellRecord("net", "val", "f"), "failed", "no data", {}, {})
    assert store.evaluations.find() == [done]


def test_completing_a_cell_removes_its_unidentified_failure_and_no_other(store: Store, build: Any) -> None:
    for model, setting in (("net", "val"), ("net", "sketch"), ("other", "val")):
        store.evaluations.record_failure(CellRecord(model, setting, UNIDENTIFIED), "failed", "no data", {}, {})
    store.evaluations.fail(build.begin("net", "val", "earlier").id, "identified, and failed")
    build.complete("net", "val")
    left = {(each.model, each.eval_setting, each.fingerprint) for each in store.evaluations.find() if each.error}
    assert left == {("net", "val", "earlier"), ("net", "sketch", UNIDENTIFIED), ("other", "val", UNIDENTIFIED)}


# Outputs ----------------------------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 6e-8, 65504.0, 1e-3, np.pi, -np.e]
ODD_NAN = np.array([[0x7FC00001, 0xFFC12345, 0x7F800001, 0x00000001]] * 4, dtype=np.uint32).view(np.float32)
BFLOAT16 = torch.tensor(SPECIAL).reshape(4, 3).to(torch.bfloat16)


def same_bits(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


FLOATS = np.array(SPECIAL).reshape(4, 3)
WHOLE = np.array([0, 1, 2, 250, 255, 7, 1, 1, 0, 0, 9, 3]).reshape(4, 3)
# What is stored as one kind of outputs → what is read. `test_payloads` draws many more arrays.
GIVEN: dict[str, tuple[Any, Any]] = {
    **{dtype: (FLOATS.astype(dtype), FLOATS.astype(dtype)) for dtype in ("float16", "float32", "float64")},
    **{dtype: (WHOLE.astype(dtype), WHOLE.astype(dtype)) for dtype in ("uint8", "int64", "bool")},
    **{f"big endian {dtype}": (WHOLE.astype(f">{dtype}"), WHOLE.astype(dtype)) for dtype in ("f2", "f4", "f8", "i4")},
    "odd NaN": (ODD_NAN, ODD_NAN),
    "transposed": (np.arange(12.0).reshape(3, 4).T, np.arange(12.0).reshape(3, 4).T.copy()),
    "tensor": (torch.arange(12).reshape(4, 3).half(), np.arange(12, dtype=np.float16).reshape(4, 3)),
    "bfloat16": (BFLOAT16, BFLOAT16.float().numpy()),
    "strided bfloat16": (BFLOAT16.repeat(1, 2)[:, ::2], BFLOAT16.repeat(1, 2)[:, ::2].float().numpy()),
    **{str(shape): (np.ones(shape, np.float32),) * 2 for shape in [(4,), (4, 1), (4, 2, 3), (4, 0), (4, 2, 1, 2)]},
}


def test_outputs_come_back_bit_for_bit(store: Store, build: Any) -> None:
    evaluation, other = build.begin(), build.begin("other")
    chunks = [Chunk(evaluation.id, kind, 0, given) for kind, (given, _) in GIVEN.items()]
    assert store.outputs.append(chunks) == sum(given.nbytes for given, _ in GIVEN.values())
    for kind, (_, expected) in GIVEN.items():
        read = store.outputs.read(evaluation.id, kind)
        assert same_bits(read, expected), kind
        read[...] = 0  # is the reader's own
    kinds = store.outputs.kinds(evaluation.id)
    assert set(kinds) == set(GIVEN)
    assert (kinds["float16"], kinds["bool"], kinds["bfloat16"]) == ("float16", "bool", "bfloat16")
    assert store.outputs.kinds(other.id) == {}
    assert store.outputs.append([]) == store.outputs.append([], {}) == 0


def test_an_evaluation_of_no_samples_has_outputs_of_no_rows(store: Store, build: Any) -> None:
    evaluation = build.begin(size=0, dataset=build.dataset(0))
    store.outputs.append([Chunk(evaluation.id, "logits", 0, np.zeros((0, 3), np.float16))])
    assert same_bits(store.outputs.read(evaluation.id, "logits"), np.zeros((0, 3), np.float16))


@pytest.mark.parametrize(
    "ranges",
    [
        [(40, 100), (0, 1), (24, 40), (1, 24)],
        [(start, start + 1) for start in range(100)],
        [(0, 60), (40, 100), (2, 3)],
    ],
    ids=["of different lengths", "more than are fetched at once", "overlapping ones that agree"],
)
def test_chunks_are_put_together_in_the_order_of_their_samples(store: Store, build: Any, ranges: Any) -> None:
    values = build.logits(100, 5)
    evaluation = build.begin(size=100, dataset=build.dataset(100))
    for start, stop in ranges:
        store.outputs.append([Chunk(evaluation.id, "logits", start, values[start:stop])])
    assert store.outputs.stored_ranges([evaluation.id], "logits") == {evaluation.id: [(0, 100)]}
    assert same_bits(store.outputs.read(evaluation.id, "logits"), values)


def test_a_chunk_that_is_there_already_stays(store: Store, build: Any) -> None:
    values = build.logits()
    evaluation = build.begin()
    store.outputs.append([Chunk(evaluation.id, "logits", 0, values)])
    store.outputs.append([Chunk(evaluation.id, "logits", 0, values + 1)])
    assert same_bits(store.outputs.read(evaluation.id, "logits"), values)


def test_chunks_of_several_evaluations_are_stored_in_one_transaction(store: Store, build: Any) -> None:
    one, two = build.begin("one"), build.begin("two")
    values = build.logits()
    size = store.outputs.append([Chunk(one.id, "logits", 0, values), Chunk(two.id, "logits", 0, values * 2)])
    assert size == 2 * values.nbytes
    assert same_bits(store.outputs.read(two.id, "logits"), values * 2)
    with pytest.raises(sa.exc.IntegrityError):
        store.outputs.append(
            [Chunk(one.id, "other", 0, values), Chunk(987654, "other", 0, values)], {one.id: {0: "unreadable"}}
        )
    assert "other" not in store.outputs.kinds(one.id)
    assert store.outputs.errors(one.id) == {}


def test_stored_ranges_are_merged_and_in_order_and_show_the_gaps(store: Store, build: Any) -> None:
    one = build.begin("one", size=100, dataset=build.dataset(100))
    two = build.begin("two", size=100, dataset=build.dataset(100))
    none = build.begin("none", size=100, dataset=build.dataset(100))
    for evaluation, start, length in (
        (one, 50, 10),
        (one, 0, 10),
        (one, 10, 5),  # touches the one before
        (one, 55, 20),  # overlaps
        (one, 57, 2),  # lies within
        (two, 99, 1),
    ):
        store.outputs.append([Chunk(evaluation.id, "logits", start, np.zeros((length, 2), np.float32))])
    store.outputs.append([Chunk(one.id, "embeddings", 20, np.zeros((5, 2), np.float32))])
    assert store.outputs.stored_ranges([one.id, two.id, none.id], "logits") == {
        one.id: [(0, 15), (50, 75)],
        two.id: [(99, 100)],
        none.id: [],
    }
    assert store.outputs.stored_ranges([one.id], "embeddings") == {one.id: [(20, 25)]}
    assert store.outputs.stored_ranges([one.id]) == {one.id: [(0, 15), (20, 25), (50, 75)]}
    assert store.outputs.stored_ranges([], "logits") == {}


def test_samples_that_cannot_be_read_count_as_done_and_their_outputs_are_nan(store: Store, build: Any) -> None:
    values = build.logits(4)
    evaluation = build.begin(size=10, dataset=build.dataset(10))
    store.outputs.append(
        [Chunk(evaluation.id, "logits", 2, values)], {evaluation.id: {6: "truncated file", 1: "none", 9: "ü"}}
    )
    assert store.outputs.stored_ranges([evaluation.id], "logits") == {evaluation.id: [(1, 7), (9, 10)]}
    assert store.outputs.errors(evaluation.id) == {1: "none", 6: "truncated file", 9: "ü"}
    store.outputs.append([], {evaluation.id: dict.fromkeys((0, 7, 8), "gone")})
    read = store.outputs.read(evaluation.id, "logits")
    assert np.isnan(read[[0, 1, 6, 7, 8, 9]]).all()
    assert same_bits(read[2:6], values)


@pytest.mark.parametrize("there", [[], [(0, 3)], [(1, 4)], [(0, 1), (2, 4)]])
def test_reading_outputs_of_which_some_are_missing_is_an_error(store: Store, build: Any, there: Any) -> None:
    evaluation = build.begin()
    for start, stop in there:
        store.outputs.append([Chunk(evaluation.id, "logits", start, build.logits(stop - start))])
    with pytest.raises(StoreError, match=r"logits: outputs of 4 samples were expected") as caught:
        store.outputs.read(evaluation.id, "logits")
    assert (str(there) if there else "none") in str(caught.value)
    with pytest.raises(StoreError, match="embeddings"):
        store.outputs.read(evaluation.id, "embeddings")


def flip(raw: Any, store: Store, table: str, where: str) -> None:
    """Changes one bit of a payload behind the store's back."""
    with raw(store) as connection:
        payload = bytes(connection.execute(sa.text(f"SELECT payload FROM {table} WHERE {where}")).scalar_one())
        changed = bytes([payload[0] ^ 1]) + payload[1:]
        connection.execute(sa.text(f"UPDATE {table} SET payload = :changed WHERE {where}"), {"changed": changed})


def test_a_changed_byte_is_noticed_when_outputs_are_read(store: Store, build: Any, raw: Any) -> None:
    values = build.logits(6)
    evaluation = build.begin(size=6, dataset=build.dataset(6))
    for start in (0, 2, 4):
        store.outputs.append([Chunk(evaluation.id, "logits", start, values[start : start + 2])])
    flip(raw, store, "output_chunks", f"evaluation_id = {evaluation.id} AND start = 2")
    with pytest.raises(CorruptOutputError, match=r"samples 2 to 3: .*differ from their checksum.*testbed store check"):
        store.outputs.read(evaluation.id, "logits")
    unverified = store.outputs.read(evaluation.id, "logits", verify=False)
    assert [bool((unverified[row] == values[row]).all()) for row in range(6)] == [True, True, False, True, True, True]
    with raw(store) as connection:
        connection.execute(sa.text("UPDATE output_chunks SET payload = :short"), {"short": b"\0" * 4})
    with pytest.raises(CorruptOutputError):
        store.outputs.read(evaluation.id, "logits")


def test_an_evaluation_that_does_not_exist_is_told(store: Store) -> None:
    for ask in (
        lambda: store.outputs.read(4711, "logits"),
        lambda: store.outputs.kinds(4711),
        lambda: store.outputs.errors(4711),
        lambda: store.evaluations.complete(4711, [], []),
        lambda: store.evaluations.get(4711),
    ):
        with pytest.raises(StoreError, match="no evaluation 4711"):
            ask()


def test_outputs_beyond_the_last_sample_are_told(store: Store, build: Any) -> None:
    evaluation = build.begin(size=4)
    store.outputs.append([Chunk(evaluation.id, "logits", 2, build.logits(3))])
    with pytest.raises(StoreError, match="outputs of 4 samples were expected, some reach to 5"):
        store.outputs.read(evaluation.id, "logits")


# Derived evaluations ----------------------------------------------------------------------------------------------


def derive(build: Any, source: Any, order: list[int] | None, setting: str = "part") -> Any:
    dataset = source.dataset_id if order is None else build.dataset(order=order)
    size = source.size if order is None else len(order)
    return build.begin(
        "net", setting, size=size, dataset=dataset, origin="derived", derived_from=source.id, dtype="float32"
    )


def test_a_derived_evaluation_of_all_samples_reads_the_outputs_of_its_source(store: Store, build: Any) -> None:
    source = build.complete(size=10)
    derived = derive(build, source, None)
    assert derived.derived_from == source.id
    expected = store.outputs.read(source.id, "logits")
    assert same_bits(store.outputs.read(derived.id, "logits"), expected)
    assert store.outputs.kinds(derived.id) == {"logits": "float32"}


@pytest.mark.parametrize("order", [[0, 1, 2], [7], [9, 3, 0, 5], list(range(9, -1, -1)), []])
def test_a_derived_evaluation_reads_the_rows_of_its_own_samples_in_its_own_order(
    store: Store, build: Any, order: list[int]
) -> None:
    source = build.complete(size=10)
    derived = derive(build, source, order)
    expected = store.outputs.read(source.id, "logits")[order]
    assert same_bits(store.outputs.read(derived.id, "logits"), expected)


def test_outputs_that_a_larger_evaluation_has_too_are_kept_once(store: Store, build: Any, raw: Any) -> None:
    def part(setting: str, order: list[int], forward: str = "same", **given: Any) -> Any:
        dataset = build.dataset(order=order)
        return build.complete("net", setting, size=len(order), dataset=dataset, forward_fingerprint=forward, **given)

    whole = build.logits(5)
    large = part("large", [4, 2, 0, 1, 3], logits=whole)
    small = part("small", [2, 0], logits=whole[[1, 2]])
    child = build.complete(
        "net", "child", size=1, dataset=build.dataset(order=[0]), origin="derived", derived_from=small.id
    )
    others = [part("other outputs", [2, 0], forward="other"), part("more samples", [2, 7])]
    store.outputs.keep_once(large.id, [small.id, large.id, *(each.id for each in others)])
    with raw(store) as connection:
        kept = set(connection.scalars(sa.text("SELECT evaluation_id FROM output_chunks")))
    assert kept == {large.id, *(each.id for each in others)}
    planned = build.dataset(order=[2])  # a run that was planned before derives it from the small one
    late = build.complete("net", "late", size=1, dataset=planned, origin="derived", derived_from=small.id)
    assert [store.evaluations.get(each.id).derived_from for each in (small, child, late)] == [large.id] * 3
    assert same_bits(store.outputs.read(late.id, "logits"), whole[[1]])
    assert same_bits(store.outputs.read(small.id, "logits"), whole[[1, 2]])
    assert same_bits(store.outputs.read(child.id, "logits"), whole[[2]])
    assert store.evaluations.get(small.id).origin == "derived"


def test_many_samples_are_found_in_their_source(store: Store, build: Any) -> None:
    count = 12_000
    source = build.complete(size=count)
    order = list(range(count))
    random.Random(0).shuffle(order)
    derived = derive(build, source, order)
    expected = store.outputs.read(source.id, "logits")[order]
    assert same_bits(store.outputs.read(derived.id, "logits"), expected)


def test_a_derived_evaluation_finds_the_errors_of_its_samples_in_its_source(store: Store, build: Any) -> None:
    source = build.begin(size=10, dataset=build.dataset(10))
    store.outputs.append([Chunk(source.id, "logits", 0, build.logits(10))], {source.id: {3: "three", 8: "eight"}})
    derived = derive(build, source, [9, 8, 1, 3])
    assert store.outputs.errors(derived.id) == {1: "eight", 3: "three"}
    rows = store.outputs.read(derived.id, "logits")
    assert np.isnan(rows).all(axis=1).tolist() == [False, True, False, True]
    assert store.outputs.errors(derive(build, source, [0, 1], "sound").id) == {}


def test_a_derived_evaluation_with_a_sample_that_its_source_lacks_is_an_error(store: Store, build: Any) -> None:
    source = build.complete(size=5)
    derived = derive(build, source, [1, 7, 2, 8])
    with pytest.raises(StoreError, match=r"2 samples of data set \d+ are not among those of data set"):
        store.outputs.read(derived.id, "logits")


def test_a_sample_of_the_same_id_and_another_content_is_another_sample(store: Store, build: Any) -> None:
    source = build.complete(size=4)
    samples = [SampleInfo("photos/0001.png", "another digest", 1)]
    dataset = store.datasets.ensure(DatasetInfo("photos", "changed", samples))
    derived = build.begin("net", "part", size=1, dataset=dataset, origin="derived", derived_from=source.id)
    with pytest.raises(StoreError, match="1 samples"):
        store.outputs.read(derived.id, "logits")


# Scores and metrics -----------------------------------------------------------------------------------------------


def test_scores_come_back_by_scorer_and_name(store: Store, build: Any) -> None:
    right = np.array([1, 0, 1, 1], np.uint8)
    similarity = np.array([0.25, np.nan, -1.0, 1e-300])
    evaluation = build.complete(
        scores=[Score("top1", right, "a@1"), Score("sim", similarity, "b@2"), Score("sim", right)]
    )
    read = store.scores.read(evaluation.id)
    assert set(read) == {("a@1", "top1"), ("b@2", "sim"), ("", "sim")}
    assert same_bits(read["a@1", "top1"], right)
    assert same_bits(read["b@2", "sim"], similarity)
    assert set(store.scores.read(evaluation.id, "sim")) == {("b@2", "sim"), ("", "sim")}
    other = build.begin("other").id
    assert store.scores.read(other) == store.scores.read(evaluation.id, "nothing") == {}
    assert store.scores.names([evaluation.id, other]) == {evaluation.id: {"top1", "sim"}, other: set()}


def test_metrics_come_back_with_everything_about_them(store: Store, build: Any) -> None:
    given = [
        Metric("top1", 1 / 3, 3, 0.27216552697590873, "overall", "fraction", "classification@1"),
        Metric("top1", 0.5, 2, None, "easy", "fraction", "classification@1"),
        Metric("loss", 12.75, None, None, "overall", "nats", "own"),
        Metric("bleu", -1e-300, 1, 0.0, "overall", "", "a"),
    ]
    evaluation = build.complete(metrics=given)
    assert sorted(store.results.metrics(evaluation.id), key=str) == sorted(given, key=str)
    assert [(each.name, each.slice) for each in store.results.metrics(evaluation.id)][-2:] == [
        ("top1", "overall"),
        ("top1", "easy"),
    ]


def test_a_value_that_is_no_number_is_stored_as_not_defined(store: Store, build: Any) -> None:
    given = [Metric("a", float("nan"), 4, float("nan")), Metric("b", None, 4), Metric("c", np.float32(0.5), 4)]
    evaluation = build.complete(metrics=given)
    assert [(each.value, each.stderr) for each in store.results.metrics(evaluation.id)] == [
        (None, None),
        (None, None),
        (0.5, None),
    ]
    assert [each.value for each in store.results.find()] == [None, None, 0.5]


def test_completing_sets_status_and_moment(store: Store, build: Any) -> None:
    evaluation = build.begin()
    store.evaluations.fail(evaluation.id, "once")
    store.evaluations.complete(evaluation.id, [], [Metric("top1", 1.0)])
    done = store.evaluations.get(evaluation.id)
    assert (done.status, done.error) == ("complete", None)
    assert done.completed_at is not None
    assert done.completed_at.tzinfo is UTC
    assert abs(datetime.now(UTC) - done.completed_at) < timedelta(seconds=60)


def test_completing_again_replaces_scores_and_metrics(store: Store, build: Any) -> None:
    evaluation = build.complete(
        metrics=[Metric("top1", 0.1, 4), Metric("old", 0.2)],
        scores=[Score("old", np.zeros(4)), Score("s", np.zeros(4))],
    )
    other = build.complete("other")
    store.evaluations.complete(evaluation.id, [Score("s", np.ones(4))], [Metric("top1", 0.9, 3)])
    assert store.results.metrics(evaluation.id) == [Metric("top1", 0.9, 3)]
    assert {key: values.tolist() for key, values in store.scores.read(evaluation.id).items()} == {("", "s"): [1.0] * 4}
    assert len(store.results.metrics(other.id)) == 1
    bad: Any = Metric("last", 0.5, unit=None)  # type: ignore[arg-type]
    with pytest.raises(sa.exc.IntegrityError):
        store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.2), bad])
    assert store.results.metrics(evaluation.id) == [Metric("top1", 0.9, 3)]  # which failed attempts leave
    assert len(store.scores.read(evaluation.id)) == 1


def test_completing_stores_all_or_nothing(store: Store, build: Any) -> None:
    evaluation = build.begin()
    store.evaluations.record_failure(CellRecord("net", "val", UNIDENTIFIED), "failed", "no data", {}, {})
    bad: Any = Metric("last", 0.5, unit=None)  # type: ignore[arg-type]
    with pytest.raises(sa.exc.IntegrityError):
        store.evaluations.complete(evaluation.id, [Score("s", np.ones(4))], [Metric("first", 0.5), bad])
    assert store.results.metrics(evaluation.id) == []
    assert store.scores.read(evaluation.id) == {}
    assert store.evaluations.get(evaluation.id).status == "running"
    assert len(store.evaluations.find()) == 2


def test_a_corrupt_score_is_noticed(store: Store, build: Any, raw: Any) -> None:
    evaluation = build.complete(scores=[Score("s", np.ones(4))])
    flip(raw, store, "scores", f"evaluation_id = {evaluation.id}")
    with pytest.raises(CorruptOutputError, match="score s"):
        store.scores.read(evaluation.id)


def test_two_metrics_or_scores_of_one_name_are_refused(store: Store, build: Any) -> None:
    evaluation = build.begin()
    with pytest.raises(StoreError, match="two metrics own / top1 / overall"):
        store.evaluations.complete(
            evaluation.id, [], [Metric("top1", 0.5, scorer="own"), Metric("top1", 0.6, scorer="own")]
        )
    scores = [Score("top1", np.ones(4), "own"), Score("top1", np.zeros(4), "own")]
    with pytest.raises(StoreError, match="two scores own / top1"):
        store.evaluations.complete(evaluation.id, scores, [])
    assert store.evaluations.get(evaluation.id).status == "running"


def test_targets_that_are_no_number_are_refused_alike_on_both_databases(store: Store, build: Any) -> None:
    with pytest.raises(StoreError, match=r"NaN .*cannot be stored"):
        build.dataset(2, targets=[0.5, float("nan")])


# Results ----------------------------------------------------------------------------------------------------------


def test_only_complete_visible_evaluations_have_results(store: Store, build: Any) -> None:
    shown = build.complete("net", "val")
    running = build.begin("net", "running")
    store.evaluations.fail(build.begin("net", "failed").id, "broke")
    store.evaluations.record_failure(CellRecord("net", "unsupported", UNIDENTIFIED), "unsupported", "no", {}, {})
    assert visible(store) == {shown.id}
    store.evaluations.complete(running.id, [], [Metric("top1", 0.5)])
    assert visible(store) == {shown.id, running.id}


def test_a_result_says_everything_about_its_metric_and_its_evaluation(store: Store, build: Any) -> None:
    metric = Metric("top1", 0.25, 4, 0.2, "hard", "fraction", "classification@1")
    evaluation = build.complete(
        metrics=[metric],
        model_row={"model_type": "Standard training"},
        dtype="bfloat16",
        sample_limit=4,
        random_weights=True,
    )
    (result,) = store.results.find()
    assert (result.model, result.eval_setting, result.model_type) == ("net", "val", "Standard training")
    assert (result.metric, result.slice, result.value, result.n, result.stderr, result.unit, result.scorer) == (
        "top1", "hard", 0.25, 4, 0.2, "fraction", "classification@1",
    )  # fmt: skip
    assert (result.dtype, result.sample_limit, result.origin) == ("bfloat16", 4, "run")
    assert result.random_weights is True
    assert (result.evaluation_id, result.completed_at) == (evaluation.id, evaluation.completed_at)


def test_results_are_found_by_model_setting_metric_and_slice(store: Store, build: Any) -> None:
    metrics = [Metric(name, 0.5, slice=part) for name in ("top5", "top1") for part in ("easy", "overall", "art")]
    for model in ("b", "a"):
        for setting in ("val", "sketch"):
            build.complete(model, setting, metrics=metrics)
    every = [(each.model, each.eval_setting, each.metric, each.slice) for each in store.results.find()]
    assert len(every) == 24
    assert every == sorted(every, key=lambda key: (*key[:3], key[3] != "overall", key[3]))
    assert {each.model for each in store.results.find(["a"])} == {"a"}
    assert {each.eval_setting for each in store.results.find(eval_settings=["val", "nothing"])} == {"val"}
    chosen = store.results.find(iter(["a"]), iter(["val"]), iter(["top1"]), iter(["overall"]))
    assert [(each.model, each.eval_setting, each.metric, each.slice) for each in chosen] == [
        ("a", "val", "top1", "overall")
    ]
    assert store.results.find(models=[]) == []
    assert store.results.find(metrics=["top2"]) == []


def test_results_of_a_large_store_come_one_by_one(store: Store, build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(*given: Any) -> Result:
        made.append(given)
        return Result(*given)

    for model in ("a", "b"):
        build.complete(model, "val", metrics=[Metric(f"metric{number:04d}", number / 3000) for number in range(3000)])
    monkeypatch.setattr("testbed.db.parts.results.Result", make)
    stream = store.results.stream(["a", "b"])
    assert next(stream).metric == "metric0000"
    assert len(made) == 1
    assert [next(stream).metric for _ in range(2999)][-1] == "metric2999"
    assert next(stream).model == "b"
    stream.close()
    assert store.results.find() == list(store.results.stream())
    assert len(store.results.find(metrics=["metric0001"])) == 2


def test_rows_of_results_are_what_the_view_says(store: Store, build: Any) -> None:
    """Of cells with every kind of evaluation that may stand before another."""
    metrics = [Metric(name, 0.5, 4, 0.1, part) for name in ("top5", "top1") for part in ("overall", "art")]
    for model, records in {
        "a": [{}, {"sample_limit": 4}, {"random_weights": True}, {}],
        "b": [{"sample_limit": 4}, {"random_weights": True}],
        "hidden": [{}],
    }.items():
        for record in records:
            build.complete(model, "val", metrics=metrics, **record)
    build.complete("b", "sketch", 0.25, dtype="bfloat16")
    build.begin("c", "val")
    store.removal.hide_evaluation(build.complete("a", "val", 0.125).id)
    put_numbers(store, "a", "val", Metric("top1", 0.75, published="75.0"))
    store.names.set_types({"a": "Standard training"})
    put_numbers(store, "d", "val", Metric("top1", 0.25))
    store.names.hide("model", "hidden")
    names = [field.name for field in dataclasses.fields(Result)]

    def rows(*wanted: Any) -> list[Any]:
        return sorted(store.results.rows(names, *wanted), key=repr)

    def viewed(*wanted: Any) -> list[Any]:
        return sorted((tuple(getattr(each, name) for name in names) for each in store.results.find(*wanted)), key=repr)

    assert len(viewed()) == 4 + 4 + 1 + 1 + 1
    assert rows() == viewed()
    for wanted in ((["a", "d"],), (None, ["sketch"]), (None, None, ["top5"]), (None, None, None, ["overall"]), ([],)):
        assert rows(*wanted) == viewed(*wanted)
    by_metric = Counter((each.metric, each.origin) for each in store.results.find(slices=["overall"]))
    assert {tuple(of): number for *of, number in store.results.counts(["metric", "origin"], ["overall"])} == by_metric


def test_main_metrics_may_be_asked_for_beside_others(store: Store, build: Any) -> None:
    named = {"top1": 0, "nll": 0, "image_recall@1": 3, "text_recall@5": 5, "recalled@1": 0, "not_finite": -1}
    metrics = [Metric(name, 0.5, scorer="test@1", headline=headline) for name, headline in named.items()]
    build.complete(metrics=metrics)

    def found(metrics: list[str] | None) -> set[str]:
        return {name for (name,) in store.results.rows(["metric"], metrics=metrics, headlines=True)}

    assert found(["top1"]) == {"top1", "image_recall@1", "text_recall@5"}
    assert found([]) == {"image_recall@1", "text_recall@5"}
    assert found(None) == set(named)


def test_a_score_of_several_evaluations_is_that_of_each(store: Store, build: Any) -> None:
    values = {name: np.arange(4) * factor for name, factor in (("one", 1.0), ("two", 2.0))}
    ids = {name: build.complete(name, scores=[Score("top1", values[name], "test@1")]).id for name in values}
    lacking = build.complete("three", scores=[Score("nll", np.zeros(4), "test@1")]).id
    found = store.scores.of_each([*ids.values(), lacking], "top1")
    assert {each: array.tolist() for each, array in found.items()} == {
        ids[name]: values[name].tolist() for name in values
    }
    for each in found:
        np.testing.assert_array_equal(found[each], next(iter(store.scores.read(each, "top1").values())))


def evaluate(build: Any, value: float, **record: Any) -> int:
    return int(build.complete("net", "val", value, **record).id)


@pytest.mark.parametrize(
    ("before", "counts"),
    [({"sample_limit": 4}, {}), ({"random_weights": True}, {"sample_limit": 4}), ({}, {})],
    ids=["limited", "random weights", "older"],
)
@pytest.mark.parametrize("turned", [False, True])
def test_which_of_two_evaluations_counts_until_it_is_removed(
    store: Store, build: Any, before: Any, counts: Any, turned: bool
) -> None:
    """Whichever was begun first; of equal ones, that which was completed last."""
    records = [counts, before] if turned else [before, counts]
    ids = [build.begin("net", "val", **record).id for record in records]
    worse, better = reversed(ids) if turned else ids
    for each in (worse, better) if before == counts else ids:
        store.evaluations.complete(each, [], [Metric("top1", 0.5)])
    assert visible(store) == {better}
    store.removal.hide_evaluation(better)
    assert visible(store) == {worse}


def test_of_evaluations_completed_at_one_moment_the_last_begun_counts(store: Store, build: Any, raw: Any) -> None:
    """As any SQL client sees, too."""
    ids = [evaluate(build, 0.1), evaluate(build, 0.2)]
    with raw(store) as connection:
        connection.execute(sa.text("UPDATE evaluations SET completed_at = '2026-01-01 00:00:00.000000'"))
        row = connection.execute(sa.text("SELECT model, eval_setting, metric, value FROM results")).one()
    assert visible(store) == {ids[1]}
    assert tuple(row) == ("net", "val", "top1", 0.2)


def test_an_imported_evaluation_stands_beside_ones_own(store: Store, build: Any) -> None:
    put_numbers(store, "net", "val", Metric("top1", 0.75))
    own = evaluate(build, 0.5)
    assert [(each.origin, each.value) for each in store.results.find()] == [("imported", 0.75), ("run", 0.5)]
    put_numbers(store, "net", "val", Metric("top1", 0.8), fingerprint="newer")
    assert [(each.origin, each.value) for each in store.results.find()] == [("imported", 0.8), ("run", 0.5)]
    store.removal.hide_evaluation(own)
    assert [each.origin for each in store.results.find()] == ["imported"]


def test_a_derived_evaluation_stands_in_the_place_of_a_run_one(store: Store, build: Any) -> None:
    source = build.complete("net", "all")
    run = evaluate(build, 0.4)
    derived = evaluate(build, 0.6, origin="derived", derived_from=source.id)
    assert visible(store) == {source.id, derived}
    assert run not in visible(store)


def test_the_view_chooses_as_entities_current_does(store: Store, build: Any, raw: Any) -> None:
    draw = random.Random(7)
    for number in range(60):
        model, setting = draw.choice("ab"), draw.choice(["val", "sketch", "c"])
        if draw.random() < 0.25:
            put_numbers(store, model, setting, Metric("top1", draw.random()), fingerprint=f"i{number}")
            continue
        record = {"sample_limit": draw.choice([None, None, 10]), "random_weights": draw.random() < 0.4}
        evaluation = build.begin(model, setting, **record)
        if draw.random() < 0.85:
            store.evaluations.complete(evaluation.id, [], [Metric("top1", draw.random())])
        if draw.random() < 0.2:
            store.removal.hide_evaluation(evaluation.id)
    with raw(store) as connection:  # some at the very same moment
        connection.execute(
            sa.text(
                "UPDATE evaluations SET completed_at = '2026-01-01 00:00:00.000000'"
                " WHERE id % 3 = 0 AND status = 'complete'"
            )
        )
    cells: dict[tuple[str, str], list[Any]] = {}
    for each in store.evaluations.find():
        if each.status == "complete":
            cells.setdefault((each.model, each.eval_setting), []).append(each)
    expected = {each.id for cell in cells.values() for each in current(draw.sample(cell, len(cell)))}
    assert len(expected) > 6
    assert visible(store) == expected


def test_results_of_an_evaluation_that_is_not_the_one_that_counts(store: Store, build: Any) -> None:
    limited = build.complete("net", "val", 0.25, sample_limit=4)
    whole = build.complete("net", "val", 0.5)
    assert [each.value for each in store.results.find()] == [0.5]
    assert store.results.of([whole.id]) == store.results.find()
    (result,) = store.results.of([limited.id])
    assert (result.value, result.sample_limit, result.evaluation_id) == (0.25, 4, limited.id)
    assert store.results.of([]) == []


# Sources of derived evaluations -----------------------------------------------------------------------------------


def test_sources_are_visible_runs_with_that_forward_fingerprint(store: Store, build: Any) -> None:
    wanted = build.complete("net", "val", forward_fingerprint="forward")
    build.complete("net", "other", forward_fingerprint="another")
    build.complete("net", "none")
    build.begin("net", "running", forward_fingerprint="forward")
    build.complete("net", "derived", forward_fingerprint="forward", origin="derived", derived_from=wanted.id)
    store.removal.hide_evaluation(build.complete("net", "removed", forward_fingerprint="forward").id)
    assert store.evaluations.sources(["forward"]) == [wanted]
    assert store.evaluations.sources([]) == []
    assert store.evaluations.sources(iter(["nothing"])) == []


def test_a_failed_evaluation_is_a_source_when_all_its_outputs_are_stored(store: Store, build: Any) -> None:
    whole, part = build.begin("a", forward_fingerprint="f"), build.begin("b", forward_fingerprint="f")
    store.outputs.append([Chunk(whole.id, "logits", 0, build.logits(4)), Chunk(part.id, "logits", 0, build.logits(3))])
    for each in (whole, part):
        store.evaluations.fail(each.id, "scoring failed")
    assert [each.id for each in store.evaluations.sources(["f"])] == [whole.id]
    complete = build.complete("c", forward_fingerprint="f")
    assert [each.id for each in store.evaluations.sources(["f"])] == [complete.id, whole.id]


def test_sources_of_thousands_of_fingerprints_are_found(store: Store, build: Any) -> None:
    wanted = {build.complete("net", f"s{number}", forward_fingerprint=f"f{number * 400}").id for number in range(5)}
    found = store.evaluations.sources(f"f{number}" for number in range(2000))
    assert {each.id for each in found} == wanted
    assert len(found) == 5


# Artifacts and definitions ----------------------------------------------------------------------------------------


def test_an_artifact_is_found_by_its_fingerprint_and_a_corrupt_one_is_noticed(store: Store, raw: Any) -> None:
    assert store.artifacts.get("f") is None
    head = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    store.artifacts.put("f", "zero-shot head", head, {"prompts": ["a {c}"]})
    store.artifacts.put("f", "zero-shot head", head + 1, {})  # which changes nothing
    read = store.artifacts.get("f")
    assert read is not None
    assert same_bits(read, head)
    assert store.artifacts.get("g") is None
    flip(raw, store, "artifacts", "fingerprint = 'f'")
    with pytest.raises(CorruptOutputError, match="artifact f"):
        store.artifacts.get("f")


IDENTITY = {
    "model": {"spec": {"name": "net", "layers": [1, 2]}, "weights": "sha256:1"},
    "forward": {"task": "classification", "restricted": False},
    "samples": "dataset-fingerprint",
    "dtype": "float32",
    "limit": None,
}


def test_an_identity_comes_back_in_full(store: Store, build: Any) -> None:
    begun = build.begin(identity=IDENTITY)
    assert store.evaluations.identity(begun) == IDENTITY
    assert store.evaluations.identity(store.evaluations.get(begun.id)) == IDENTITY
    assert store.evaluations.identity(build.begin("other")) == {}


def test_definitions_are_stored_once_however_many_evaluations_share_them(store: Store, build: Any, raw: Any) -> None:
    for number in range(5):
        build.begin("net", f"s{number}", identity={**IDENTITY, "view": {"metric": number}})
    with raw(store) as connection:
        rows = connection.execute(sa.text("SELECT kind, count(*) FROM definitions GROUP BY kind"))
        assert dict(rows.all()) == {"model": 1, "forward": 1, "view": 5}
    stored = store.evaluations.find()[3]
    assert stored.identity is not None
    assert stored.identity["samples"] == "dataset-fingerprint"
    assert isinstance(stored.identity["model"], str)
    assert store.evaluations.identity(stored)["view"] == {"metric": 3}


# Imported cells ---------------------------------------------------------------------------------------------------


def test_imported_cells_are_complete_evaluations_without_outputs(store: Store) -> None:
    put_numbers(store, "b", "vid", Metric("pm0", 0.25), Metric("pm10", float("nan")))
    store.names.set_types({"b": "Standard training", "unknown": "x"})
    (evaluation,) = store.evaluations.find()
    assert (evaluation.status, evaluation.origin, evaluation.source) == ("complete", "imported", "table.csv")
    assert [(each.metric, each.value) for each in store.results.find()] == [("pm0", 0.25), ("pm10", None)]
    assert [(each.name, each.model_type) for each in store.names.all(MODEL)] == [("b", "Standard training")]
    with pytest.raises(StoreError):
        store.outputs.read(evaluation.id, "logits")


# Removing evaluations ---------------------------------------------------------------------------------------------


def test_only_the_last_removal_of_a_cell_is_undone(store: Store, build: Any) -> None:
    evaluate(build, 0.1, fingerprint="f")
    store.removal.hide("net", "val")
    second = evaluate(build, 0.2, fingerprint="f")
    store.removal.hide("net", "val")
    assert store.removal.unhide("net", "val") == 1
    assert visible(store) == {second}


def test_a_cell_that_was_run_again_cannot_be_brought_back_beside_it(store: Store, build: Any) -> None:
    evaluate(build, 0.1, fingerprint="f")
    store.removal.hide("net", "val")
    again = evaluate(build, 0.2, fingerprint="f")
    with pytest.raises(StoreError, match="was run again since it was removed"):
        store.removal.unhide("net", "val")
    assert visible(store) == {again}


def test_purging_deletes_what_was_removed_and_nothing_else(store: Store, build: Any, raw: Any) -> None:
    score = [Score("s", np.ones(4))]
    kept = build.complete("kept", "val", scores=score)
    removed = build.complete("net", "val", scores=score)
    store.outputs.append([], {removed.id: {0: "unreadable"}})
    store.names.hide(MODEL, "net")
    store.names.add(SETTING, "unused")
    store.names.hide(SETTING, "unused")
    assert store.removal.purge() == (1, 2)
    assert store.evaluations.find(hidden=True) == []
    with pytest.raises(UnknownNameError):
        store.names.unhide(MODEL, "net")
    with raw(store) as connection:
        for table in ("evaluations", "output_chunks", "scores", "metrics", "models"):
            assert count(connection, table) == 1, table
        assert count(connection, "sample_errors") == 0
    assert store.evaluations.find() == [kept]
    assert len(store.outputs.read(kept.id, "logits")) == 4
    assert list(store.maintenance.check()) == []


def test_a_hidden_name_with_visible_evaluations_elsewhere_is_not_purged_with_a_removed_one(
    store: Store, build: Any
) -> None:
    build.complete("net", "val")
    build.complete("net", "sketch")
    store.removal.hide("net", "sketch")
    assert store.removal.purge() == (1, 0)
    assert names(store, MODEL) == ["net"]
    assert names(store, SETTING) == ["sketch", "val"]


def test_purging_is_refused_while_a_visible_evaluation_needs_the_outputs(store: Store, build: Any) -> None:
    source = build.complete("net", "all", size=6)
    derived = derive(build, source, [4, 2], "part")
    store.evaluations.complete(derived.id, [], [Metric("top1", 0.5)])
    store.removal.hide("net", "all")
    with pytest.raises(StoreError, match=r"net on part: derived from .*cannot be purged; remove them all too"):
        store.removal.purge()
    assert len(store.evaluations.find(hidden=True)) == 1
    assert len(store.outputs.read(derived.id, "logits")) == 2
    store.removal.hide("net", "part")
    assert store.removal.purge() == (2, 0)
    assert store.evaluations.find(hidden=True) == []


@pytest.mark.parametrize("kind", [MODEL, SETTING])
def test_a_cell_is_not_brought_back_without_its_model_and_setting(store: Store, build: Any, kind: Any) -> None:
    build.complete("net", "val")
    store.removal.hide("net", "val")
    store.names.hide(kind, "net" if kind == MODEL else "val")
    with pytest.raises(StoreError, match=f"testbed store restore {kind.removeprefix('eval ')}"):
        store.removal.unhide("net", "val")


# Checking ---------------------------------------------------------------------------------------------------------


def sound(store: Store, build: Any) -> Any:
    """A store with something of everything; returns a complete evaluation."""
    evaluation = build.complete("net", "val", scores=[Score("s", np.ones(4))], identity=IDENTITY)
    derived = derive(build, evaluation, [2, 1], "derived")
    store.evaluations.complete(derived.id, [], [Metric("top1", 0.5)])
    put_numbers(store, "imported", "val", Metric("top1", 0.75))
    build.begin("net", "running")
    store.evaluations.record_failure(CellRecord("net", "failed", UNIDENTIFIED), "failed", "no data", {}, {})
    store.artifacts.put("f", "head", np.zeros(3), {})
    return evaluation


def test_a_complete_evaluation_with_unreadable_samples_is_sound(store: Store, build: Any) -> None:
    for unreadable, start, model in (([2], 0, "one"), ([0, 1], 2, "two")):
        evaluation = build.begin(model)
        chunk = Chunk(evaluation.id, "logits", start, build.logits(4 - start))
        store.outputs.append([chunk], {evaluation.id: dict.fromkeys(unreadable, "no file")})
        store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.5)])
        assert len(store.outputs.read(evaluation.id, "logits")) == 4
    assert list(store.maintenance.check()) == []


@pytest.mark.parametrize(
    ("table", "damage", "named"),
    [
        ("output_chunks", "flip", ["evaluation {0.id} (net on val), logits", "checksum"]),
        ("scores", "flip", ["evaluation {0.id} (net on val) has a damaged score s"]),
        ("artifacts", "flip", ["artifact"]),
        ("metrics", "DELETE FROM metrics WHERE evaluation_id = {0.id}", ["{0.id} (net on val)", "no metrics"]),
        ("samples", "DELETE FROM samples WHERE dataset_id = {0.dataset_id} AND position = 3",
         ["photos (evaluation {0.id} (net on val)", "are 3; 4 belong to it"]),
    ],
)  # fmt: skip
def test_check_names_what_was_changed(
    store: Store, build: Any, raw: Any, table: str, damage: str, named: list[str]
) -> None:
    evaluation = sound(store, build)
    assert list(store.maintenance.check()) == []
    if damage == "flip":
        flip(raw, store, table, "fingerprint = 'f'" if table == "artifacts" else f"evaluation_id = {evaluation.id}")
    else:
        with raw(store) as connection:
            connection.execute(sa.text(damage.format(evaluation)))
    faults = list(store.maintenance.check())
    assert any(all(words.format(evaluation) in fault for words in named) for fault in faults)
    assert len(faults) == 1 or table in ("artifacts", "samples")


# The store as a whole ---------------------------------------------------------------------------------------------


def test_create_opens_a_store_that_exists_without_changing_it(store: Store, build: Any, store_url: str) -> None:
    build.complete()
    with Store.create(store_url) as again:
        assert (again.results.find(), again.evaluations.find()) == (store.results.find(), store.evaluations.find())
        again.names.add(MODEL, "another")
    assert exists(store, MODEL, "another")


def test_a_failing_transaction_leaves_nothing(store: Store) -> None:
    def interrupted() -> None:
        with store.database.writing() as session:
            session.execute(sa.text("INSERT INTO models (name, created_at) VALUES ('half', '2026-01-01 00:00:00')"))
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        interrupted()
    assert names(store, MODEL) == []


@pytest.mark.parametrize("bad", ["x" * 300, "a\0b", "a\ud800b"], ids=["long", "NUL", "surrogate"])
def test_texts_have_one_rule_on_both_databases(store: Store, build: Any, bad: str) -> None:
    evaluation = build.begin()
    store.outputs.append([Chunk(evaluation.id, "logits", 0, build.logits())])
    for metric, scores in (
        *((Metric(**{"name": "top1", "value": 0.5, place: bad}), []) for place in ("name", "slice", "scorer")),
        (Metric("top1", 0.5), [Score(bad, np.zeros(4))]),
    ):
        with pytest.raises(StoreError, match=r"cannot hold a text that (is too long|has)"):
            store.evaluations.complete(evaluation.id, scores, [metric])
    assert store.results.metrics(evaluation.id) == []
    store.evaluations.fail(evaluation.id, bad)  # for people only: kept as far as it can be
    assert store.evaluations.get(evaluation.id).error

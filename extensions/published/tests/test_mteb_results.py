"""MTEB's results as files of its repository: one for each task, in folders of models and revisions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from testbed.claims.reading import NO_SETTING
from testbed.errors import DataError, StoreError
from testbed.extensions.published.adding import OTHERS, add, add_known, read_folder
from testbed.extensions.published.sources import SourceFile, in_folder

MODEL, REVISION = "openai/clip-vit-base-patch16", "57c216476eefef5ab752ec549e440a49ae4ae5f3"
OTHER = "QuanSun/EVA02-CLIP-bigE-14-plus"
HEADER = "model,model_revision,task,dataset_revision,mteb_version,split,subset,accuracy,path"
# Of each model the accuracies as they are printed, on tasks whose data have this revision.
ACCURACIES = {
    MODEL: {"DTDZeroShot": "0.4425531914893617", "UCF101ZeroShot": "0.6514365522745411", "MNISTZeroShot": "0.6233"},
    OTHER: {"DTDZeroShot": "1.0"},
}


def result(task, scores, **fields):
    """A file's text, in which numbers are those of the texts."""
    given = {"dataset_revision": "b24c7a5a", "evaluation_time": 256.5, "kg_co2_emissions": None}
    given |= {"mteb_version": "1.14.15", "scores": scores, "task_name": task, **fields}
    text = json.dumps(given, indent=2)
    return text.replace('"<', "").replace('>"', "")


def of_accuracy(accuracy):
    printed = f"<{accuracy}>"
    return {"test": [{"accuracy": printed, "hf_subset": "default", "languages": ["eng-Latn"], "main_score": printed}]}


def put(folder, model, task, text, revision=REVISION):
    file = folder / "results" / model.replace("/", "__") / revision / f"{task}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / "clone"
    for model, accuracies in ACCURACIES.items():
        for task, accuracy in accuracies.items():
            put(folder, model, task, result(task, of_accuracy(accuracy)))
        put(folder, model, "model_meta", json.dumps({"name": model, "revision": REVISION, "n_parameters": 151000000}))
    return folder


def table():
    """What was collected of them, by hand."""
    rows = [
        f"{model},{REVISION},{task},b24c7a5a,1.14.15,test,default,{accuracy},"
        f"results/{model.replace('/', '__')}/{REVISION}/{task}.json"
        for model, accuracies in sorted(ACCURACIES.items())
        for task, accuracy in sorted(accuracies.items())
    ]
    return "".join(f"{line}\r\n" for line in [HEADER, *rows])


def known(text, pattern="results/*/*/*ZeroShot.json"):
    digest = hashlib.sha256(text.encode()).hexdigest()
    about = ("owner/results", "f" * 40, pattern, "mteb/table.csv", len(text), digest, "CC0-1.0", "2026-08-20")
    return SourceFile("mteb", *about, "MTEB's results", "zero-shot image classification")


def added(store, path):
    return add(store, read_folder(path), "mteb")


def test_the_files_say_what_the_table_says_that_was_collected_from_them(clone, publish, empty_store):
    of_table = publish("mteb.csv", table()).claims
    of_files = added(empty_store, clone).claims
    assert [(c.model, c.eval_setting, c.value, c.published, c.why) for c in of_files] == [
        (OTHER, "vtab/dtd", 1.0, "1.0", None),
        (MODEL, "vtab/dtd", 0.4425531914893617, "0.4425531914893617", None),
        (MODEL, "mnist", 0.6233, "0.6233", None),
        (MODEL, "ucf101", 0.6514365522745411, "0.6514365522745411", NO_SETTING),
    ]
    assert {replace(each, row="").protocol["file"] for each in of_files} == {each.protocol["file"] for each in of_table}
    without_rows = [sorted((replace(each, row="") for each in of), key=repr) for of in (of_table, of_files)]
    assert without_rows[0] == without_rows[1]


def test_a_folder_is_added_once(clone, empty_store):
    first = added(empty_store, clone)
    assert (first.new, first.source.rows, first.source.left_out[OTHERS]) == (4, 4, 2)  # two are about the models
    assert first.source.left_out["evaluation_time"] == first.source.left_out["main_score"] == 4
    assert added(empty_store, clone / "results").new == 0
    assert added(empty_store, clone / "results" / MODEL.replace("/", "__")).new == 3  # other files: a source of its own


def test_a_clone_at_the_known_commit_is_the_known_table(clone, empty_store, monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    file = known(table())
    found, missing = in_folder(clone, [file])
    assert (found[file].read_bytes(), missing) == (table().encode(), [])
    of_clone = add_known(empty_store, file, found[file])
    assert (of_clone.new, of_clone.source.file) == (4, f"{file.path} at fffffff of 2026-08-20")
    whole = tmp_path / "published" / "mteb"
    whole.mkdir(parents=True)
    (whole / "table.csv").write_bytes(table().encode())
    assert add_known(empty_store, file, in_folder(whole.parent, [file])[0][file]).new == 0


def test_a_clone_at_another_commit_is_told(clone):
    file = known(table())
    put(clone, OTHER, "DTDZeroShot", result("DTDZeroShot", of_accuracy("0.9")))
    with pytest.raises(DataError, match="check out that commit, or add the results of a model with testbed published"):
        in_folder(clone, [file])


def test_other_tasks_keep_their_main_score_and_their_name(clone, empty_store):
    scores = {
        "test": [
            {"accuracy": 0.57, "f1": 0.53, "hf_subset": "ru", "languages": ["rus-Cyrl"], "main_score": 0.57},
            {"main_score": -0.25, "hf_subset": "pt", "languages": ["por-Latn"], "mteb_version": "2.16.1"},
        ],
        "validation": [{"main_score": float("nan"), "hf_subset": "default", "languages": []}],
    }
    folder = put(clone, "me/mine", "STS22", result("STS22", scores, date=1778795621.6), "1").parent
    put(clone, "me/mine", "CIFAR10", result("CIFAR10", of_accuracy("0.9")), "1")  # a probe
    found = added(empty_store, folder)
    assert [(c.eval_setting, c.metric, c.value, c.slice, c.row, c.why) for c in found.claims] == [
        ("CIFAR10", "main_score", 0.9, "overall", "CIFAR10.json, test", NO_SETTING),
        ("STS22", "main_score", 0.57, "ru", "STS22.json, test, ru", NO_SETTING),
        ("STS22", "main_score", -0.25, "pt", "STS22.json, test, pt", NO_SETTING),
    ]
    assert [c.protocol["mteb"] for c in found.claims] == ["1.14.15", "1.14.15", "2.16.1"]
    assert {c.model for c in found.claims} == {"me/mine"}
    assert found.source.left_out == {
        **{"accuracy": 2, "date": 1, "evaluation_time": 2, "f1": 1, "not defined (NaN)": 1}
    }


def test_the_model_is_that_of_the_file_beside_it(publish, tmp_path):
    text = result("DTDZeroShot", of_accuracy("0.5"))
    with pytest.raises(StoreError, match="should lie in results/MODEL/REVISION, as in MTEB's repository, or beside"):
        publish("DTDZeroShot.json", text)
    (tmp_path / "model_meta.json").write_text('{"name": "me/a model (int8)", "revision": "2"}')
    (claim,) = publish("DTDZeroShot.json", text).claims
    told = {"model revision": "2", "data revision": "b24c7a5a", "file": "DTDZeroShot.json", "split": "test"}
    assert (claim.model, claim.protocol) == ("me/a model (int8)", {**told, "mteb": "1.14.15"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (result("DTDZeroShot", of_accuracy("0.5"), mood="good"), "'mood'"),
        (result("DTDZeroShot", of_accuracy("1.5")), "between 0 and 1"),
        (result("DTDZeroShot", [0.5]), "scores should be an object with a list of objects for each split"),
        (result("DTDZeroShot", {"test": 0.5}), "scores should be an object with a list of objects for each split"),
        (result(["DTDZeroShot"], of_accuracy("0.5")), "task_name should be a text"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(publish, text, why):
    with pytest.raises(StoreError, match=why):
        publish(f"results/me__mine/1/{'DTDZeroShot'}.json", text)

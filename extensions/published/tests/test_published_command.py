"""``testbed published``: from files to pairs, on a made manifest and a server of this machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest
from web_world import serving

from testbed.db.store import Store
from testbed.entities import CellRecord, Metric
from testbed.extensions.published import sources
from testbed.extensions.published.sources import SourceFile

OURS = "name,pretrained,ImageNet 1k,MNIST,FMoW\nViT-B-32,openai,0.6332,0.4839,0.1\nViT-B-16,openai,0.6834,0.5135,0.1\n"
HEADER = "model,task,split,subset,accuracy\n"
THEIRS = f"""{HEADER}openai/clip-vit-base-patch32,Imagenet1kZeroShot,test,default,0.6232
openai/clip-vit-base-patch32,MNISTZeroShot,test,default,0.4789
openai/clip-vit-base-patch16,Imagenet1kZeroShot,test,default,0.63988
openai/clip-vit-base-patch16,MNISTZeroShot,test,default,0.623
openai/clip-vit-base-patch16,UCF101ZeroShot,test,default,0.6
"""


def source_file(source: str, path: str, text: str, form: str) -> SourceFile:
    data = text.encode()
    return SourceFile(
        *(source, f"owner/{source}", "c" * 40, path, f"{source}/{path.rpartition('/')[2]}", len(data)),
        *(hashlib.sha256(data).hexdigest(), "MIT", "", form, ""),
    )


@pytest.fixture
def files(monkeypatch, tmp_path):
    """A manifest of two sources, whose files lie in a folder by source."""
    known = (
        source_file("ours", "docs/ours.csv", OURS, "open_clip's table"),
        source_file("theirs", "theirs.csv", THEIRS, "MTEB's results"),
    )
    monkeypatch.setattr(sources, "known_files", lambda: known)
    for each, text in zip(known, (OURS, THEIRS), strict=True):
        path = tmp_path / "folder" / each.file
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return known


@pytest.fixture
def web(files, monkeypatch, tmp_path):
    paths = {
        f"/{each.repository}/{each.commit}/{each.path}": text for each, text in zip(files, (OURS, THEIRS), strict=True)
    }
    with serving({path: text.encode() for path, text in paths.items()}) as server:
        monkeypatch.setattr(sources, "HOST", server.url)
        monkeypatch.setattr(sources, "cache_dir", lambda name: tmp_path / "cache" / name)
        yield server


def stored(tmp_path):
    with Store.open(str(tmp_path / "testbed.db")) as store:
        return store.claims.find()


def test_files_are_downloaded_once_and_go_on_where_they_were_cut(ask, web, tmp_path):
    web.cuts.append(40)
    told = ask("published", "fetch")
    assert "downloading 1 file of ours from owner/ours (0.0 MB)" in told.stderr
    assert any(each is not None for _, each in web.asked)  # it asked for the rest only
    assert told.stdout.splitlines()[2:] == [
        "ours        1     2       6    6       6",
        "theirs      1     5       5    5       4",
    ]
    first = stored(tmp_path)
    web.asked.clear()
    again = ask("published", "fetch")
    assert (web.asked, again.stderr) == ([], "")
    assert again.stdout.splitlines()[2] == "ours        1     2       6    0       6"
    assert stored(tmp_path) == first
    assert [each.source.revision for each in first] == ["c" * 40] * 11


def test_show_prints_what_is_published_about_a_cell_that_was_not_measured(ask, tmp_path):
    table = tmp_path / "top1s.csv"
    table.write_text("model,val\nresnet50,76.13\n")
    ask("import", table, "--override")
    for words in (("show", "resnet50", "val"), ("--print-eval", "resnet50", "val")):
        head, *lines = ask(*words).stdout.splitlines()
        assert head == "resnet50 on val: published, not measured here"
        assert lines[-1].startswith("top1")
        assert "76.13 % †" in lines[-1]
    (row,) = json.loads(ask("show", "resnet50", "val", "--json").stdout)
    assert (row["origin"], row["metric"], row["value"]) == ("published", "top1", pytest.approx(0.7613))
    assert "unknown model" in ask("show", "resnet51", "val", code=1).stderr


def test_a_file_of_other_content_is_not_taken(ask, web, tmp_path):
    path = next(iter(web.files))
    web.files[path] = b"name,pretrained\n"
    assert "has the SHA-256" in ask("published", "fetch", code=1).stderr
    del web.files[path]
    assert "404" in ask("published", "fetch", "ours", code=1).stderr
    assert not (tmp_path / "testbed.db").exists()
    assert "the sources are ours, theirs" in ask("published", "fetch", "nobodys", code=1).stderr


def test_a_folder_or_a_clone_is_read_where_it_lies(ask, files, tmp_path):
    folder = tmp_path / "folder"
    ask("published", "fetch", "--from", folder)
    first = stored(tmp_path)
    clone = tmp_path / "clone" / "docs"
    clone.mkdir(parents=True)
    (clone / "ours.csv").write_text(OURS)
    told = ask("published", "fetch", "--from", clone.parent)
    assert "does not hold 1 file, such as theirs/theirs.csv" in told.stderr
    assert stored(tmp_path) == first
    (clone / "ours.csv").write_text(OURS + "x")
    said = ask("published", "fetch", "ours", "--from", clone.parent, code=1).stderr
    assert "is not docs/ours.csv of owner/ours at ccccccc" in said
    assert "--source ours" in said
    assert "holds no file of theirs" in ask("published", "fetch", "theirs", "--from", clone.parent, code=1).stderr


def test_what_was_collected_from_several_files_is_not_downloaded(ask, files, monkeypatch):
    collected = dataclasses.replace(files[1], path="results/*.json")
    monkeypatch.setattr(sources, "known_files", lambda: (collected,))
    assert "was collected from results/*.json" in ask("published", "fetch").stderr


def test_a_folder_of_mtebs_results_is_added(ask, tmp_path):
    folder = tmp_path / "results" / "openai__clip-vit-base-patch16" / "57c2"
    folder.mkdir(parents=True)
    for task in ("MNISTZeroShot", "STS12"):
        scores = {"test": [{"accuracy": 0.623, "main_score": 0.623, "hf_subset": "default", "languages": []}]}
        text = json.dumps({"task_name": task, "mteb_version": "2.13.1", "dataset_revision": "b24c", "scores": scores})
        (folder / f"{task}.json").write_text(text)
    told = ask("published", "add", folder.parent, "--source", "mteb").stdout
    assert "mteb        1     2       2    2       1" in told
    assert "mteb is MTEB's results" in told
    assert "62.30 %  top1, mteb" in ask("published", "show", "openai/clip-vit-base-patch16", "mnist").stdout


def test_pairs_that_differ_the_largest_first(ask, files, tmp_path):
    ask("published", "fetch", "--from", tmp_path / "folder")
    told = ask("published", "disagree").stdout.splitlines()
    assert told[0] == (
        "4 pairs of values (2 models × 2 sets) from ours and theirs; 2 differ by more than 1 point, 1 by more than 5"
    )
    # 63.32 and 62.32 differ by a point, and not by more
    assert [line.split() for line in told[4:]] == [
        ["−10.95", "ViT-B-16,openai", "mnist", "51.35", "62.30"],
        ["+4.35", "ViT-B-16,openai", "imagenet1k", "68.34", "63.99"],
    ]
    assert max(map(len, told[1:])) <= 80
    told = ask("published", "disagree", "--by", "0.9", "--limit", "1").stdout
    assert "4 by more than 0.9" not in told
    assert "3 by more than 0.9" in told
    assert "… and 2 more" in told
    assert "(1 model × 1 set)" in ask("published", "disagree", "--models", "openai/*32", "--on", "mn*").stdout
    (found,) = json.loads(ask("published", "disagree", "ours", "theirs", "--json").stdout)
    assert (found["pairs"], found["models"], found["sets"], found["more_than_1_point"]) == (4, 2, 2, 2)
    assert [each["points"] for each in found["differing"]] == [-10.95, 4.352]
    assert found["differing"][0]["second"]["source"]["path"] == "theirs.csv"
    assert "no two sources" in ask("published", "disagree", "ours").stdout
    assert "stored sources: ours, theirs" in ask("published", "disagree", "nobodys", code=1).stderr


def test_a_cell_under_all_names_of_its_weights_and_what_was_measured(ask, files, tmp_path):
    ask("published", "fetch", "--from", tmp_path / "folder")
    told = ask("published", "show", "openai/clip-vit-base-patch16", "imagenet1k").stdout
    assert told.splitlines() == [
        "  68.34 %  top1, ours",
        "           docs/ours.csv at ccccccc, row 3; as ViT-B-16,openai; prompts DataComp's",
        f"           https://github.com/owner/ours/blob/{'c' * 40}/docs/ours.csv",
        "  63.99 %  top1, theirs",
        "           theirs.csv at ccccccc, row 4; split test",
        f"           https://github.com/owner/theirs/blob/{'c' * 40}/theirs.csv",
        "not measured here",
    ]
    with Store.open(str(tmp_path / "testbed.db"), "write") as store:
        made = store.evaluations.begin(CellRecord("ViT-B-16,openai", "imagenet1k", "f"), None, {}, {})
        store.evaluations.complete(made.id, [], [Metric("top1", 0.68, 4, 0.01)])
    told = ask("published", "show", "openai/clip-vit-base-patch16", "imagenet1k").stdout.splitlines()
    ours = "           ViT-B-16,openai: measured 68.00 ± 1.00: "
    assert [told[3], told[7]] == [
        f"{ours}agrees",
        f"{ours}differs by +4.0 points (z = 4.0)",
    ]
    assert told[8:] == ["68.00 ± 1.00 %  top1, measured here", "           as ViT-B-16,openai; n 4; evaluation 1"]
    found = json.loads(ask("published", "show", "ViT-B-16,openai", "imagenet1k", "--json").stdout)
    assert [len(found["published"]), len(found["measured"])] == [2, 1]
    told = ask("published", "show", "x", "y", code=1).stderr
    assert "x on y: nothing is published for this cell, and nothing was measured" in told


def test_who_says_what_of_which_cell(ask, files, tmp_path):
    ask("published", "fetch", "--from", tmp_path / "folder")
    words = ("published", "list", "--models", "openai/clip-vit-base-patch16", "--on", "imagenet1k")
    lines = ask(*words).stdout.splitlines()
    assert [line.split()[:1] + line.split()[-3:] for line in lines[2:4]] == [
        *(["ours", "%", "prompts", "DataComp's"], ["theirs", "%", "split", "test"])
    ]
    assert lines[4:] == [
        f"{name}: https://github.com/owner/{name}/blob/{'c' * 40}/{path}"
        for name, path in (("ours", "docs/ours.csv"), ("theirs", "theirs.csv"))
    ]
    found = json.loads(ask("published", "list", "theirs", "--on", "mnist", "--json").stdout)
    assert [(each["source"], each["printed"], each["conditions"]) for each in found] == [
        *(("theirs", "0.4789", {"split": "test"}), ("theirs", "0.623", {"split": "test"}))
    ]
    assert "2 of 11 published values; 9 more values: --limit" in ask("published", "list", "--limit", "2").stderr
    told = ask("published", "list", "--models", "openai/clip-vit-base-patch16", "--on", "wilds/fmow2").stdout
    assert told == "nothing is published for this cell\n"
    assert "stored sources: ours, theirs" in ask("published", "list", "nobodys", code=1).stderr


def test_what_is_stored_of_each_source(ask, files, tmp_path):
    assert "testbed published fetch" in ask("published", "fetch", "--help").stdout
    ask("published", "fetch", "--from", tmp_path / "folder")
    told = ask("published", "coverage").stdout
    assert told.splitlines()[2:4] == [
        "ours        1     2       6       6       6",
        "theirs      1     5       5       5       4",
    ]
    assert "theirs: 1 claim is not mapped: testbed has no such eval setting:\n  ucf101" in told
    found = json.loads(ask("published", "coverage", "--json").stdout)
    assert found[1]["unmapped"] == {"testbed has no such eval setting": {"ucf101": 1}}


def test_a_site_is_made_of_what_is_published_with_nothing_measured(ask, files, tmp_path):
    def document(name):
        text = (tmp_path / "site" / "data" / f"{name}.js").read_text()
        return json.loads(text[text.index(",") + 1 : text.rindex(")")])

    ask("published", "fetch", "--from", tmp_path / "folder")
    ask("site", "--out", tmp_path / "site")
    index = document("index")
    assert [each["name"] for each in index["columns"]] == ["imagenet1k", "mnist", "wilds/fmow"]
    assert {each["task"] for each in index["columns"]} == {"classification (CLIP benchmark)"}
    trained = dict(zip(index["models"]["name"], index["models"]["pretraining"], strict=True))
    assert trained["ViT-B-32,openai"] == trained["openai/clip-vit-base-patch32"] == "OpenAI's 400M"
    values = document("values/0")
    assert set(values["origins"]) == {"published (ours)", "published (theirs)"}
    told = ask("published", "disagree").stdout
    (listed,) = document("disagreements")["sources"]
    assert told.startswith(listed["summary"])
    assert [(each["setting"], each["points"]) for each in listed["pairs"]] == [("mnist", -10.95), ("imagenet1k", 4.352)]


def test_a_file_of_ones_own(ask, tmp_path):
    path = tmp_path / "blog.csv"
    path.write_text("net,acc\nresnet50,76.13\nmynet,50\n")
    assert "has an unknown format" in ask("published", "add", path, code=1).stderr
    words = ("--map", "model=net", "setting=val", "value=acc", "unit=percent", "--source", "a blog")
    told = ask("published", "add", path, *words).stdout
    assert "a blog      1     2       2    2       1" in told
    assert "1 claim is not mapped: testbed has no such model" in told
    assert "76.13 %  top1, a blog" in ask("published", "show", "resnet50", "val").stdout
    (found,) = json.loads(ask("published", "add", path, *words, "--json").stdout)
    assert (found["new"], found["claims"], found["unmapped"]) == (0, 2, {"testbed has no such model": 1})


def test_claims_that_others_verified_or_dispute(ask, tmp_path):
    entry = {"link": "x", "name": "y", "authors": "z", "venue": "v", "architecture": "ViT-B", "dataset": "imagenet"}
    entry |= {"additional_data": False, "number_forward_passes": 1, "eps": "4/255", "clean_acc": "68.38"}
    path = tmp_path / "imagenet" / "Linf" / "Net.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**entry, "reported": "34.40", "autoattack_acc": "34.30", "external": "33.9"}))
    ask("published", "add", path)
    told = ask("published", "show", "robustbench/imagenet/Linf/Net", "autoattack.linf.eps4").stdout
    assert "robustbench/imagenet/Linf/Net: claimed 34.40, verified 34.30 (−0.10), disputed 33.90 (−0.50)" in told


@pytest.fixture
def blog(ask, tmp_path):
    """A store with claims about two of the models for digits: one is far off."""
    path = tmp_path / "blog.csv"
    path.write_text("net,acc\ndigits-knn,90.1\ndigits-logreg,96.3\n")
    ask("published", "add", path, "--map", "model=net", "setting=digits", "value=acc", "unit=percent")


def test_a_run_says_what_is_published_about_its_cells(ask, blog):
    words = ("run", "digits-knn", "digits-logreg", "--on", "digits", "--executor", "inline")
    lines = ask(*words).stdout.splitlines()
    differs = "published 90.10 (blog); measured 98.70 ± 0.49: differs by +8.6 points (z = 18)"
    agrees = "published 96.30 (blog); measured 96.11 ± 0.83: agrees"
    prepared = [line.partition(";")[0] for line in lines if line.startswith(("digits-knn: ", "digits-logreg: "))]
    assert prepared == [  # the same for both: only once
        *("digits-knn: resize 32, crop 32, interpolation bilinear", "digits-logreg: images as for digits-knn")
    ]
    assert [line for line in lines if "published" in line] == [
        *(f"digits-knn on digits: {differs}", f"digits-logreg on digits: {agrees}")
    ]
    told = ask(*words, "--fail-on-disagreement", code=1)
    assert "1 number differs from published ones, so the exit status is 1" in told.stderr
    assert "2 stored" in told.stdout
    ask("run", "digits-logreg", "--on", "digits", "--executor", "inline", "--fail-on-disagreement")
    found = json.loads(ask(*words, "--json").stdout)["published"]
    assert [(each["model"], each["verdict"], each["published"]) for each in found] == [
        *(("digits-knn", "differs", 0.901), ("digits-logreg", "agrees", 0.963))
    ]
    assert differs in ask("show", "digits-knn", "digits").stdout
    shown = json.loads(ask("show", "digits-knn", "digits", "--json").stdout)
    verdicts = {each["metric"]: [one["verdict"] for one in each["published"]] for each in shown[::-1]}
    assert (verdicts["top1"], verdicts["top5"]) == (["differs"], [])
    told = ask("published", "show", "digits-knn", "digits").stdout
    assert "\n           measured 98.70 ± 0.49: differs by +8.6 points (z = 18)\n" in told
    compared = json.loads(ask("published", "show", "digits-knn", "digits", "--json").stdout)["compared"]
    assert [each["verdict"] for each in compared] == ["differs"]


def test_a_run_has_one_line_for_a_number_that_many_have_published(ask, tmp_path):
    for number in range(20):
        path = tmp_path / f"blog{number}.csv"
        path.write_text(f"net,acc\ndigits-knn,{98.7 if number % 4 else 90 + number / 10}\n")
        ask("published", "add", path, "--map", "model=net", "setting=digits", "value=acc", "unit=percent")
    told = ask("run", "digits-knn", "--on", "digits", "--executor", "inline").stdout.splitlines()
    (line,) = [each for each in told if "published" in each]
    assert line.startswith(
        "digits-knn on digits: published 90.00 (blog0); measured 98.70 ± 0.49: differs by +8.7 points"
    )
    assert line.endswith("; 19 more sources: 4 differ, 15 agree (testbed show)")


def test_a_grid_marks_the_numbers_that_differ(ask, blog):
    ask("run", "digits-knn", "digits-logreg", "--on", "digits", "--executor", "inline")
    told = ask("grid", "digits").stdout.splitlines()
    assert [line.split() for line in told[2:4]] == [["digits-knn", "98.70*"], ["digits-logreg", "96.11"]]
    assert told[4] == "* differs from the published value: testbed published show MODEL SETTING"
    assert ask("grid", "digits", "--format", "markdown").stdout.splitlines()[-2:] == ["", f"\\{told[4]}"]
    assert r"$\ast$: differs from the published value." in ask("grid", "digits", "--format", "latex").stdout
    rows = {each["model"]: each for each in json.loads(ask("grid", "digits", "--json").stdout)}
    assert rows["digits-knn"]["differ_from_published"] == ["digits"]
    assert "differ_from_published" not in rows["digits-logreg"]

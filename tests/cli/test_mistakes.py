"""A user's mistakes and the machine's faults: each gives one clear line, no traceback, and loses nothing stored."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_world import LOGREG, WORLD, WORLD_CELLS, eval_inline

from testbed.data.sets.imagenet import synsets
from testbed.db.store import Store


def error_of(done):
    """The line that begins with Error."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


@contextmanager
def tmpfs(folder: Path, size: str):
    """A small file system in memory; mounting needs root, which CI has, and falls back to a user's own name space."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


RESNET = ("--models", "resnet18", "--eval-settings", "val", "--random-weights", "--executor", "inline")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root, as CI has it")


MISTAKES = {
    "an unknown model": (
        ("--models", "digits-cn", "--eval-settings", "digits"),
        "unknown model 'digits-cn'",
        "'digits-cnn'",
    ),
    "an unknown setting": (("--models", "demo", "--eval-settings", "digit"), "'digits'"),
    "a pattern that matches nothing": (("--models", "demo", "--eval-settings", "digits-d.*"), "digits-d.*"),
    "a GPU that is not there": ((*LOGREG, "--gpus", "97"), "--gpus 97: torch sees"),
    "a store in a folder that does not exist": ((*LOGREG, "--db-url", "no/results.db"), "folder that does not exist"),
    "a plug-in that is a folder": ((*LOGREG, "--plugin", "/"), "--plugin /: a folder, not a file"),
    "a plug-in that is a device": ((*LOGREG, "--plugin", "/dev/null"), "/dev/null: not a regular file"),
    "an empty name": (("--models", "digits-logreg", "--eval-settings", ""), "unknown eval setting ''"),
    "a broken plug-in": ((*LOGREG, "--plugin", "broken.py"), "broken.py:3", "my own fault"),
    "a name that is taken": ((*LOGREG, "--plugin", WORLD, "twice.py"), "world.py", "twice.py:2"),
}


@pytest.mark.parametrize(("words", "said"), [(words, said) for words, *said in MISTAKES.values()], ids=MISTAKES)
def test_a_mistake_is_told_in_one_line_before_the_run(program, tmp_path, words, said):
    (tmp_path / "broken.py").write_text("import testbed\n\nraise OSError('my own fault')\n")
    (tmp_path / "twice.py").write_text(
        "from testbed.registry import registry\nregistry.add_model(registry.get_model('world-plain'))\n"
    )
    told = error_of(program("eval.py", *words, code=1))
    assert [part for part in said if part not in told] == []


def test_a_missing_data_root(program, tmp_path):
    done = program("eval.py", *RESNET, code=1)
    assert "no data root is set" in done.stdout
    assert "--data-root" in done.stdout
    done = program("eval.py", *RESNET, "--data-root", str(tmp_path), code=1)
    assert f"{tmp_path / 'val'} does not exist" in done.stdout
    assert "one folder per class" in done.stdout


def test_an_incomplete_data_set(program, tmp_path, make_tree):
    make_tree(tmp_path / "pets" / "val", each=2)
    done = program("eval.py", *RESNET, code=1, TESTBED_DATA=str(tmp_path / "pets"))
    assert "should hold 1,000 folders, one for each class" in done.stdout
    assert "3 folders were found" in done.stdout
    for name in synsets()[:2]:
        (tmp_path / "data" / "val" / name).mkdir(parents=True)
        os.link(tmp_path / "pets" / "val" / "cat" / "000.png", tmp_path / "data" / "val" / name / "0.png")
    done = program("eval.py", *RESNET, TESTBED_DATA=str(tmp_path / "data"))
    assert "val.part has 2 of the 50,000 samples of val, of 2 of its 1,000 classes" in done.stdout
    assert "1 complete" in done.stdout


def test_what_failed_at_planning_is_a_row_with_its_reason(program, tmp_path):
    program("eval.py", *RESNET, code=1)
    done = program("db.py", "--print-eval", "resnet18", "val", code=1)
    assert "failed" in error_of(done)
    assert "no data root is set" in error_of(done)


def test_a_capability_that_a_model_lacks(program):
    words = ("--models", "digits-knn", "--eval-settings", "digits-pgd.linf.eps0.1", "digits", "--executor", "inline")
    done = program("eval.py", *words, "--random-weights", "--limit", "20")
    assert "needs gradients; digits-knn has logits" in done.stdout
    assert "1 unsupported" in done.stdout


def test_weights_that_cannot_be_downloaded(program, tmp_path):
    done = program(
        "eval.py",
        *("--models", "timm/resnet18.a1_in1k", "--eval-settings", "val", "--executor", "inline"),
        code=1,
        TESTBED_DATA=str(tmp_path),
        HF_HUB_CACHE=str(tmp_path / "hub"),
    )
    assert "cannot be downloaded" in done.stdout or "does not exist" in done.stdout


@pytest.fixture
def corrupt(tmp_path, make_tree):
    """Words that run a model on twelve photos, one of which is cut off."""
    tree = make_tree(tmp_path / "photos", each=4)
    victim = tree / "dog" / "002.png"
    victim.write_bytes(victim.read_bytes()[:200])
    plugin = tmp_path / "photos.py"
    plugin.write_text(
        "from testbed.registry import registry\n"
        "from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset\n"
        f"dataset = StandardDataset(path={str(tree)!r})\n"
        "registry.add_eval_setting(EvalSetting(name='twelve-photos', dataset=dataset, size=12))\n"
    )
    cell = ("--models", "world-plain", "--eval-settings", "twelve-photos")
    return ("--plugin", WORLD, str(plugin), *cell, "--executor", "inline")


def test_a_corrupt_image_counts_as_wrong_and_is_told(program, tmp_path, corrupt):
    done = program("eval.py", *corrupt)
    assert "Unreadable: world-plain on twelve-photos: 1 sample could not be read and counted as wrong" in done.stdout
    assert "\n  not read: dog/002.png: dog/002.png cannot be decoded" in done.stdout
    shown = program("db.py", "--print-eval", "world-plain", "twelve-photos").stdout
    assert "1 sample could not be read and counted as wrong" in shown
    assert "  not read: dog/002.png: dog/002.png cannot be decoded" in shown
    with Store.open(str(tmp_path / "testbed.db")) as store:
        (evaluation,) = store.evaluations.find()
        ((position, error),) = store.outputs.errors(evaluation.id).items()
        assert store.datasets.get(evaluation.dataset_id).samples[position].id == "dog/002.png"
    assert "dog/002.png cannot be decoded" in error


def test_strict_stops_at_a_corrupt_image(program, corrupt):
    done = program("eval.py", *corrupt, "--strict", code=1)
    assert "dog/002.png" in error_of(done)
    assert "--strict" in error_of(done)


@needs_root
def test_a_full_disk(program, tmp_path):
    with tmpfs(tmp_path / "disk", "2400k") as folder:
        url = str(folder / "results.db")
        eval_inline(program, "--db-url", url)
        words = ("--plugin", WORLD, "--models", "world-plain", "world-other", "--eval-settings", "world", "world-dark")
        done = program("eval.py", *words, "--db-url", url, code=1)
        assert "no space left" in error_of(done)
        assert "Nothing that was stored before is lost" in error_of(done)
        rows = json.loads(program("db.py", "--db-url", url, "--print-eval", "world-plain", "world", "--json").stdout)
        assert {each["n"] for each in rows if each["slice"] == "overall"} <= {
            100,
            1100,
        }  # the limited run, or the whole if there was room for it
        assert program("testbed", "store", "check", "--db-url", url).stdout == "the store is sound\n"
        for file in folder.iterdir():  # the database and its log, onto a disk with room
            shutil.copy(file, tmp_path / file.name)
    done = program("eval.py", *words, "--db-url", str(tmp_path / "results.db"), "--executor", "inline", "--json")
    assert {each["status"] for each in json.loads(done.stdout)["outcomes"]} <= {"complete", "stored"}


def test_a_file_whose_name_is_too_long(program, tmp_path):
    Store.create(str(tmp_path / "testbed.db")).close()
    name = f"{'x' * 300}.csv"
    said = program("testbed", "export", "answers", "3", name, code=1).stderr
    assert said == f"Error: {name} cannot be read or written: File name too long\n"


def test_words_that_are_no_options_end_with_code_2(program):
    assert "not -1" in program("eval.py", *LOGREG, "--gpus", "-1", code=2).stderr
    assert "No such option" in program("eval.py", *WORLD_CELLS, "--bogus", code=2).stderr

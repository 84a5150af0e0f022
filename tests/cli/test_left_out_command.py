"""What data sets leave out or lack, as commands say it; splits of different classes; words that are no folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

NAMES = ["zero", "one", "two", "three", "four"]
WORDS = ("--models", "digits-clip", "--executor", "inline", "--data-root", ".")


def tree(root: Path, without: dict[str, str]) -> None:
    """The first digits, as folders; of each split one class may be absent."""
    digits = load_digits(n_class=len(NAMES))
    for place, (pixels, label) in enumerate(zip(digits.images[:300], digits.target[:300], strict=True)):
        split = "train" if place % 3 else "test"
        if NAMES[label] != without.get(split):
            file = root / split / NAMES[label] / f"{place}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((pixels / 16 * 255).astype(np.uint8)).save(file)


def run(program, *words, fails=False):
    done = program("eval.py", *WORDS, "--json", *words, **({"code": 1} if fails else {}))
    return json.loads(done.stdout)


def top1(told: dict, setting: str) -> float:
    (value,) = [
        each["value"]
        for each in told["results"]
        if (each["eval_setting"], each["metric"], each["slice"]) == (setting, "top1", "overall")
    ]
    return float(value)


PLUGIN = """
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.registry import registry

registry.add_eval_setting(EvalSetting("own-train", StandardDataset("photos/train"), None))
registry.add_eval_setting(
    EvalSetting(
        "own", StandardDataset("photos/test"), None, task="linear_probe",
        task_options={"train": "own-train", "probe": {"method": "lbfgs"}},
    )
)
"""


@pytest.mark.parametrize("split", ["test", "train"])
def test_a_split_that_lacks_a_class_does_not_shift_the_others(split, program, tmp_path):
    tree(tmp_path / "photos", {split: "one"})
    Path(tmp_path / "plug.py").write_text(PLUGIN)
    settings = ["folder/photos.linear_probe.lbfgs", "own"]
    told = run(program, "--plugin", "plug.py", "--eval-settings", *settings)
    # All digits of classes that were seen are easy; of unseen ones ("one" without training images) none can be right.
    share = np.mean(load_digits(n_class=5).target[:300:3] != 1) if split == "train" else 1
    for setting in settings:
        assert top1(told, setting) == pytest.approx(share, abs=0.04)
        assert top1(told, setting) <= share
        stored = json.loads(program("db.py", "--print-eval", "digits-clip", setting, "--json").stdout)
        assert stored[0]["left_out"].items() <= told["left_out"].items()
    said = [each for parts in told["left_out"].values() for each in parts]
    assert [each["names"] for each in said] == [["one"]] * len(said)
    assert {each["reason"] for each in said} <= {"classes without images", "classes that the evaluated split lacks"}
    again = run(program, "--plugin", "plug.py", "--eval-settings", *settings, "--strict")  # nothing is left out
    assert [each["status"] for each in again["outcomes"]] == ["stored", "stored"]
    assert again["left_out"] == told["left_out"]


def test_what_is_left_out_is_in_the_report_the_store_and_the_exit_status(program, tmp_path):
    tree(tmp_path / "photos", {})
    words = (*WORDS, "--eval-settings", "folder/photos.linear_probe")
    (tmp_path / "photos/train/one/._1.png").write_bytes(b"apple")
    assert "left out" not in program("eval.py", *words).stdout.replace("hidden or system files left out", "")
    program("eval.py", *words, "--strict")  # hidden files alone are of no account
    Image.new("L", (8, 8)).save(tmp_path / "photos/train/two/loop.gif")
    line = "Data of folder/photos.train: files with other extensions left out: 1 (two/loop.gif)"
    assert line in program("eval.py", *words).stdout
    refused = program("eval.py", *words, "--strict", "--override", code=1)
    assert line in refused.stdout
    assert "--strict: the files left out may be samples" in refused.stderr
    shown = program("db.py", "--print-eval", "digits-clip", "folder/photos.linear_probe").stdout
    assert "data of folder/photos.train: files with other extensions left out: 1 (two/loop.gif)" in shown


def test_a_flat_an_empty_and_a_missing_folder_are_told_apart(program, tmp_path):
    (tmp_path / "flat").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "hidden/.ipynb_checkpoints").mkdir(parents=True)
    for name in ("1.png", "hidden.png"):
        Image.new("RGB", (8, 8)).save(tmp_path / "flat" / name)
    for model, folder in (
        ("digits-cnn", "flat"),
        ("digits-clip", "flat"),
        ("digits-cnn", "empty"),
        ("digits-clip", "hidden"),
    ):
        done = program("eval.py", "--models", model, "--eval-settings", folder, "--executor", "inline", code=1)
        found = "images without class folders, and so without labels" if folder == "flat" else "no folders"
        assert f"has {found}; it should contain one folder per class" in done.stdout
    for missing in ("./photos", str(tmp_path / "nowhere"), "qqq"):
        done = program("eval.py", "--models", "digits-cnn", "--eval-settings", missing, code=1)
        assert f"there is no file or folder {(tmp_path / missing)};" in done.stderr
        assert "did you mean" not in done.stderr
    near = program("eval.py", "--models", "digits-cnn", "--eval-settings", "vtab/cifr10", code=1).stderr
    assert "did you mean 'vtab/cifar10'" in near

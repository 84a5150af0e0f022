"""Which step of which run a path says."""

from __future__ import annotations

import pytest

from testbed.entities import TrainingCheckpoint
from testbed.errors import DataError
from testbed.stored_results.checkpoint_steps import CheckpointFile, checkpoint_of, clash, compiled


@pytest.mark.parametrize(
    ("path", "run", "step", "unit", "epoch"),
    [
        ("/r/a/epoch_3.pt", "/r/a", 3, "epoch", 3),
        ("/r/a/epoch=3-step=1200.ckpt", "/r/a", 1200, "step", 3),  # Lightning's
        ("/r/a/epoch=3-val_loss=0.25.ckpt", "/r/a", 3, "epoch", 3),
        ("/r/a/model_iter0040000.pth", "/r/a", 40000, "step", None),
        ("/r/a/vit16_epoch3.pt", "/r/a", 3, "epoch", 3),
        ("/r/a/resnet18-7.pth", "/r/a", 7, "step", None),
        ("/r/a/checkpoint-500/model.safetensors", "/r/a", 500, "step", None),  # transformers'
        ("/r/a/global_step20/weights.bin", "/r/a", 20, "step", None),
    ],
)
def test_names_of_usual_tools_say_their_steps(path, run, step, unit, epoch):
    assert checkpoint_of(path) == TrainingCheckpoint(run, step, unit, epoch)


def test_a_name_without_a_number_says_none():
    assert checkpoint_of("/r/a/last.pt") is None


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        (r"e(?P<epoch>\d+)/s(?P<step>\d+)", "/r/a/e2/s50.pt", TrainingCheckpoint("/r/a", 50, "step", 2)),
        (r"-(?P<step>\d+)k", "/r/a/x-90k-8.pt", TrainingCheckpoint("/r/a", 90)),
        (r"-(?P<step>\d+)k", "/r/a/x.pt", None),
        (r"(?:e(?P<epoch>\d+))?x", "/r/a/x.pt", None),
    ],
)
def test_a_pattern_of_the_users_says_it(pattern, path, found):
    assert checkpoint_of(path, compiled(pattern)) == found


@pytest.mark.parametrize(
    ("pattern", "said"), [("(", "is not a regular expression"), (r"(\d+)", "no group named epoch")]
)
def test_a_wrong_pattern_is_refused(pattern, said):
    with pytest.raises(DataError, match=said):
        compiled(pattern)


def found(path):
    return CheckpointFile(path, checkpoint_of(path))


def test_files_of_one_step_in_one_run_clash():
    first = found("/r/a/model_3.pt")
    assert "both have step 3" in clash([first], found("/r/a/optimizer_3.pt"))
    assert "only its epoch" in clash([first], found("/r/a/epoch_4.pt"))
    assert clash([first], found("/r/b/model_3.pt")) == ""
    assert clash([first], first) == ""

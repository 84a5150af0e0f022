"""What TensorBoard, Weights & Biases and MLflow have after a watch, read back by their own means, offline."""

from __future__ import annotations

import json
import struct

import pytest

from testbed.errors import DataError, MissingExtraError
from testbed.stored_results.checkpoint_steps import label_of
from testbed.trackers.mirrors import Point, mirror_of

STORE = "sqlite:////store.db"
POINTS = {1: 0.25, 3: 0.75, 2: 0.5}  # step → value, out of order as checkpoints may be


def log(word, run, points):
    """What one watch logs."""
    mirror = mirror_of(word, STORE)
    for step, value in points.items():
        mirror.log(Point(str(run), label_of(str(run)), step, "epoch"), {"digits/top1": value})
    mirror.close()
    return mirror.name


def transactions(content):
    """The records of a .wandb file: LevelDB's log format, blocks of 32 KiB, after a head of seven bytes."""
    whole, block = b"", 32768
    assert content[:4] == b":W&B"
    place = 7
    while place + 7 <= len(content):
        if block - place % block < 7:
            place += block - place % block  # the rest of a block is too short for another part
            continue
        size, kind = struct.unpack_from("<HB", content, place + 4)
        part = content[place + 7 : place + 7 + size]
        place += 7 + size
        whole = part if kind in (1, 2) else whole + part  # all of it, or the first part
        if kind in (1, 4):  # all of it, or the last part
            yield whole


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_tensorboard_shows_a_curve_for_each_run(folder):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log("tensorboard:tb", folder / "runs" / "a", {1: 0.25, 3: 0.75})
    log("tensorboard:tb", folder / "runs" / "a", {2: 0.5})  # a later watch
    log("tensorboard:tb", "/elsewhere/b", {1: 0.125})
    for name, points in (("runs/a", POINTS), ("elsewhere/b", {1: 0.125})):
        events = EventAccumulator(str(folder / "tb" / name))
        events.Reload()
        assert {each.step: each.value for each in events.Scalars("digits/top1")} == points
        assert len(events.Scalars("digits/top1")) == len(points)


def test_wandb_has_one_run_for_a_training_run(folder, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="the extra wandb is not installed")
    from wandb.proto import wandb_internal_pb2

    for name, value in (("WANDB_MODE", "offline"), ("WANDB_SILENT", "true"), ("WANDB_DIR", str(folder))):
        monkeypatch.setenv(name, value)
    assert log("wandb:digits", folder / "runs" / "a", POINTS) == "wandb:digits"
    wandb.teardown()
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    logged, names, projects = {}, set(), set()
    for data in transactions(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "run":
            names.add(record.run.display_name)
            projects.add(record.run.project)
        if record.WhichOneof("record_type") == "history":
            item = {each.key or "/".join(each.nested_key): json.loads(each.value_json) for each in record.history.item}
            logged[item["epoch"]] = item["digits/top1"]
    assert (logged, names, projects) == (POINTS, {"runs/a"}, {"digits"})


def test_mlflow_goes_on_with_its_run(folder, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking", reason="the extra mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"file:{folder}/ml"
    log(f"mlflow:{uri}", folder / "runs" / "a", {1: 0.25, 3: 0.75})
    log(f"mlflow:{uri}", folder / "runs" / "a", {2: 0.5})  # a later watch
    client = tracking.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("testbed").experiment_id])
    assert run.data.tags["testbed.run"] == str(folder / "runs" / "a")
    history = client.get_metric_history(run.info.run_id, "digits/top1")
    assert {each.step: each.value for each in history} == POINTS
    assert len(history) == len(POINTS)


@pytest.mark.parametrize("word", ["tensorboard", "tensorboard:", "comet", ""])
def test_another_name_is_refused(word):
    with pytest.raises(DataError, match="expected tensorboard:DIR"):
        mirror_of(word, STORE)


@pytest.mark.parametrize("word", ["tensorboard:x", "wandb", "mlflow"])
def test_what_is_not_installed_is_said(word, monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda name: __import__("no_such_module"))
    with pytest.raises(MissingExtraError, match="pip install -e"):
        mirror_of(word, STORE)

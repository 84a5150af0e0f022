"""`testbed run --log` and `testbed.evaluate(log=…)`: each result is logged once."""

from __future__ import annotations

import pytest
from at_hand_world import MODEL, make_pictures
from cli_world import in_process

import testbed
from testbed.errors import DataError, MissingExtraError, RunError


class Board:
    """A tracker that notes what it gets."""

    def __init__(self, name="board", fails=False):
        self.name, self.fails, self.points, self.closed = name, fails, [], 0

    def log(self, point, values):
        if self.fails:
            raise OSError("no network")
        self.points.append((point.run, point.unit, {key: round(value, 4) for key, value in values.items()}))

    def close(self):
        self.closed += 1


@pytest.fixture
def boards(monkeypatch):
    made = {"board": Board(), "other": Board("other"), "gone": Board("gone", fails=True)}
    monkeypatch.setattr("testbed.trackers.results.mirror_of", lambda word, store: made[word])
    return made


@pytest.fixture
def run(tmp_path, monkeypatch, own_registry):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    pictures = make_pictures(tmp_path / "pictures")
    here = {"db": str(tmp_path / "results.db"), "executor": "inline", "workers": 0, "progress": False}
    return lambda **options: testbed.evaluate(MODEL, {"mine": pictures.rows}, **here, **options)


def test_results_are_logged_once_and_to_each_tracker(run, boards):
    run(log=["board"])
    ((model, unit, values),) = boards["board"].points
    assert (model, unit) == ("at-hand", "evaluation")
    assert [value for key, value in values.items() if key.endswith("/top1")] == [0.75]
    assert all(key.startswith("object/mine-") for key in values)
    run(log=["board", "other"])  # nothing is computed; a tracker that is new gets what is stored
    assert len(boards["board"].points) == 1
    assert boards["other"].points == boards["board"].points
    assert boards["other"].closed == 1
    run(log="other", override=True)
    assert len(boards["other"].points) == 2  # another evaluation


def test_a_tracker_that_is_not_reached_is_said_and_gets_the_results_later(run, boards):
    with pytest.warns(
        UserWarning, match="the results of at-hand are not in gone: OSError: no network; the results are"
    ):
        assert run(log=["gone"]).failed.empty
    boards["gone"].fails = False
    run(log=["gone"])
    assert len(boards["gone"].points) == 1


def test_mistakes_are_found_before_anything_is_computed(run, monkeypatch):
    with pytest.raises(DataError, match="expected tensorboard:DIR"):
        run(log=["comet"])
    with pytest.raises(RunError, match="cannot be used with log"):
        run(log=["wandb"], until=1.0)
    monkeypatch.setattr("importlib.import_module", lambda name: __import__("no_such_module"))
    with pytest.raises(MissingExtraError, match="pip install -e"):
        run(log=["mlflow"])


@pytest.fixture
def command(tmp_path, monkeypatch, capsys, own_registry):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    with in_process(monkeypatch, capsys) as run:
        yield run


def test_the_command_logs_to_tensorboard(tmp_path, command):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    pictures = make_pictures(tmp_path / "pictures")
    (tmp_path / "labels.csv").write_text("path,label\n" + "".join(f"{path},{label}\n" for path, label in pictures.rows))
    (tmp_path / "models.py").write_text(
        "from at_hand_world import MODEL\nfrom testbed.registry import registry\nregistry.add_model(MODEL)\n"
    )
    words = "run at-hand --on labels.csv --plugin models.py --log tensorboard:tb --executor inline".split()
    for _ in range(2):
        done = command(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    events = EventAccumulator(str(tmp_path / "tb" / "at-hand"))
    events.Reload()
    assert [each.value for each in events.Scalars("file/labels.csv/top1")] == [0.75]


def test_the_command_says_what_it_could_not_log(command):
    done = command(*"run digits-logreg --on digits --no-db --log wandb".split())
    assert done.returncode == 2
    assert "it cannot be used with --no-db" in done.stderr

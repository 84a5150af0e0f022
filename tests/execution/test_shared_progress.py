"""Progress of runs that share their work, of resumed runs and of runs whose workers die: each sample counts once."""

from __future__ import annotations

import io
import multiprocessing
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from toy import SlowNetwork, darker, toy_catalog, toy_model, toy_setting
from toy_towers import everything, toy_encoder
from world_runs import wait_until

from testbed.db.store import Store
from testbed.execution.progress import LineProgress
from testbed.graph.options import RunOptions
from testbed.graph.passes import Pass, PassCell, shards_of
from testbed.registry import Catalog, registry
from testbed.runner.run import run

FORK = multiprocessing.get_context("fork")
LINE = re.compile(r"(.*): ([\d,]+) of ([\d,]+) (images|samples|texts)(.*)")


def counts(text: str, most: int) -> dict[str, list[int]]:
    """Label → what lines said was done; each line has to make sense."""
    found: dict[str, list[int]] = {}
    for line in text.splitlines():
        if (told := LINE.fullmatch(line)) is None:
            continue
        done, total = (int(each.replace(",", "")) for each in told.groups()[1:3])
        assert 0 <= done <= total <= most, line
        assert "-" not in told[5], line
        found.setdefault(told[1], []).append(done)
        if done == total:
            assert found[told[1]].count(done) == 1, f"{line} came twice"
    for label, several in found.items():
        assert several == sorted(several), label
    return found


def has_begun(url: str) -> bool:
    with Store.open(url) as store:
        return bool(store.leases.runs())


def start(made: Catalog, url: str, models: Sequence[str], settings: Sequence[str], to: Path) -> Any:
    def child() -> None:
        with to.open("w") as stream:
            options = RunOptions(db_url=url, executor="inline")
            assert run(made, options, models, settings, LineProgress(stream, interval=1)).ok

    process = FORK.Process(target=child)
    process.start()
    return process


def test_runs_that_share_some_cells_count_each_image_once(lab: Any, tmp_path: Path) -> None:
    made = toy_catalog(
        toy_model(classifier_loader=lambda: SlowNetwork(0)),
        toy_setting("plain"),
        toy_setting("dim", perturbation_fn_gpu=darker),
        toy_setting("other", perturbation_fn_gpu=torch.sqrt),
    )
    files = [tmp_path / "first", tmp_path / "second"]
    first = start(made, lab.url, ["toy"], ["plain", "dim", "other"], files[0])
    wait_until(lambda: has_begun(lab.url))
    second = start(made, lab.url, ["toy"], ["plain", "other", "dim"], files[1])
    for each in (first, second):
        each.join(120)
        assert each.exitcode == 0
    for file in files:
        text = file.read_text()
        assert counts(text, 600)
        last = {told[1]: told for told in map(LINE.fullmatch, text.splitlines()) if told}
        assert [told[0] for told in last.values() if told[2] != told[3]] == []  # fewer than 600, if some were stored


def test_runs_that_share_stored_embeddings_and_texts_count_them_once(lab: Any, tmp_path: Path) -> None:
    made = toy_catalog(toy_encoder(), *everything())
    files = [tmp_path / "first", tmp_path / "second"]
    runs = [start(made, lab.url, ["tower"], ["shown", "captions", "choices", "probe"], file) for file in files]
    for each in runs:
        each.join(120)
        assert each.exitcode == 0
    for file in files:
        counts(file.read_text(), 1000)


def test_a_run_that_resumes_cells_of_unequal_progress_counts_each_image_once(lab: Any) -> None:
    made = toy_catalog(toy_model(), toy_setting("plain"), toy_setting("dim", perturbation_fn_gpu=darker))
    lab.run(made)
    with Store.open(lab.url, "write") as store, store.database.writing() as session:
        connection = session.connection()
        connection.exec_driver_sql("UPDATE evaluations SET status = 'running'")
        connection.exec_driver_sql("DELETE FROM output_chunks WHERE evaluation_id = 1 AND start = 256")
        connection.exec_driver_sql("DELETE FROM output_chunks WHERE evaluation_id = 2")
    out = io.StringIO()
    options = RunOptions(db_url=lab.url, executor="inline", trust=True)
    assert run(made, options, ["toy"], ["plain", "dim"], LineProgress(out, interval=1)).ok
    (several,) = counts(out.getvalue(), 600).values()
    assert several[-1] == 600


def test_each_sample_counts_once_in_the_shards_of_cells_that_lack_different_ranges() -> None:
    cells = tuple(PassCell(number, "toy", f"s{number}", "") for number in (1, 2, 3))
    one_pass = Pass(0, cells, source=None, positions=range(100), targets=[], batch_size=10, chunk=40)  # type: ignore[arg-type]
    stored = {1: [(0, 30)], 2: [(35, 70)], 3: [(0, 10), (90, 100)]}
    shards = shards_of(one_pass, stored, iter(range(100)))
    lacking = {place for shard in shards for place in shard.positions}
    assert sum(shard.counted for shard in shards) == pytest.approx(len(lacking))
    assert sum(shard.count for shard in shards) > len(lacking)


@pytest.mark.slow
def test_a_cell_that_kills_its_workers_is_given_up_and_does_not_make_others_count_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_MARKS", str(tmp_path))
    plugin = Path(__file__).parent.parent / "plugins" / "world.py"
    registry.load([plugin])
    out = io.StringIO()
    options = RunOptions(
        db_url=str(tmp_path / "x.db"), executor="processes", cpu_processes=1, limit=200, plugins=(str(plugin),)
    )
    report = run(registry, options, ["world-stubborn", "world-plain"], ["world"], LineProgress(out, interval=1))
    assert [(each.model, each.status) for each in report.outcomes] == [
        ("world-stubborn", "failed"),
        ("world-plain", "complete"),
    ]
    assert "SIGKILL" in report.outcomes[0].reason
    with Store.open(options.db_url) as store:
        (failed,) = store.evaluations.find(["world-stubborn"])
        assert (failed.status, "worker died" in (failed.error or "")) == ("failed", True)
    for label, several in _as_told(out.getvalue()):
        assert max(several) <= 200, label


def _as_told(text: str) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for told in filter(None, map(LINE.fullmatch, text.splitlines())):
        assert "-" not in told[5], told[0]
        found.setdefault(told[1], []).append(int(told[2].replace(",", "")))
    return list(found.items())

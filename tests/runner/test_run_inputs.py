"""Runs of one process with different inputs: each is as if it were the only one, in all its threads and processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wds_world
from warm_python import WarmPython

from testbed.db.store import Store
from testbed.graph.options import RunOptions
from testbed.inputs import Inputs, active
from testbed.registry import registry
from testbed.runner.dry_run import make_plan
from testbed.runner.run import run

PLUGIN = str(Path(__file__).parent.parent / "plugins" / "inputs_world.py")
CLASSES = ("cat", "dog", "owl")
LABELS = {f"s{number}": str(number % 3).encode() for number in range(6)}
TEXTS = {f"s{number}": f"picture {number}\n".encode() for number in range(6)}

# The second runs alone, in a process that has never seen the first ones.
ALONE = """
import json, sys
from pathlib import Path
from testbed.db.store import Store
from testbed.inputs import Inputs, Preprocessing
from testbed.registry import registry
from testbed.graph.options import RunOptions
from testbed.runner.run import run

plugin, folder, cases = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
for number, (model, setting, fields) in enumerate(cases):
    fields.update({name: tuple(fields[name]) for name in ("heads", "kept", "own_names")})
    fields["preprocessing"] = Preprocessing(**fields["preprocessing"])
    url = str(folder / f"alone{number}.db")
    options = RunOptions(
        db_url=url, plugins=(plugin,), inputs=Inputs(**fields), executor="inline", data_workers=0
    )
    (outcome,) = run(registry, options, [model], [setting]).outcomes
    with Store.open(url) as store:
        found = store.evaluations.get(outcome.evaluation_id)
    print(json.dumps([outcome.status, found.fingerprint, found.forward_fingerprint]))
"""

Case = tuple[str, str, Inputs, Inputs]


@pytest.fixture(autouse=True)
def _surroundings(
    own_registry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_cache: Callable[[Path], Path]
) -> None:
    monkeypatch.setenv("TESTBED_CACHE", str(new_cache(tmp_path)))
    monkeypatch.setattr(registry, "plugins", list(registry.plugins))


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def pets(root: Path, labels: dict[str, bytes] = LABELS) -> Path:
    wds_world.write_split(
        root / "wds_pets", [wds_world.samples(labels)], classnames="\n".join(CLASSES) + "\n", templates="a {c}\n"
    )
    return root


def retrieval(root: Path) -> Path:
    """A data set of the same name, of another kind."""
    wds_world.write_split(root / "wds_pets", [wds_world.samples(TEXTS, "txt")], dataset_type="retrieval")
    return root


def cases(tmp_path: Path) -> dict[str, Case]:
    """Of each kind of input a first and a second one, and what is run with them."""
    data = Inputs(data_root=str(pets(tmp_path / "data")))
    names = [write(tmp_path / f"names{n}.json", {"pets": [f"{each}{n}" for each in CLASSES]}) for n in (1, 2)]
    templates = [write(tmp_path / f"templates{n}.json", {"pets": [f"{n} {{c}}"]}) for n in (1, 2)]
    heads = [tmp_path / "head1.npy", tmp_path / "head2.npy"]
    for number, file in enumerate(heads):
        np.save(file, np.random.default_rng(number).normal(size=(3, 3)).astype(np.float32))
    roots = [pets(tmp_path / "one", dict(list(LABELS.items())[:5])), retrieval(tmp_path / "two")]
    said = [tmp_path / "said1", tmp_path / "said2"]
    for number, folder in enumerate(said):
        folder.mkdir()
        write(folder / "captioner.json", {each: f"{each} {number}" for each in ("v1", "v2")})
    references = [
        write(tmp_path / f"references{n}.json", [{"id": each, "summary": f"{each} {n}"} for each in ("v1", "v2")])
        for n in (1, 2)
    ]
    tower, replay = ("inputs-tower", "wds/pets"), ("replay:captioner", "clip-cc-bench")
    here = data.but(predictions=said[0], clip_cc_ground_truth=references[0])
    return {
        "class names": (*tower, data.but(class_names=names[0]), data.but(class_names=names[1])),
        "templates": (*tower, data.but(templates=templates[0]), data.but(templates=templates[1])),
        "heads": (*tower, data.but(heads=heads[:1]), data.but(heads=heads[1:])),
        "heads or none": (*tower, data.but(heads=heads), data),
        "data root": (*tower, data.but(data_root=roots[0]), data.but(data_root=roots[1])),
        "predictions": (*replay, here, here.but(predictions=said[1])),
        "references": (*replay, here, here.but(clip_cc_ground_truth=references[1])),
    }


def own_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TESTBED_")}


def told(url: str, model: str, setting: str, inputs: Inputs) -> list[Any]:
    """How a run ended: status and fingerprints."""
    options = RunOptions(db_url=url, plugins=(PLUGIN,), inputs=inputs, executor="inline", data_workers=0)
    (outcome,) = run(registry, options, [model], [setting]).outcomes
    assert outcome.evaluation_id is not None, outcome.reason
    with Store.open(url) as store:
        found = store.evaluations.get(outcome.evaluation_id)
    return [outcome.status, found.fingerprint, found.forward_fingerprint]


def test_the_second_run_is_as_if_there_had_been_no_first(tmp_path: Path, warm_python: WarmPython) -> None:
    made = cases(tmp_path)
    before = own_variables()
    found = {}
    for name, (model, setting, first, second) in made.items():
        url = str(tmp_path / "store.db")
        one, two = (told(url, model, setting, inputs) for inputs in (first, second))
        assert one[1] != two[1], name
        assert (one[2] != two[2]) == (name != "references"), name
        found[name] = two
    assert own_variables() == before
    given = json.dumps([(model, setting, asdict(second)) for model, setting, _, second in made.values()])
    (tmp_path / "alone.py").write_text(ALONE)
    done = warm_python.run(tmp_path / "alone.py", [PLUGIN, str(tmp_path), given], tmp_path, os.environ)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)[1:] for line in done.stdout.splitlines()] == [each[1:] for each in found.values()]


def test_the_plan_of_a_run_is_made_with_its_inputs(tmp_path: Path) -> None:
    for model, setting, first, second in cases(tmp_path).values():
        fingerprints = []
        for inputs in (first, second):
            options = RunOptions(db_url=str(tmp_path / "none.db"), plugins=(PLUGIN,), inputs=inputs)
            (cell,) = make_plan(registry, options, [model], [setting]).cells
            fingerprints.append(cell.fingerprint)
        assert None not in fingerprints
        assert len(set(fingerprints)) == 2
    assert active() == Inputs()


def test_without_inputs_the_variables_count_as_they_are_when_the_run_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, setting, first, second = cases(tmp_path)["class names"]
    expected = [told(str(tmp_path / f"{n}.db"), model, setting, each) for n, each in enumerate((first, second))]
    monkeypatch.setenv("TESTBED_DATA", str(first.data_root))
    for number, inputs in enumerate((first, second)):
        monkeypatch.setenv("TESTBED_CLASSNAMES", str(inputs.class_names))
        options = RunOptions(db_url=str(tmp_path / "v.db"), plugins=(PLUGIN,), executor="inline", data_workers=0)
        (outcome,) = run(registry, options, [model], [setting]).outcomes
        with Store.open(options.db_url) as store:
            assert store.evaluations.get(outcome.evaluation_id or 0).fingerprint == expected[number][1]


# Threads and processes --------------------------------------------------------------------------------------------


@pytest.fixture
def roots(tmp_path: Path, make_tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The data root of the run, and another one that the variable names."""
    both = [tmp_path / "ours", tmp_path / "theirs"]
    for root in both:
        make_tree(root / "images")
        wds_world.write_split(root / "told", [wds_world.samples(TEXTS, "txt")], dataset_type="retrieval")
    monkeypatch.setenv("TESTBED_DATA", str(both[1]))
    return both


def seen(root: Path) -> dict[str, set[tuple[int, str]]]:
    """What users' code has told that it saw this root: what → processes and threads."""
    found: dict[str, set[tuple[int, str]]] = {}
    for line in (root / "seen").read_text().splitlines() if (root / "seen").exists() else ():
        what, process, thread = line.split()
        found.setdefault(what, set()).add((int(process), thread))
    return found


@pytest.mark.slow
def test_all_processes_have_the_inputs_of_the_run(roots: list[Path], tmp_path: Path) -> None:
    options = RunOptions(
        db_url=str(tmp_path / "store.db"),
        plugins=(PLUGIN,),
        cpu_processes=1,
        data_workers=1,
        inputs=Inputs(data_root=str(roots[0])),
    )
    report = run(registry, options, ["inputs-teller"], ["inputs-images"])
    assert report.ok, [each.reason for each in report.outcomes]
    assert not seen(roots[1])
    found = seen(roots[0])
    processes = {what: {process for process, _ in where} for what, where in found.items()}
    assert set(processes) == {"loading", "transform", "model", "metrics"}
    assert processes["metrics"] == {os.getpid()}
    assert {thread for _, thread in found["metrics"]} == {"finish"}
    everyone = processes["metrics"] | processes["transform"] | processes["model"]
    assert len(everyone) == 3  # the run's, the worker's and the data worker's
    assert processes["loading"] == everyone


def test_threads_that_read_ahead_have_the_inputs_of_the_run(roots: list[Path], tmp_path: Path) -> None:
    options = RunOptions(
        db_url=str(tmp_path / "store.db"),
        plugins=(PLUGIN,),
        executor="inline",
        inputs=Inputs(data_root=str(roots[0])),
    )
    report = run(registry, options, ["inputs-describer"], ["inputs-captions"])
    assert report.ok, [each.reason for each in report.outcomes]
    assert not seen(roots[1])
    assert {thread for _, thread in seen(roots[0])["transform"]} == {"images"}
    assert {thread for _, thread in seen(roots[0])["model"]} == {"MainThread"}


def test_where_outputs_go_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_PAYLOADS", f"file://{tmp_path}/payloads")
    resolved = RunOptions().resolved()
    assert resolved.payload_url == f"file://{tmp_path}/payloads"
    monkeypatch.delenv("TESTBED_PAYLOADS")
    assert resolved.resolved() == resolved
    assert RunOptions().resolved().payload_url == ""

"""The inputs of a run: read from variables, changed, made active, and what is made once for each."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed import inputs
from testbed.inputs import Inputs, active, once_for_inputs, use_in_this_thread, using
from testbed.paths import data_root, predictions_root

VARIABLES = {
    "TESTBED_DATA": "/data",
    "TESTBED_PREDICTIONS": "/said",
    "TESTBED_CHECKPOINTS": "/weights",
    "LMUData": "/tables",
    "TESTBED_CLASSNAMES": "names.json",
    "TESTBED_TEMPLATES": "templates.json",
    "TESTBED_CLASSIFIERS": os.pathsep.join(["a.npy", "b.pt"]),
    "TESTBED_CLIP_CC_BASE": "/bench",
    "TESTBED_CLIP_CC_GROUND_TRUTH": "/bench/truth.json",
    "TESTBED_TRUST_REMOTE_CODE": "mine,yours",
    "TESTBED_MAX_MEGAPIXELS": "200",
}


def test_each_variable_is_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Inputs.from_environment() == Inputs()
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert Inputs.from_environment() == Inputs(
        data_root="/data",
        predictions="/said",
        checkpoints="/weights",
        lmu_data="/tables",
        class_names="names.json",
        templates="templates.json",
        heads=("a.npy", "b.pt"),
        clip_cc_base="/bench",
        clip_cc_ground_truth="/bench/truth.json",
        trusted_code="mine,yours",
        max_megapixels=200,
    )
    assert {getattr(inputs, name) for name in dir(inputs) if name.startswith("ENV_")} == set(VARIABLES)


def test_what_is_given_stands_in_place_of_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    before = Inputs(data_root="/data", heads=("/a.npy",), trusted_code="1")
    assert before.but() == before.but(data_root=None, heads=(), trusted_code=None) == before
    assert before.but(data_root="~/data", predictions=Path("said"), heads=["b.npy"], trusted_code="") == Inputs(
        data_root="/home/me/data", predictions=str(tmp_path / "said"), heads=(str(tmp_path / "b.npy"),)
    )
    assert before.but(data_root="https://host/{dataset}").data_root == "https://host/{dataset}"
    with pytest.raises(TypeError, match="class_name"):
        before.but(class_name="names.json")


def test_the_active_ones_come_before_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_DATA", "/by-variable")
    assert data_root() == Path("/by-variable")
    with using(Inputs(data_root="/outer", predictions="/said")):
        assert (data_root(), predictions_root()) == (Path("/outer"), Path("/said"))
        with using(Inputs()):
            assert (data_root(), predictions_root()) == (None, None)
        with pytest.raises(ZeroDivisionError), using(Inputs()):
            raise ZeroDivisionError
        assert data_root() == Path("/outer")
    monkeypatch.setenv("TESTBED_DATA", "/another")
    assert data_root() == Path("/another")


def test_threads_are_told() -> None:
    with using(Inputs(data_root="/ours")):
        with ThreadPoolExecutor(1, "x", use_in_this_thread, (active(),)) as pool:
            assert pool.submit(data_root).result() == Path("/ours")
        assert active() == Inputs(data_root="/ours")


def test_what_depends_on_them_is_made_once_for_each() -> None:
    made = []

    def make() -> int:
        made.append(active().data_root)
        return len(made)

    get = once_for_inputs(make)
    for root, expected in (("/a", 1), ("/b", 2), ("/a", 1)):
        with using(Inputs(data_root=root)):
            assert get() == expected
    assert made == ["/a", "/b"]

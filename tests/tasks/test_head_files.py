"""Zero-shot heads in files: what is saved, what is loaded, and what is told when it does not fit."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from testbed.errors import DataError
from testbed.inputs import Inputs, using
from testbed.tasks.parts.head_files import head_digests, loaded_head


def heads(*files: Path) -> AbstractContextManager[None]:
    return using(Inputs().but(heads=files))


def saved(path: Path, values: Any) -> Path:
    if path.suffix == ".npy":
        np.save(path, np.asarray(values, dtype=np.float32))
    else:
        torch.save(torch.tensor(values, dtype=torch.float32), path)
    return path


def test_the_mean_of_several_heads_is_not_normalized_again(tmp_path: Path) -> None:
    with heads(saved(tmp_path / "a.npy", [[1, 0], [0, 1]]), saved(tmp_path / "b.pt", [[0, 0], [1, 1]])):
        torch.testing.assert_close(loaded_head(2), torch.tensor([[0.5, 0.0], [0.5, 1.0]]))


def test_heads_are_told_apart_by_their_content(tmp_path: Path) -> None:
    with heads(saved(tmp_path / "a.npy", [[1.0]])):
        first = head_digests()
    with heads(saved(tmp_path / "same.npy", [[1.0]])):
        assert head_digests() == first
    with heads(saved(tmp_path / "other.npy", [[2.0]])):
        assert head_digests() != first
    assert head_digests() == []


def test_the_variable_names_several_as_in_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [saved(tmp_path / "a.npy", [[1.0]]), saved(tmp_path / "b.npy", [[3.0]])]
    monkeypatch.setenv("TESTBED_CLASSIFIERS", os.pathsep.join(map(str, files)))
    assert loaded_head(1).tolist() == [[2.0]]


@pytest.mark.parametrize(
    ("values", "classes", "message"),
    [
        ([[1.0, 2.0]], 3, "has 2 classes, the setting has 3"),
        ([1.0, 2.0], None, r"is not a float array \[D, C\]"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, values: Any, classes: int | None, message: str) -> None:
    with heads(saved(tmp_path / "a.npy", values)), pytest.raises(DataError, match=message):
        loaded_head(classes)


def test_heads_of_different_shapes_have_no_mean(tmp_path: Path) -> None:
    files = (saved(tmp_path / "a.npy", [[1.0]]), saved(tmp_path / "b.npy", [[1.0, 2.0]]))
    with heads(*files), pytest.raises(DataError, match="different shapes"):
        loaded_head(None)


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return print, ("run",)

    torch.save(Evil(), tmp_path / "evil.pt")
    np.save(tmp_path / "evil.npy", np.array([Evil()], dtype=object), allow_pickle=True)
    for name in ("evil.pt", "evil.npy"):
        with heads(tmp_path / name), pytest.raises(DataError, match="cannot be read") as caught:
            loaded_head(None)
        assert "weights_only" not in str(caught.value)

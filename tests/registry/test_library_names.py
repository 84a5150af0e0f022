"""The names that libraries know: asked in a process of their own, once per version, and kept."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import DataError, PluginError
from testbed.registry import library_names as module
from testbed.registry.library_names import hub_repositories, library_names

# A package that is installed wherever testbed is, and answers at once.
LIBRARY = "click"
ANSWER = {"group": ["b", "a"], "command": []}
HUB = {"owner/name": ["group.b"]}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, and nothing remembered by this process."""
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    module._answers.cache_clear()
    yield tmp_path
    module._answers.cache_clear()


@pytest.fixture
def asked(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The processes that were started, by their scripts. The library answers what is asked of it at the moment."""
    started: list[str] = []
    run = subprocess.run

    def noted(command: list[str], **options: Any) -> Any:
        started.append(command[-1])
        return run(command, **options)

    monkeypatch.setattr(module.subprocess, "run", noted)
    monkeypatch.setitem(module._QUESTIONS, LIBRARY, f"import {LIBRARY}\nanswer = {ANSWER!r}\nhub |= {HUB!r}\n")
    return started


@pytest.fixture
def new_process() -> Callable[[], dict[str, list[str]]]:
    """Asks as the next process would, which remembers nothing."""

    def ask() -> dict[str, list[str]]:
        module._answers.cache_clear()
        return library_names(LIBRARY)

    return ask


def only_file(cache: Path) -> Path:
    (path,) = (path for path in cache.rglob("*") if path.is_file())
    return path


def test_a_library_is_asked_once_and_the_answer_is_kept(
    cache: Path, asked: list[str], new_process: Callable[[], Any]
) -> None:
    assert new_process() == ANSWER
    assert library_names(LIBRARY) == ANSWER
    assert new_process() == ANSWER
    assert len(asked) == 1
    assert hub_repositories(LIBRARY) == HUB
    assert json.loads(only_file(cache).read_text()) == [ANSWER, HUB]


def test_the_order_of_architectures_and_weights_is_kept(asked: list[str], new_process: Callable[[], Any]) -> None:
    for _ in range(2):
        assert [(name, weights) for name, weights in new_process().items()] == list(ANSWER.items())


def test_a_new_version_of_a_library_is_asked_anew(
    cache: Path, asked: list[str], new_process: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = importlib.metadata.version(LIBRARY)
    new_process()
    assert version in only_file(cache).name
    monkeypatch.setattr(importlib.metadata, "version", lambda distribution: "999.0")
    assert new_process() == ANSWER
    assert len(asked) == 2
    monkeypatch.setattr(importlib.metadata, "version", lambda distribution: version)
    assert new_process() == ANSWER
    assert len(asked) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"group": ["b"',
        b"\xff\xfe\x00",
        b"\0" * 20,
        b"null",
        b"[]",
        b'[{"group": 5}, {}]',
        b'{"group": ["b"]}',
    ],
    ids=ascii,
)
def test_a_corrupt_file_in_the_cache_is_healed(
    cache: Path, asked: list[str], new_process: Callable[[], Any], content: bytes
) -> None:
    new_process()
    only_file(cache).write_bytes(content)
    assert new_process() == ANSWER
    assert hub_repositories(LIBRARY) == HUB
    assert json.loads(only_file(cache).read_text()) == [ANSWER, HUB]
    assert len(asked) == 2


def test_a_library_that_is_not_installed_has_no_names(cache: Path, asked: list[str]) -> None:
    assert library_names("no-such-library-at-all") == {}
    assert asked == []


def test_a_library_that_cannot_be_imported_is_named_with_the_reason(
    cache: Path, asked: list[str], new_process: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module._QUESTIONS, LIBRARY, "raise ImportError('libcuda.so.1 is missing')")
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            new_process()
        assert LIBRARY in str(raised.value)
        assert "libcuda.so.1 is missing" in str(raised.value)
        assert "\n" not in str(raised.value)
    assert not [path for path in cache.rglob("*") if path.is_file()], "a failure is not an answer to keep"


def test_a_library_that_dies_without_a_word_is_named(
    asked: list[str], new_process: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module._QUESTIONS, LIBRARY, "import os\nos._exit(3)")
    with pytest.raises(PluginError, match=LIBRARY):
        new_process()


def test_what_a_library_prints_and_warns_of_while_it_is_imported_is_no_part_of_the_answer(
    asked: list[str], new_process: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = "import warnings\nprint('welcome to click, settings: {}')\nwarnings.warn('old')\n"
    monkeypatch.setitem(module._QUESTIONS, LIBRARY, f"{noise}answer = {ANSWER!r}\nhub |= {HUB!r}\n")
    assert new_process() == ANSWER


def test_what_lies_in_the_working_folder_is_not_taken_for_the_library(
    asked: list[str], new_process: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a checkout of the library"
    folder.mkdir()
    (folder / f"{LIBRARY}.py").write_text("KIND = 'another version'\n")
    monkeypatch.setitem(
        module._QUESTIONS, LIBRARY, f"import {LIBRARY}\nanswer = {{getattr({LIBRARY}, 'KIND', 'the library'): []}}\n"
    )
    monkeypatch.chdir(folder)
    assert new_process() == {"the library": []}


def test_a_cache_folder_that_cannot_be_made_is_told_with_the_variable_to_set(
    asked: list[str], new_process: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match="TESTBED_CACHE"):
        new_process()


def test_torchvision_s_names_are_those_that_torchvision_gives_itself() -> None:
    script = """
import json
from torchvision import models
names = models.list_models(module=models)
weights = {name: [each.name for each in models.get_model_weights(name)] for name in names}
weights["vgg16"].remove("IMAGENET1K_FEATURES")  # which classify nothing
print(json.dumps([names, weights]))
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    names, weights = json.loads(finished.stdout)
    found = library_names("torchvision")
    assert sorted(found) == sorted(names)
    assert found == weights
    assert found["resnet50"] == ["IMAGENET1K_V1", "IMAGENET1K_V2"]

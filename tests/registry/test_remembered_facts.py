"""Facts of libraries that are remembered, so that planning does not import them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.registry import remembered_facts as module
from testbed.registry.remembered_facts import remembered


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    module._version.cache_clear()
    module._content.cache_clear()
    return tmp_path / "cache"


def asked(fact: Any, key: Any = ("a",), code: str = __file__) -> tuple[Any, int]:
    """What is told, and how often it was looked for."""
    times: list[int] = []
    return remembered("kind", key, ["pytest"], [code], lambda: times.append(1) or fact), len(times)


@pytest.mark.parametrize("fact", [{"a": 1, "b": [1.5, None, "x"]}, [], {}, None, 7, "text", {"size": [3, 224, 224]}])
def test_a_fact_is_looked_for_once(fact: Any) -> None:
    assert asked(fact) == (fact, 1)
    assert asked("another") == (fact, 0)


def test_tuples_are_lists_from_the_first_time() -> None:
    assert asked({"mean": (0.1, 0.2)}) == ({"mean": [0.1, 0.2]}, 1)
    assert asked(None) == ({"mean": [0.1, 0.2]}, 0)


@pytest.mark.parametrize("fact", [{1: "a"}, float("nan"), {"a": {1, 2}}, {"a": object}])
def test_what_json_would_change_is_not_remembered(fact: Any) -> None:
    assert asked(fact)[1] == asked(fact)[1] == 1


def test_another_key_version_or_code_is_another_fact(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text("one")
    assert asked("one", code=str(code)) == ("one", 1)
    assert asked("two", ("b",), str(code)) == ("two", 1)
    monkeypatch.setattr(module, "_version", lambda distribution: "0.0.0")
    assert asked("three", code=str(code)) == ("three", 1)
    code.write_text("two")
    module._content.cache_clear()
    assert asked("four", code=str(code)) == ("four", 1)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"known": "other", "fact": 1}', b"\xff"])
def test_a_damaged_file_is_written_anew(content: bytes, cache: Path) -> None:
    asked("fact")
    (path,) = (each for each in cache.rglob("*") if each.is_file())
    path.write_bytes(content)
    assert asked("fact") == ("fact", 1)
    assert asked("fact") == ("fact", 0)


def test_definitions_of_published_models_import_no_library_once_they_were_made(cache: Path) -> None:
    script = """
import sys
from testbed.identity.describe import describe, digest
from testbed.registry import registry
for name in ("resnet50", "vit_b_16.imagenet1k_swag_e2e_v1", "timm/resnet50.a1_in1k@160", "timm/vit_tiny_patch16_224"):
    print(name, digest(describe(registry.get_model(name))))
print("imported", {"torch", "torchvision", "timm"} & set(sys.modules))
"""
    told = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(2)
    ]
    assert told[0][:-1] == told[1][:-1]
    assert "torch" in told[0][-1]
    assert told[1][-1] == "imported set()"

"""The model names of installed libraries: read from their files, as the libraries themselves give them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import DataError, PluginError
from testbed.registry import library_names as module
from testbed.registry.library_names import library_names, places_of_weights
from testbed.registry.static_values import UNKNOWN, StaticModule

LIBRARIES = ("torchvision", "timm", "open_clip_torch")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, and nothing remembered by this process."""
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    module._answers.cache_clear()
    yield tmp_path / "cache"
    module._answers.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that takes the place of each library's; a library that is asked gives one name of its own."""
    monkeypatch.setattr(module, "_folder", lambda package: tmp_path / "package")
    for library in LIBRARIES:
        monkeypatch.setitem(module._ASKED, library, lambda: ({"asked": ["tag"]}, {"place": ["asked.tag"]}))
    (tmp_path / "package" / "models").mkdir(parents=True)
    return tmp_path / "package"


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_and_places_are_those_that_the_library_gives(library: str, cache: Path) -> None:
    names, hub = module._ASKED[library]()
    names.pop("h1_net", None)  # of another test of this process, which adds a network to timm
    assert len(names) > 50
    assert list(library_names(library).items()) == list(names.items())
    assert places_of_weights(library) == hub


def test_nothing_is_imported_and_no_process_started(tmp_path: Path) -> None:
    script = """
import subprocess, sys
subprocess.Popen.__init__ = None
from testbed.registry.library_names import library_names
for library in ("torchvision", "timm", "open_clip_torch"):
    assert len(library_names(library)) > 50
print({"torch", "torchvision", "timm", "open_clip"} & set(sys.modules))
"""
    environment = {"TESTBED_CACHE": str(tmp_path), "PATH": "/usr/bin"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "set()"


def test_files_are_read_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    reader = module._READERS["torchvision"][1]
    counted = ("torchvision", lambda folder: read.append("torchvision") or reader(folder))
    monkeypatch.setitem(module._READERS, "torchvision", counted)
    first = library_names("torchvision")
    module._answers.cache_clear()
    assert library_names("torchvision") == first
    assert read == ["torchvision"]
    (path,) = (path for path in cache.rglob("*") if path.is_file())
    assert json.loads(path.read_text())[0] == first


@pytest.mark.parametrize("content", ["", "{", "[]", '["a"]', '[{"a": "b"}, {}]', '[{"a": [1]}, {}]', "null"])
def test_a_damaged_cache_file_is_written_anew(content: str, cache: Path) -> None:
    found = library_names("torchvision")
    (path,) = (path for path in cache.rglob("*") if path.is_file())
    path.write_text(content)
    module._answers.cache_clear()
    assert library_names("torchvision") == found
    assert json.loads(path.read_text())[0] == found


def test_a_library_that_is_not_installed_has_no_names(cache: Path) -> None:
    assert library_names("no-such-library-at-all") == {}


def test_a_cache_folder_that_cannot_be_made_is_told_with_the_variable_to_set(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match="TESTBED_CACHE"):
        library_names("torchvision")


TIMM = """
def _cfg(url='', **kwargs):
    return {'url': url, 'num_classes': 1000, **kwargs}

default_cfgs = generate_default_cfgs({
    'net.b_in1k': _cfg(hf_hub_id='timm/'),
    'net.a_in1k': _cfg(url='https://x/a.pth', hf_hub_id='owner/a@v1'),
    'net.best*': _cfg(hf_hub_id='timm/'),
    'net.untrained': _cfg(),
    **{f'{name}.tag': dict(((k, v) for k, v in _cfg(hf_hub_id='timm/').items() if k != 'url'), first='x')
       for name in ('other', 'third') if name != 'third'},
})

@register_model
def net(pretrained=False, **kwargs):
    return None

@register_model
def other(pretrained=False, **kwargs):
    return None

@register_model
def bare(pretrained=False, **kwargs):
    return None

def helper():
    return None
"""


def test_timms_tables_are_read_with_their_defaults_calls_and_comprehensions(cache: Path, package: Path) -> None:
    (package / "models" / "net.py").write_text(TIMM)
    assert library_names("timm") == {"bare": [], "net": ["best", "a_in1k", "b_in1k"], "other": ["tag"]}
    assert places_of_weights("timm") == {
        "timm/net.best": ["timm/net.best"],
        "timm/net.b_in1k": ["timm/net.b_in1k"],
        "owner/a": ["timm/net.a_in1k"],
        "https://x/a.pth": ["timm/net.a_in1k"],
        "timm/other.tag": ["timm/other.tag"],
    }


@pytest.mark.parametrize(
    "text",
    [
        "default_cfgs = generate_default_cfgs(made_by_code())",
        "table = {}\nfor name in names():\n    table[name] = {}\ndefault_cfgs = generate_default_cfgs(table)",
        "table = {'net.a': {'url': 'x'}}\ntable.update(more)\ndefault_cfgs = generate_default_cfgs(table)",
        "default_cfgs = generate_default_cfgs({'net.a': _cfg(url=PLACE)})\ndef _cfg(**x):\n    return dict(**x)",
        "this is not Python",
        "",
    ],
)
def test_a_library_whose_tables_are_made_by_code_is_asked_itself(text: str, cache: Path, package: Path) -> None:
    registered = "@register_model\ndef net(pretrained=False, **kwargs):\n    return None\n" if "=" in text else ""
    (package / "models" / "net.py").write_text(f"{text}\n{registered}")
    assert library_names("timm") == {"asked": ["tag"]}
    assert places_of_weights("timm") == {"place": ["asked.tag"]}


def test_a_library_that_cannot_be_asked_is_named_with_the_reason(
    cache: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise ImportError("libcuda.so.1 is missing")

    monkeypatch.setitem(module._ASKED, "timm", broken)
    with pytest.raises(PluginError, match=r"timm is installed .* libcuda.so.1 is missing"):
        library_names("timm")
    assert not [path for path in cache.rglob("*") if path.is_file()], "a failure is not an answer to keep"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("{'a': 1, **B, 'c': 'x' + 'y'}", {"a": 1, "b": [1, 2], "c": "xy"}),
        ("dict(B, c=None)", {"b": [1, 2], "c": None}),
        ("made(2)", {"one": 2, "two": 5}),
        ("made(2, two=3)", {"one": 2, "two": 3}),
        ("[f'{name}!' for name in ('a', 'b') if name not in ('b',)]", ["a!"]),
        ("{key: 1 if key == 'b' else 2 for key, _ in B.items()}", {"b": 1}),
        ("'a.b'.split('.')[1]", "b"),
        ("'a.b'.split('.')[7]", UNKNOWN),
        ("looped", UNKNOWN),
        ("open('file').read()", UNKNOWN),
        ("made_by(2)", UNKNOWN),
        ("endless(1)", UNKNOWN),
        ("1 if looped else 2", UNKNOWN),
    ],
)
def test_constants_are_read_and_code_is_not_run(expression: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        f"B = {{'b': (1, 2)}}\nlooped = looped + 1\n"
        "def made(one, two=5):\n    '''Text.'''\n    return {'one': one, 'two': two}\n"
        "def made_by(one):\n    print(one)\n    return one\n"
        "def endless(one):\n    return endless(one)\n"
        f"found = {expression}\n"
    )
    assert StaticModule(path).named("found") == value

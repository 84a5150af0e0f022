"""A real package, installed by pip, that adds definitions through the entry-point group ``testbed.plugins``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from peers import install_copy

PACKAGE = Path(__file__).resolve().parent.parent / "test_package"
MODEL, SETTING = "example-brightness", "example-digits-upside-down"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package."""
    return install_copy(PACKAGE, tmp_path_factory.mktemp("installed"))


@pytest.fixture
def broken(installed: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes an install of the package with another text in its module."""

    def broken(text: str) -> Path:
        site = tmp_path / "site"
        shutil.copytree(installed, site, ignore=shutil.ignore_patterns("__pycache__"))
        (site / "testbed_example.py").write_text(text)
        return site

    return broken


def run(arguments: list[str], site: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site), **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


def list_names(site: Path, root: Path, what: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(["db.py", f"--list-{what}-registry"], site, root, **variables)


# An installed package ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("what", "name"), [("models", MODEL), ("eval-settings", SETTING)])
def test_the_definitions_of_an_installed_package_are_listed(installed: Path, root: Path, what: str, name: str) -> None:
    finished = list_names(installed, root, what)
    assert finished.returncode == 0, finished.stderr
    listed = finished.stdout.splitlines()
    assert listed.count(name) == 1
    assert any(other.startswith("digits") for other in listed)


@pytest.mark.parametrize(("what", "name"), [("models", MODEL), ("eval-settings", SETTING)])
def test_without_the_package_its_definitions_are_not_there(root: Path, tmp_path: Path, what: str, name: str) -> None:
    finished = list_names(tmp_path, root, what)
    assert finished.returncode == 0, finished.stderr
    assert name not in finished.stdout.splitlines()


def test_the_definitions_of_an_installed_package_can_be_used_and_tell_where_they_lie(
    installed: Path, tmp_path: Path
) -> None:
    script = f"""
import json, sys
from testbed.identity.describe import digest
from testbed.registry import registry
from testbed.registry.select import select
model, setting = registry.get_model({MODEL!r}), registry.get_eval_setting({SETTING!r})
answer = {{
    "torch": "torch" in sys.modules,
    "sources": [registry.models.source(model.name), registry.eval_settings.source(setting.name)],
    "chosen": [
        select(registry.models, registry.model_collections, ["examples"]),
        select(registry.eval_settings, registry.eval_setting_collections, ["examples"]),
    ],
    "digest": digest(model.spec()),
}}
import torch
images = torch.rand(3, 3, 32, 32)
answer["shape"] = list(model.make_network()(images).shape)
answer["flipped"] = torch.equal(setting.perturbation_fn_gpu(images).flip(2), images)
print(json.dumps(answer))
"""
    finished = run(["-c", script], installed, tmp_path)
    assert finished.returncode == 0, finished.stderr
    answer = json.loads(finished.stdout)
    assert answer["torch"] is False
    module = installed / "testbed_example.py"
    assert [source.rpartition(":")[0] for source in answer["sources"]] == [str(module), str(module)]
    registered = [module.read_text().splitlines()[int(source.rpartition(":")[2]) - 1] for source in answer["sources"]]
    assert registered == ["registry.add_model(", "registry.add_eval_setting("]
    assert answer["chosen"] == [[MODEL], [SETTING]]
    assert len(answer["digest"]) == 32
    assert answer["shape"] == [3, 10]
    assert answer["flipped"] is True


def test_plugins_can_be_left_out(installed: Path, root: Path) -> None:
    finished = list_names(installed, root, "models", TESTBED_NO_PLUGINS="1")
    assert finished.returncode == 0, finished.stderr
    assert MODEL not in finished.stdout.splitlines()
    assert "digits-cnn" in finished.stdout.splitlines()


# A broken one -----------------------------------------------------------------------------------------------------

BROKEN = {
    "raises": ("raise RuntimeError('it was made for another testbed')\n", "RuntimeError: it was made for another"),
    "imports what is not there": ("import no_such_library\n", "No module named 'no_such_library'"),
    "is no Python": ("def (:\n", "SyntaxError"),
    "defines something wrongly": (
        "from testbed.models.model_base import StandardTransform as T; T(8, 8, interpolation='box')\n",
        "interpolation",
    ),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_package_gives_one_line_that_names_it_and_the_way_to_go_on(
    broken: Callable[[str], Path], root: Path, text: str, reason: str
) -> None:
    site = broken(text)
    finished = list_names(site, root, "models")
    assert finished.returncode == 1
    assert finished.stdout == ""
    (line,) = finished.stderr.splitlines()
    for part in ("Error:", "testbed-example", "'example'", reason, "testbed_example.py:1", "TESTBED_NO_PLUGINS=1"):
        assert part in line
    without = list_names(site, root, "models", TESTBED_NO_PLUGINS="1")
    assert without.returncode == 0, without.stderr
    assert "digits-cnn" in without.stdout.splitlines()


def test_a_broken_package_does_not_keep_the_store_from_being_asked(
    broken: Callable[[str], Path], root: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    created = run(["-c", f"from testbed.db.store import Store; Store.create({url!r}).close()"], tmp_path, tmp_path)
    assert created.returncode == 0, created.stderr
    finished = run(["db.py", "--list-models-db", "--db-url", url], broken("1 / 0\n"), root)
    assert finished.returncode == 0, finished.stderr


def test_another_version_of_an_installed_package_is_another_model(
    installed: Path, broken: Callable[[str], Path], tmp_path: Path
) -> None:
    """The package is taken for one in site-packages, where pip puts it without ``--target``."""
    script = """
import os, sysconfig
folders = {**sysconfig.get_paths(), "purelib": os.environ["PYTHONPATH"]}
sysconfig.get_paths = lambda *ignored: folders
from testbed.identity.describe import digest
from testbed.registry import registry
print(digest(registry.get_model("example-brightness").spec()))
"""
    text = (installed / "testbed_example.py").read_text()
    assert text.count("0.4, 10") == 1
    digests = []
    for site in (installed, broken(text.replace("0.4, 10", "0.5, 10"))):
        finished = run(["-c", script], site, tmp_path)
        assert finished.returncode == 0, finished.stderr
        digests.append(finished.stdout)
    assert digests[0] != digests[1]

"""After an editable install, mypy and Jedi find testbed from a plug-in that lies elsewhere; see setup.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from testbed.api.results import Results

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("src", "db", "plotting", "extensions")
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_editable(sys.argv[1]))"
PLUGIN = """
import testbed
from testbed.db.store import Store
from testbed.extensions.gate import frames
from testbed.plotting import figures
from testbed.registry import registry

results = testbed.evaluate("demo", "digits")
registry.register_nothing()
Store.open("a.db").wrong_method()
frames.wrong_function()
figures.wrong_function()
reveal_type(results.rows[0].value)
reveal_type(results.rank)
reveal_type(results.method_of_another_extension)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository without what an editable install has left in it."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in PARTS:
        unwanted = shutil.ignore_patterns("__pycache__", "tests")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=unwanted)
    for path in (folder / "src").iterdir():
        if path.is_symlink():
            path.unlink()
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def python(checkout: Path) -> Path:
    """The interpreter of an environment with an editable install of the copy, and nothing else."""
    folder = checkout / ".venv"
    venv.create(folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    install(checkout, site_packages)
    return folder / "bin" / "python"


def install(checkout: Path, site_packages: Path) -> None:
    """Does what pip does once it has read the project's requirements."""
    built = checkout / "dist"
    run([sys.executable, "-c", BUILD, str(built)], checkout)
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site_packages)
    wheel.unlink()


def run(command: list[str], folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elsewhere") / "plugin.py"
    path.write_text(PLUGIN, encoding="utf-8")
    return path


def test_git_ignores_what_an_editable_install_makes(checkout: Path, python: Path) -> None:
    run(["git", "init", "-q"], checkout)
    listed = run(["git", "ls-files", "--others", "--exclude-standard", "--directory"], checkout)
    assert set(listed.split()) == {*(f"{name}/" for name in PARTS), ".gitignore", "LICENSE", "README.md"} | {
        *("pyproject.toml", "setup.cfg", "setup.py")
    }


def test_modules_are_run_from_the_files_of_the_repository(checkout: Path, python: Path) -> None:
    names = ["testbed.errors", "testbed.db.tables", "testbed.plotting.commands", "testbed.extensions.gate"]
    files = run([str(python), "-c", f"import {', '.join(names[::3])}, sys; print({names[0]}.__file__)"], checkout)
    assert Path(files.strip()) == checkout / "src" / "errors.py"
    script = "import importlib.util as u; print(*(u.find_spec(n).origin for n in {}))"
    origins = run([str(python), "-c", script.format(["testbed.db", "testbed.extensions.gate"])], checkout).split()
    assert [Path(origin).resolve() for origin in origins] == [
        checkout / "db" / "__init__.py",
        checkout / "extensions" / "gate" / "__init__.py",
    ]


def test_a_second_install_and_new_modules_need_no_other_links(checkout: Path, python: Path) -> None:
    (site_packages,) = checkout.glob(".venv/lib/python*/site-packages")
    install(checkout, site_packages)
    for folder, name in (("src", "testbed"), ("db", "testbed.db")):
        (checkout / folder / "added_later.py").write_text("VALUE = 7\n", encoding="utf-8")
        assert run([str(python), "-c", f"from {name}.added_later import VALUE; print(VALUE)"], checkout) == "7\n"


def test_mypy_reports_wrong_names_in_a_plug_in(python: Path, plugin: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="the extra lint is not installed")
    command = [sys.executable, "-m", "mypy", "--python-executable", str(python), "--cache-dir", str(tmp_path)]
    finished = subprocess.run([*command, plugin.name], cwd=plugin.parent, capture_output=True, text=True, timeout=250)
    lines = [line.partition(": ")[2] for line in finished.stdout.splitlines()]
    assert lines[:-1] == [
        'error: "Catalog" has no attribute "register_nothing"  [attr-defined]',
        'error: "Store" has no attribute "wrong_method"  [attr-defined]',
        'error: Module has no attribute "wrong_function"  [attr-defined]',
        'error: Module has no attribute "wrong_function"  [attr-defined]',
        'note: Revealed type is "float | None"',
        'note: Revealed type is "def (*Any, **Any) -> Any"',  # pandas has no types
        'note: Revealed type is "Any"',
    ], finished.stdout + finished.stderr


def test_jedi_completes_names_in_a_plug_in(python: Path, plugin: Path) -> None:
    jedi = pytest.importorskip("jedi", reason="the extra test is not installed")
    environment = jedi.create_environment(str(python.parent.parent), safe=False)
    script = jedi.Script(PLUGIN, path=plugin, environment=environment)
    lines = PLUGIN.splitlines()

    def completions(start: str, end: str) -> set[str]:
        (line,) = (index for index, text in enumerate(lines, 1) if text.startswith(start))
        return {name.name for name in script.complete(line, lines[line - 1].index(end) + len(end))}

    assert "add_model" in completions("registry.", "registry.")
    assert "evaluations" in completions("Store.open", ").")
    assert "gate" in completions("frames.", "frames.")
    assert "plot" in completions("figures.", "figures.")
    assert {"rank", "compare", "frame"} <= completions("reveal_type(results.rank", "results.")


def test_type_checkers_know_the_methods_of_testbeds_own_extensions() -> None:
    points = distribution("results-testbed").entry_points
    own = {point.name.partition(".")[2] for point in points if point.name.startswith("results.")}
    assert own == {name for name, kind in Results.__annotations__.items() if "Callable" in kind}

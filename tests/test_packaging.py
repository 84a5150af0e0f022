"""What is installed, under which names; and that the scripts, the packages and setup.cfg agree."""

from __future__ import annotations

import ast
import configparser
import doctest
import email
import importlib
import os
import pkgutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from peers import install_copy
from tables import cases

import testbed
import testbed.db
import testbed.extensions
import testbed.plotting

MAPPED = {
    "src": "testbed",
    "db": "testbed.db",
    "plotting": "testbed.plotting",
    "extensions": "testbed.extensions",
}
# Runs migrations when Alembic imports it, and cannot be imported by anyone else.
NOT_IMPORTABLE = {"testbed.db.migrations.env"}
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def lines(value: str) -> list[str]:
    return [line.strip() for line in value.splitlines() if line.strip()]


def python_files(folder: str) -> list[Path]:
    """The modules below a folder; an extension's tests are not among them."""
    return [each for each in (ROOT / folder).rglob("*.py") if "tests" not in each.relative_to(ROOT).parts]


def packages_in_folders() -> set[str]:
    """The dotted names of all folders that hold Python files, by the names under which they are installed."""
    found = set()
    for folder, package in MAPPED.items():
        for path in python_files(folder):
            parts = path.parent.relative_to(ROOT / folder).parts
            found.add(".".join([package, *parts]))
    return found


def module_names() -> Iterator[str]:
    """Every module of the four roots, however testbed is installed."""
    for package in (testbed, testbed.db, testbed.plotting, testbed.extensions):
        yield package.__name__
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield module.name


MODULES = sorted({*module_names()} - NOT_IMPORTABLE)


# setup.cfg --------------------------------------------------------------------------------------------------------


def test_setup_cfg_lists_every_folder_of_python_files_as_a_package(setup_cfg: configparser.ConfigParser) -> None:
    listed = lines(setup_cfg["options"]["packages"])
    assert sorted(listed) == sorted(packages_in_folders())


def test_every_folder_of_python_files_is_a_package() -> None:
    for folder in MAPPED:
        for path in python_files(folder):
            assert (path.parent / "__init__.py").is_file(), f"{path.parent} has no __init__.py"


def test_setup_cfg_maps_the_three_folders(setup_cfg: configparser.ConfigParser) -> None:
    mapped = dict(line.split(" = ") for line in lines(setup_cfg["options"]["package_dir"]))
    assert mapped == {package: folder for folder, package in MAPPED.items()}


def test_db_is_a_package_and_nothing_in_src_stands_in_the_way_of_the_mapped_ones() -> None:
    assert (ROOT / "db" / "__init__.py").is_file()
    in_the_way = [path.name for name in ("db", "plotting", "extensions") for path in (ROOT / "src").glob(f"{name}*")]
    assert [name for name in in_the_way if not (ROOT / "src" / name).is_symlink()] == []  # links: see setup.py


def test_the_version_in_setup_cfg_is_the_one_that_the_package_tells(setup_cfg: configparser.ConfigParser) -> None:
    assert setup_cfg["metadata"]["version"] == testbed.__version__
    assert f"\nversion: {testbed.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_pyproject_holds_no_metadata_and_no_pytest_table_that_would_override_setup_cfg() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(pyproject) == {"build-system", "tool"}
    assert "pytest" not in pyproject["tool"]
    assert "setuptools" not in pyproject["tool"]


def test_files_that_are_no_python_are_package_data(setup_cfg: configparser.ConfigParser) -> None:
    data = {package: lines(files) for package, files in setup_cfg["options.package_data"].items()}
    expected: dict[str, list[str]] = {}
    for folder, package in MAPPED.items():
        for path in sorted(each for each in (ROOT / folder).rglob("*") if "tests" not in each.parts[len(ROOT.parts) :]):
            if path.is_file() and path.suffix not in (".py", ".pyc"):
                inside = path.parent.name == "assets"  # a folder of such files alone is part of the package above
                home = path.parent.parent if inside else path.parent
                name = ".".join([package, *home.relative_to(ROOT / folder).parts])
                listed = expected.setdefault(name, [])
                listed += [each for each in [f"assets/*{path.suffix}" if inside else path.name] if each not in listed]
    assert {name: sorted(files) for name, files in data.items()} == {
        name: sorted(files) for name, files in expected.items()
    }
    assert "py.typed" in data["testbed"]


def test_everything_that_is_imported_is_required(setup_cfg: configparser.ConfigParser) -> None:
    distributions = {"PIL": "pillow", "sklearn": "scikit-learn", "open_clip": "open_clip_torch", "psycopg": "psycopg"}
    distributions |= {"tensorflow_datasets": "tensorflow-datasets", "imagenet_w": "imagenet-w"}
    distributions |= {"sentence_transformers": "sentence-transformers", "yaml": "pyyaml"}
    texts = [setup_cfg["options"]["install_requires"], *setup_cfg["options.extras_require"].values()]
    required = {line.split(">")[0].split("[")[0] for text in texts for line in lines(text)}
    # What the required ones bring with them: timm and open_clip the hub's client, scikit-learn and kaleido the others.
    brought = {"huggingface_hub", "threadpoolctl", "choreographer"}
    imported = set()
    for folder in MAPPED:
        for path in python_files(folder):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module:
                    names.append(node.module)
                imported |= {name.split(".")[0] for name in names}
    foreign = imported - set(sys.stdlib_module_names) - {"testbed"}
    assert {distributions.get(name, name) for name in foreign} <= required | brought


def test_the_constraints_have_a_version_of_everything_that_is_required(setup_cfg: configparser.ConfigParser) -> None:
    extras = [text for name, text in setup_cfg["options.extras_require"].items() if name != "vllm"]
    required = [
        Requirement(line) for text in (setup_cfg["options"]["install_requires"], *extras) for line in lines(text)
    ]
    chosen: dict[str, list[Requirement]] = {}
    for line in lines((ROOT / "constraints.txt").read_text(encoding="utf-8")):
        if not line.startswith("#"):
            constraint = Requirement(line)
            chosen.setdefault(canonicalize_name(constraint.name), []).append(constraint)
    for each in required:
        versions = [str(found.specifier) for found in chosen.get(canonicalize_name(each.name), [])]
        assert versions, f"{each} is not in constraints.txt; run python docs/make_constraints.py"
        for version in versions:
            assert each.specifier.contains(version.removeprefix("==")), f"{each} does not allow {version}"


# Scripts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["eval.py", "db.py"])
def test_the_scripts_call_main_and_hold_no_logic(script: str) -> None:
    tree = ast.parse((ROOT / script).read_text(encoding="utf-8"))
    docstring, imported, guarded = tree.body
    assert isinstance(docstring, ast.Expr)
    assert ast.unparse(imported) == "from testbed.cli.start import main"
    assert ast.unparse(guarded) == f"if __name__ == '__main__':\n    main('{script.removesuffix('.py')}')"
    assert len((ROOT / script).read_text(encoding="utf-8").splitlines()) <= 8


@pytest.mark.parametrize("script", ["eval.py", "db.py"])
def test_the_scripts_tell_how_they_are_used(script: str, tmp_path: Path) -> None:
    finished = run([sys.executable, str(ROOT / script), "--help"], tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "--db-url" in finished.stdout
    assert "--plugin" in finished.stdout


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("src", "testbed"),
        ("src.registry", "testbed"),
        ("src.models.model_base", "testbed"),
        ("db", "testbed.db"),
        ("db.tables", "testbed.db"),
        ("db.migrations", "testbed.db"),
        ("plotting", "testbed.plotting"),
    ],
)
def test_importing_a_folder_by_its_own_name_says_under_which_name_it_is_imported(wrong: str, right: str) -> None:
    finished = run([sys.executable, "-c", f"import {wrong}"], ROOT)
    assert finished.returncode == 1
    last = finished.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    assert f"'{right}'" in last
    assert f"'{wrong.split('.')[0]}'" in last


def test_the_right_names_can_be_imported_from_the_root_beside_the_wrong_ones() -> None:
    script = "import testbed.registry, testbed.db.tables, testbed.plotting; print(testbed.db.__file__)"
    finished = run([sys.executable, "-c", script], ROOT)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip().endswith("__init__.py")


@cases("name", MODULES)
def test_every_module_can_be_imported_and_its_examples_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__name__ == name
    assert (module.__doc__ or "").strip(), f"{name} does not say what it is for"
    # the examples of frames need a store: extensions/estimates/tests/test_estimates.py runs them
    if not name.endswith(".frames"):
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        for each in doctest.DocTestFinder().find(module):
            if each.examples:  # or else it would look at all files of all tracebacks so far, for each docstring
                runner.run(each)
        assert runner.summarize(verbose=False).failed == 0


def test_the_walk_finds_the_modules_of_all_roots() -> None:
    files = {
        ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts]).removesuffix(".__init__")
        for folder, package in MAPPED.items()
        for path in python_files(folder)
    }
    assert files == {*MODULES, *NOT_IMPORTABLE}


# A plain install --------------------------------------------------------------------------------------------------


def run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed a copy of the repository, not editable."""
    return install_copy(ROOT, tmp_path_factory.mktemp("installed"), ".*", "dist", "tests", "*.db*")


def test_an_install_holds_every_module_and_nothing_else_at_the_top(installed: Path) -> None:
    expected = {
        "/".join([*package.split("."), *path.relative_to(ROOT / folder).parts])
        for folder, package in MAPPED.items()
        for path in python_files(folder)
    }
    found = {path.relative_to(installed).as_posix() for path in installed.rglob("*.py")}
    assert found == expected
    top = {path.name for path in installed.iterdir()}
    assert top == {"testbed", f"results_testbed-{testbed.__version__}.dist-info", "bin"}


def test_an_install_holds_the_files_that_are_no_python(installed: Path) -> None:
    assert (installed / "testbed" / "db" / "migrations" / "script.py.mako").is_file()
    assert (installed / "testbed" / "py.typed").is_file()


def test_an_install_tells_its_metadata_and_its_commands(installed: Path) -> None:
    (information,) = installed.glob("results_testbed-*.dist-info")
    metadata = email.message_from_string((information / "METADATA").read_text(encoding="utf-8"))
    assert metadata["Name"] == "results-testbed"
    assert metadata["Version"] == testbed.__version__
    assert {"postgres", "parquet", "test", "lint"} <= set(metadata.get_all("Provides-Extra", []))
    commands = configparser.ConfigParser()
    commands.read(information / "entry_points.txt")
    assert dict(commands["console_scripts"]) == {"testbed": "testbed.cli.start:main"}
    assert {path.name for path in (installed / "bin").iterdir()} == set(commands["console_scripts"])


@pytest.mark.parametrize("command", ["run", "show"])
def test_the_installed_commands_run_from_anywhere(installed: Path, tmp_path: Path, command: str) -> None:
    finished = run([str(installed / "bin" / "testbed"), command, "--help"], tmp_path, PYTHONPATH=str(installed))
    assert finished.returncode == 0, finished.stderr
    assert "--db-url" in finished.stdout


def test_an_install_finds_its_definitions_and_makes_a_store(installed: Path, tmp_path: Path) -> None:
    script = """
import sys
import testbed
from testbed.db.store import Store
from testbed.registry import registry
print(testbed.__file__)
print(registry.contains_model("digits-cnn"), registry.contains_eval_setting("digits"))
Store.create("sqlite:///made.db").close()
"""
    # -S keeps the editable install of the repository out of the way; the libraries are added by hand.
    path = f"{installed}:{':'.join(entry for entry in sys.path if 'site-packages' in entry)}"
    finished = run([sys.executable, "-S", "-c", script], tmp_path, PYTHONPATH=path)
    assert finished.returncode == 0, finished.stderr
    place, known = finished.stdout.splitlines()
    assert Path(place).is_relative_to(installed)
    assert known == "True True"
    assert (tmp_path / "made.db").stat().st_size > 0

"""Extensions come by entry points: a stranger's, faulty ones, and none at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from peers import install_copy

import testbed
from testbed import extending
from testbed.errors import ExtensionError

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "adding-an-extension.md"


def program(folder: Path, *words: str, path: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """`testbed` in a process of its own, with packages of a folder before the installed ones."""
    environment = {**os.environ, **variables, "TESTBED_DB": str(folder / "testbed.db")}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'testbed'; from testbed.cli.start import main; main()",
        *words,
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def distribution(folder: Path, name: str, points: str) -> None:
    """Metadata of an installed package."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[testbed.extensions]\n{points}\n")


@pytest.fixture(scope="module")
def page_extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension of the page, installed."""
    folder = tmp_path_factory.mktemp("extension")
    source = folder / "source"
    source.mkdir()
    blocks = re.findall(r"```(toml|python)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for kind, text in blocks:
        (source / ("pyproject.toml" if kind == "toml" else "testbed_spread.py")).write_text(text)
    return install_copy(source, folder)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A folder with a store."""
    testbed.evaluate(["digits-knn", "digits-logreg"], "digits", db=str(tmp_path / "testbed.db"), progress=False)
    return tmp_path


@pytest.mark.usefixtures("shared_cache")
def test_the_extension_of_the_page_does_what_the_page_says(page_extension: Path, stored: Path) -> None:
    done = program(stored, "spread", "digits", path=page_extension)
    assert done.returncode == 0, done.stderr
    frame = testbed.results(str(stored / "testbed.db")).frame
    top1 = frame[(frame.metric == "top1") & (frame.slice == "overall")].value
    assert done.stdout == f"digits: {100 * (top1.max() - top1.min()):.2f} points\n"
    said = program(stored, "spread", "--json", path=page_extension).stdout
    script = "import json, testbed; print(json.dumps(testbed.results('testbed.db').spread()))"
    run = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(page_extension)}
    found = subprocess.run(run, cwd=stored, env=environment, capture_output=True, text=True, check=True).stdout
    assert json.loads(found) == json.loads(said) == {"digits": pytest.approx(top1.max() - top1.min())}
    help_text = program(stored, "--help", path=page_extension).stdout
    assert "spread" in help_text.partition("Analyse:")[2].partition("Store and files:")[0]


def test_a_faulty_extension_is_one_line_and_ends_no_other_command(tmp_path: Path) -> None:
    distribution(tmp_path / "site", "broken", "command.analyse.broken = nowhere_to_be_found:command")
    failed = program(tmp_path, "broken", path=tmp_path / "site")
    assert failed.returncode == 1
    assert failed.stderr.startswith("Error: the extension command.analyse.broken of broken cannot be loaded: ")
    assert len(failed.stderr.splitlines()) == 1
    assert "nowhere_to_be_found" in failed.stderr
    listed = program(tmp_path, "--help", path=tmp_path / "site")
    assert listed.returncode == 0
    assert "cannot be loaded" in " ".join(listed.stdout.split())
    assert "compare" in listed.stdout
    unknown = program(tmp_path, "shwo", path=tmp_path / "site")
    assert unknown.stderr.splitlines()[-1].startswith("Error: unknown command testbed shwo; did you mean testbed show")


def test_a_faulty_option_of_a_run_ends_no_run(tmp_path: Path) -> None:
    distribution(tmp_path / "site", "broken", "run.broken = ending:OPTION")
    (tmp_path / "site" / "ending.py").write_text("raise SystemExit('a key is needed')\n")
    done = program(tmp_path, "run", "digits-knn", "--on", "digits", "--dry-run", path=tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert "the extension run.broken of broken cannot be loaded: SystemExit: a key is needed" in done.stderr


def test_two_packages_with_one_name_are_both_named(tmp_path: Path) -> None:
    for name in ("first", "second"):
        distribution(tmp_path / "site", name, f"command.analyse.same = {name}:command")
    done = program(tmp_path, "same", path=tmp_path / "site")
    assert done.returncode == 1
    assert "first and second both have an extension command.analyse.same" in done.stderr


def test_results_have_the_methods_of_extensions_and_no_others() -> None:
    results = testbed.Results(None, [])
    assert {"rank", "compare", "gate", "plot"} <= set(dir(results))
    assert results.rank.__doc__.startswith("Ranks models")
    with pytest.raises(AttributeError, match="'Results' object has no attribute 'spread'"):
        results.spread  # noqa: B018
    with pytest.raises(ExtensionError, match=r"no installed extension has results\.spread"):
        extending.load(extending.RESULTS, "spread")


# Without extensions -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def core_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """testbed installed without its extensions, and without figures."""
    folder = tmp_path_factory.mktemp("core")
    source = folder / "source"
    for name in ("src", "db"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    lines = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    lines = re.sub(r"\n    testbed\.(extensions|plotting)[\w.]*( = .*)?(?=\n)", "", lines)
    lines = re.sub(r"\ntestbed\.extensions =\n(    .*\n)+", "\n", lines)
    lines = re.sub(r"\ntestbed\.extensions\.\w+ =( .*)?\n(    .*\n)*", "\n", lines)
    (source / "setup.cfg").write_text(re.sub(r"\ntestbed\.extensions\.\w+ =( .*)?\n(    .*\n)*", "\n", lines))
    return install_copy(source, folder)


@pytest.mark.usefixtures("shared_cache")
def test_the_core_works_with_all_extensions_removed(core_alone: Path, stored: Path, tmp_path: Path) -> None:
    assert not list(core_alone.glob("testbed/extensions")) + list(core_alone.glob("testbed/plotting"))
    words = ("run", "digits-knn", "digits-logreg", "digits-clip", "--on", "digits", "digits-c.contrast.*", "--json")
    (tmp_path / "alone").mkdir()
    alone = program(tmp_path / "alone", *words, path=core_alone)
    assert alone.returncode == 0, alone.stderr
    (tmp_path / "whole").mkdir()
    whole = program(tmp_path / "whole", *words)
    values = [
        {
            (each["model"], each["eval_setting"], each["metric"], each["slice"]): each["value"]
            for each in found["results"]
        }
        for found in (json.loads(alone.stdout), json.loads(whole.stdout))
    ]
    assert values[0] == values[1]
    assert len(values[0]) > 100
    for command in (("show", "digits-knn", "digits"), ("list", "results"), ("store", "check"), ("--help",)):
        done = program(tmp_path / "alone", *command, path=core_alone)
        assert done.returncode == 0, done.stderr
    logits = program(tmp_path / "alone", "export", "logits", "digits", "logits", path=core_alone)
    assert logits.returncode == 0, logits.stderr
    gone = program(tmp_path / "alone", "rank", "digits", path=core_alone)
    assert gone.returncode == 2
    assert "unknown command testbed rank" in gone.stderr


def test_no_extension_is_used_where_the_user_says_so(tmp_path: Path) -> None:
    done = program(tmp_path, "rank", TESTBED_NO_EXTENSIONS="1")
    assert done.returncode == 2
    assert "unknown command testbed rank" in done.stderr

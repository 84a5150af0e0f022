"""The command ``testbed``, its commands, and completion of their words in a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import click
import pytest
from click.shell_completion import ShellComplete

from testbed import __version__
from testbed.cli.db import command as db_command
from testbed.cli.eval import command as eval_command
from testbed.cli.program import command
from testbed.db.store import Store

NAMES = command.list_commands(click.Context(command))
assert len(NAMES) > 30  # those of extensions, too
HEAVY = {"torch", "numpy", "pandas", "sqlalchemy", "plotly", "alembic"}
# As an installed command: the name of the program is that of the file.
SCRIPT = f"""
import sys
from testbed.cli.program import main
try:
    main()
finally:
    print("heavy:", sorted({HEAVY} & set(sys.modules)), file=sys.stderr)
"""


def run_testbed(folder, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "testbed").write_text(SCRIPT)
    program = [sys.executable, str(folder / "testbed"), *words]
    environment = {**os.environ, **variables}
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


def completed(line: str, incomplete: str, program: click.Command = command) -> list[tuple[str, str]]:
    """What a shell offers for the last word of a line: kind and word."""
    shell = ShellComplete(program, {}, "testbed", "_TESTBED_COMPLETE")
    return [(each.type, each.value) for each in shell.get_completions(line.split(), incomplete)]


def words(line: str, incomplete: str, program: click.Command = command) -> list[str]:
    return [value for kind, value in completed(line, incomplete, program) if kind == "plain"]


def test_the_help_lists_every_command_and_imports_no_library(tmp_path):
    done = run_testbed(tmp_path, "--help")
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        assert f"\n  {name} " in done.stdout
    assert done.stderr == "heavy: []\n"


def test_python_m_testbed_is_the_same_program(tmp_path):
    program = [sys.executable, "-m", "testbed"]
    asked = [*program, "list", "models", "--stored", "--db-url", "none.db"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    said = f"Error: no results store at {tmp_path / 'none.db'}; testbed run creates one"
    assert done.stderr.startswith(said)


def in_a_shell(folder, script: str) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("bash"), "-c", script.replace("TESTBED", f"{sys.executable} -m testbed")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def test_closed_streams_are_no_error(tmp_path):
    done = in_a_shell(tmp_path, "TESTBED list models >&- 2>notes && TESTBED list models >&- 2>&- <&- && echo both")
    assert (done.returncode, done.stdout, done.stderr) == (0, "both\n", "")


def test_a_working_folder_that_was_deleted_is_one_line(tmp_path):
    done = in_a_shell(tmp_path, "mkdir gone && cd gone && rmdir ../gone && TESTBED list models")
    assert done.returncode == 1
    assert done.stderr == "Error: the working folder cannot be used (No such file or directory); cd to another one\n"


def test_the_version_is_told(capsys):
    assert command.main(["--version"], standalone_mode=False) in (0, None)
    assert capsys.readouterr().out == f"testbed {__version__}\n"


def test_an_unknown_command_is_a_clear_mistake():
    for program in ("testbed", "python -m testbed"):
        meant = f"unknown command {program} evaluate; did you mean {program} run"
        with pytest.raises(click.ClickException, match=meant):
            command.main(["evaluate"], prog_name=program, standalone_mode=False)


# Completion -------------------------------------------------------------------------------------------------------


def test_a_shell_completes_names_without_importing_torch(tmp_path):
    asked = {"_TESTBED_COMPLETE": "bash_complete", "COMP_WORDS": "testbed run digits-knn digits-l", "COMP_CWORD": "3"}
    done = run_testbed(tmp_path, **asked)
    assert done.stdout == "plain,digits-logreg\n"
    assert done.stderr == "heavy: ['numpy']\n"


def test_a_shell_gets_its_script(tmp_path):
    done = run_testbed(tmp_path, _TESTBED_COMPLETE="zsh_source")
    assert done.stdout.startswith("#compdef testbed")


def test_commands_and_options_are_completed():
    assert words("", "ex") == ["explain", "export"]
    assert words("", "") == NAMES
    assert words("store re", "re") == ["repair", "rename", "remove", "restore"]
    assert "--batch-size" in words("run", "--ba")
    assert words("", "--batch", eval_command) == ["--batch-size"]
    assert words("", "--list-models", db_command) == ["--list-models-registry", "--list-models-db"]


def test_names_patterns_prefixes_and_collections_are_completed_after_the_first_word_too():
    assert words("run resnet50 digits-k", "digits-k") == ["digits-knn"]
    assert words("--models digits-cnn", "imagenet-testb", eval_command) == ["imagenet-testbed"]  # a collection
    expected = [f"digits-c.contrast.{level}" for level in range(1, 6)]
    assert words("run digits-cnn --on digits", "digits-c.contr") == expected
    assert words("run --on", "digits-ev") == words("store add setting", "digits-ev") == ["digits-even"]
    assert words("run digits-cnn --limit", "digits-k") == []
    # a file of names, a folder of images
    assert completed("--eval-settings digits", "./no-name", eval_command) == [("file", "./no-name")]


def test_names_of_a_plugin_are_completed(tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from testbed.registry import registry\nregistry.add_model_collection('my-favourites', ['digits-cnn'])\n"
    )
    asked = {"_TESTBED_COMPLETE": "bash_complete", "COMP_CWORD": "6"}
    asked["COMP_WORDS"] = f"testbed run --plugin {plugin} --limit 5 my-fav"
    assert run_testbed(tmp_path, **asked).stdout == "plain,my-favourites\n"


@pytest.mark.parametrize(
    "line",
    [
        *(
            "show",
            "grid digits --models",
            "compare",
            "compare other",
            "figures --models",
            "export texts val out --models",
        ),
        *("store verify --models", "rescore --models", "store remove model", "list results --models other"),
    ],
)
def test_names_of_the_store_are_completed_where_the_store_is_asked(line, named_store):
    assert words(line, "my") == ["my-net"]


@pytest.mark.parametrize(
    "line", ["show net", "rank", "grid", "compare a b --on", "hardest", "store remove evaluation net", "rescore --on x"]
)
def test_so_are_those_of_settings(line, named_store, monkeypatch):
    assert words(line, "my") == ["my-setting"]
    monkeypatch.setenv("TESTBED_DB", f"{named_store}.none")
    assert words(line, "my") == []


def test_the_options_of_imagenet_testbed_complete_names_too(named_store):
    assert words("--remove-model other", "my", db_command) == ["my-net"]


@pytest.fixture
def named_store(tmp_path, sqlite_template, monkeypatch):
    """A store with a model and a setting, which commands take."""
    filled = shutil.copy(sqlite_template, tmp_path / "names.db")
    with Store.open(f"sqlite:///{filled}", "write") as store:
        store.names.add("model", "my-net")
        store.names.add("eval setting", "my-setting")
    monkeypatch.setenv("TESTBED_DB", str(filled))
    return filled

"""The command ``testbed``, which has all programs, and completion of its words in a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import click
import pytest
from click.shell_completion import ShellComplete

from testbed import __version__
from testbed.__main__ import PROGRAMS, command
from testbed.cli.db import command as db_command
from testbed.cli.eval import command as eval_command
from testbed.console.called import as_called
from testbed.db.store import Store
from testbed.plotting.figures import command as figures_command

HEAVY = {"torch", "pandas", "sqlalchemy", "plotly", "alembic"}
# As an installed command: the name of the program is that of the file.
SCRIPT = f"""
import sys
from testbed.__main__ import main
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


def test_the_help_lists_every_program_and_imports_none(tmp_path):
    done = run_testbed(tmp_path, "--help")
    assert done.returncode == 0, done.stderr
    for name in PROGRAMS:
        assert f"\n  {name} " in done.stdout
    assert done.stderr == "heavy: []\n"


def test_python_m_testbed_runs_programs(tmp_path):
    program = [sys.executable, "-m", "testbed"]
    asked = [*program, "db", "--list-models-db", "--db-url", "none.db"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    said = f"Error: there is no results store at {tmp_path / 'none.db'}; python -m testbed eval makes one"
    assert done.stderr.startswith(said)


def test_the_version_is_told(capsys):
    assert command.main(["--version"], standalone_mode=False) in (0, None)
    assert capsys.readouterr().out == f"testbed {__version__}\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_there_and_has_help(name, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([name, "--help"], prog_name="testbed")
    assert ended.value.code == 0
    assert f"Usage: testbed {name}" in capsys.readouterr().out


def test_an_unknown_program_is_a_clear_mistake():
    with pytest.raises(click.UsageError, match="No such command 'evaluate'"):
        command.main(["evaluate"], standalone_mode=False)


@pytest.mark.parametrize(
    ("called", "shown"),
    [("testbed", "testbed eval"), ("eval.py", "python eval.py")],
)
def test_messages_and_help_name_the_programs_as_they_were_called(called, shown, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", [f"/usr/bin/{called}"])
    with pytest.raises(SystemExit):
        eval_command.main(["--help"], prog_name=shown)
    assert f" {shown} --models demo --eval-settings demo\n" in capsys.readouterr().out


def test_paths_of_the_user_are_left_as_they_are():
    assert as_called("/data/db.py: run db.py --check", "testbed") == "/data/db.py: run testbed db --check"
    assert as_called("my-eval.py is no folder", "testbed") == "my-eval.py is no folder"


# Completion -------------------------------------------------------------------------------------------------------


def test_a_shell_completes_names_without_importing_torch(tmp_path):
    asked = {"_TESTBED_COMPLETE": "bash_complete", "COMP_WORDS": "testbed eval --models digits-l", "COMP_CWORD": "3"}
    done = run_testbed(tmp_path, **asked)
    assert done.stdout == "plain,digits-logreg\n"
    assert done.stderr == "heavy: []\n"


def test_a_shell_gets_its_script(tmp_path):
    done = run_testbed(tmp_path, _TESTBED_COMPLETE="zsh_source")
    assert done.stdout.startswith("#compdef testbed")


def test_programs_and_options_are_completed():
    assert words("", "ex") == ["export-wds"]
    assert words("", "") == list(PROGRAMS)
    assert "--batch-size" in words("eval", "--ba")
    assert words("", "--batch", eval_command) == ["--batch-size"]
    assert words("db", "--list-models") == ["--list-models-db", "--list-models-registry"]


def test_names_patterns_prefixes_and_collections_are_completed_after_the_first_word_too():
    assert words("eval --models resnet50 digits-k", "digits-k") == ["digits-knn"]
    assert words("--models digits-cnn", "imagenet-testb", eval_command) == ["imagenet-testbed"]  # a collection
    expected = [f"digits-c.contrast.{level}" for level in range(1, 6)]
    assert words("eval --models digits-cnn --eval-settings digits", "digits-c.contr") == expected
    assert words("eval --eval-settings", "digits-ev") == ["digits-even"]
    assert words("eval --models digits-cnn --limit 5", "digits-k") == []
    # a file of names, a folder of images
    assert completed("--eval-settings digits", "./no-name", eval_command) == [("file", "./no-name")]


def test_names_of_a_plugin_are_completed(tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from testbed.registry import registry\nregistry.add_model_collection('my-favourites', ['digits-cnn'])\n"
    )
    asked = {"_TESTBED_COMPLETE": "bash_complete", "COMP_CWORD": "5"}
    asked["COMP_WORDS"] = f"testbed eval --plugin {plugin} --models my-fav"
    assert run_testbed(tmp_path, **asked).stdout == "plain,my-favourites\n"


def test_names_of_the_store_are_completed_where_the_store_is_asked(tmp_path, sqlite_template):
    filled = shutil.copy(sqlite_template, tmp_path / "names.db")
    with Store.open(f"sqlite:///{filled}", "write") as store:
        store.add_name("model", "my-net")
        store.add_name("eval setting", "my-setting")
    for program in (db_command, figures_command):
        assert words(f"--db-url {filled} --models other", "my", program) == ["my-net"]
        assert words(f"--db-url {filled} --eval-settings", "my", program) == ["my-setting"]
    assert words(f"--db-url {sqlite_template} --models", "my", db_command) == []
    assert words(f"--db-url {tmp_path}/none.db --models", "my", db_command) == []

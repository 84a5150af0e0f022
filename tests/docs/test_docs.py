"""The documentation says what is true: commands, code blocks, links, names."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
from click.testing import CliRunner
from tables import cases

from testbed.cli import db, eval
from testbed.plotting import paper_appendix_grid, paper_hypothetical, paper_shifts
from testbed.plotting.picture import picture_command

ROOT = Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("make_commands", ROOT / "docs" / "make_commands.py")
make_commands = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_commands)
DOCS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *DOCS]
COMMANDS = dict(make_commands.commands()) | {"eval.py": eval.command, "db.py": db.command}
OF_THE_PAPER = (*paper_shifts.PICTURES.values(), paper_hypothetical.PICTURE, paper_appendix_grid.PICTURE)
FIGURES = (*map(picture_command, OF_THE_PAPER), *(command for _, command in make_commands.FIGURES))
# options of the programs that these pages are for, or about
OF_OTHERS = {
    "docs/clip-benchmark.md",
    "docs/clip-cc-bench.md",
    "docs/clusters.md",
    "docs/troubleshooting.md",
    "docs/vlmevalkit.md",
}


def words(text: str) -> list[str]:
    return text.split()


def blocks(root: Path, page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (root / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_command_reference_is_what_the_programs_print(root):
    written = (root / "docs" / "commands.md").read_text(encoding="utf-8")
    # Where lines are broken is click's affair, and differs between its versions.
    assert words(make_commands.reference()) == words(written), "run: python docs/make_commands.py"


def test_no_line_of_a_help_ends_within_an_option(monkeypatch):
    monkeypatch.setattr(make_commands, "WIDTH", "80")
    lines = make_commands.reference().splitlines()
    assert [line for line in lines if re.search(r"(?:^|[\s(\[])-{1,2}(?:\w+-)*$", line)] == []


@cases("name", COMMANDS)
def test_every_command_and_every_option_has_help(name):
    assert COMMANDS[name].help
    options = [each for each in COMMANDS[name].params if isinstance(each, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_examples_in_help_texts_are_commands_with_options_that_exist():
    examples = re.findall(r"^    ((?:testbed|python) .*)$", make_commands.reference(), re.MULTILINE)
    assert len(examples) > 10
    for example in examples:
        words = shlex.split(example.partition(" | ")[0])[1 if example.startswith("python") else 0 :]
        name = max((each for each in COMMANDS if words[: len(each.split())] == each.split()), key=len)
        COMMANDS[name].make_context(name, words[len(name.split()) :]).close()


def test_every_source_of_published_values_is_in_the_help(root):
    sources = {line.split("\t")[0] for line in (root / "extensions/published/sources.tsv").read_text().splitlines()[1:]}
    told = COMMANDS["testbed published fetch"].help
    assert {source for source in sources if source not in told} == set()


@cases("name", [name for name in COMMANDS if name not in ("testbed run", "eval.py")])
def test_the_help_of_a_command_fits_a_screen(name):
    shown = CliRunner().invoke(COMMANDS[name], ["--help"], prog_name=name, terminal_width=80)
    assert len(shown.output.splitlines()) <= 50


@cases("page", PAGES)
def test_links_lead_somewhere(root, page):
    text = (root / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or ((root / page).parent / target).exists(), target


@cases("page", [page for page in PAGES if page not in OF_OTHERS])
def test_options_that_are_mentioned_exist(root, page):
    commands = (*COMMANDS.values(), *FIGURES)
    known = {name for command in commands for option in command.params for name in option.opts}
    known |= {name for command in commands for option in command.params for name in option.secondary_opts}
    known |= {"--help", "--check", "--no-deps"}  # ruff format --check; pip's
    known |= {"--force-context-length", "--force-image-size", "--siglip", "--time"}  # open_clip's training; Slurm's
    known |= {"--list-", "--remove-", "--rename-", "--add-"}  # families of options
    text = re.sub(r"`{3}.*?`{3}", "", (root / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert mentioned <= known, mentioned - known


@cases("page", PAGES)
def test_python_blocks_are_valid_python(root, page):
    for block in blocks(root, page, "python"):
        compile(block, page, "exec")


def test_the_rooms_that_contributing_lists_exist(root):
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in re.findall(r"^\| `([a-z_./]+)/?`", text, flags=re.MULTILINE):
        assert (root / name).exists() or (root / "src" / name).exists(), name


def test_every_registered_option_of_a_model_and_a_setting_is_documented(root):
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import Model, ModelDefinition

    page = (root / "docs" / "adding-a-setting.md").read_text(encoding="utf-8")
    names = set(inspect.signature(EvalSetting).parameters) - {"task", "description"}
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
    page = (root / "docs" / "adding-a-model.md").read_text(encoding="utf-8")
    names = set(inspect.signature(Model).parameters) | set(inspect.signature(ModelDefinition).parameters)
    assert [name for name in sorted(names - {"options", "architecture"}) if f"`{name}`" not in page] == []


def test_the_example_of_judges_prints_what_the_page_says(root):
    codes, (printed,) = (blocks(root, "docs/reading-answers.md", language) for language in ("python", "text"))
    (code,) = (code for code in codes if "prediction_powered" in code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == printed

"""What commands print on a terminal of 80 columns: no line is longer, and no number is cut."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from long_names import MODELS, SETTINGS
from table_world import recorded_answers

from testbed.cli.program import command as program
from testbed.console.columns import folded
from testbed.console.groups import Group
from testbed.console.output import fitted
from testbed.data.sets.digits import Digits

pytestmark = pytest.mark.usefixtures("shared_cache")

NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
NAMES = {
    "the demo": (["digits-knn", "digits-logreg"], ["digits", "digits-inverted"]),
    "long names": (MODELS, SETTINGS),
}
PLUGIN = ["--plugin", str(Path(__file__).parent.parent / "plugins" / "long_digits.py")]
TO_COPY = re.compile(r" *testbed \w+ '|\s*[('\"]?(\w+:/|/)\S+$|The results are in ")  # commands, paths

# Every verb that prints a table or lines about several models, with its words for a store.
TABLES: dict[str, Callable[[list[str], list[str]], list[str]]] = {
    "run": lambda models, settings: [*models, "--on", *settings, "--limit", "60", "--executor", "inline", *PLUGIN],
    "rescore": lambda models, settings: PLUGIN,
    "list models": lambda models, settings: ["--stored"],
    "list settings": lambda models, settings: ["--stored"],
    "list results": lambda models, settings: [],
    "show": lambda models, settings: [models[0], settings[0], "--slices"],
    "grid": lambda models, settings: ["*"],
    "why": lambda models, settings: ["1", "3"],
    "published add": lambda models, settings: claimed(settings, "another blog"),
    "published list": lambda models, settings: [],
    "published show": lambda models, settings: [models[0], settings[0]],
    "published disagree": lambda models, settings: [],
    "published coverage": lambda models, settings: [],
    "published prefer": lambda models, settings: [],
    "explain": lambda models, settings: [models[1], settings[0], "--published", "90", "--samples", "0", *PLUGIN],
    "rank": lambda models, settings: settings,
    "compare": lambda models, settings: [*models, "--on", *settings],
    "gate": lambda models, settings: ["policy.yaml", "--candidate", models[1], "--baseline", models[0]],
    "groups": lambda models, settings: [settings[0], "--by", "class"],
    "hardest": lambda models, settings: [settings[0]],
    "confusions": lambda models, settings: [settings[0]],
    "agreement": lambda models, settings: [settings[0]],
    "borda": lambda models, settings: [*settings, "--metric", "top1"],
    "calibrate": lambda models, settings: [
        settings[0],
        "--labels",
        "labels.csv",
        "--score",
        "top1",
        "--models",
        models[0],
    ],
    "anchors choose": lambda models, settings: [settings[0], "--size", "20", "-o", "other.json"],
    "estimate": lambda models, settings: [*models, "--on", settings[1], "--from", settings[0]],
    "ood": lambda models, settings: [*models, "--in", settings[0], "--far", settings[1]],
    "mce": lambda models, settings: ["--on", "digits-c.contrast.*", "--clean", settings[0], "--baseline", models[0]],
    "factors": lambda models, settings: [settings[0], "--from", "factors.csv"],
    "suspects": lambda models, settings: [settings[0]],
    "selective": lambda models, settings: [*models, "--on", *settings],
    "compare-recorded": lambda models, settings: [f"replay:{Path('recorded').read_text()}", "MMStar"],
    "store status": lambda models, settings: [],
    "store check": lambda models, settings: ["--deep"],
    "store verify": lambda models, settings: ["--models", *models, "--executor", "inline", *PLUGIN],
    "store repair": lambda models, settings: [],
    "store gc": lambda models, settings: [],
}
PROGRESS = ("run", "store verify")  # which tell it on stderr; on a terminal in bars
# These print only that they are done, or a page's address.
OTHERS = {
    *("corrupt", "watch", "serve", "site", "figures", "import", "people", "publish", "published fetch"),
    "anchors estimate",  # whose table is that of choose
    *(f"export {form}" for form in ("logits", "texts", "verdicts", "answers", "csv", "clip-benchmark")),
    *(f"export {form}" for form in ("webdataset", "clip-cc", "vlmevalkit", "every-eval-ever", "model-card", "inspect")),
    "export datacomp",  # whose table needs data sets of DataComp
    *(f"store {verb}" for verb in ("salvage", "backup", "copy", "merge", "upgrade")),
    *(f"store {verb}" for verb in ("add", "rename", "remove", "restore", "purge")),
}


def claimed(settings: list[str], source: str) -> list[str]:
    told = ["model=net", f"setting={settings[0]}", "value=acc", "unit=percent"]
    return [f"{source.split()[0]}.csv", "--map", *told, "--source", source]


@pytest.fixture(scope="module", params=[pytest.param("the demo", marks=pytest.mark.long), "long names"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A folder with a store of each kind of names, with recorded answers and published values, and with labels."""
    models, settings = NAMES[request.param]
    folder = tmp_path_factory.mktemp("narrow")
    recorded = recorded_answers(folder)
    (folder / "recorded").write_text(str(recorded))
    for place, source in enumerate(("a", "another")):
        (folder / f"{source}.csv").write_text(f"net,acc\n{models[0]},{90.1 - 7 * place}\n")
    rules = "".join(f"  - setting: {setting}\n    margin: 90\n" for setting in settings)
    (folder / "policy.yaml").write_text(f"rules:\n{rules}")
    on = ["--db-url", str(folder / "testbed.db"), "--executor", "inline"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in (
            ["run", *models, "--on", *settings, "--limit", "60", *on, *PLUGIN],
            ["run", *models, "--on", "digits-c.contrast.3", "--limit", "60", *on, *PLUGIN],
            ["run", "digits-mlp", "digits-cnn", "--on", settings[0], "--limit", "60", *on, *PLUGIN],
            ["run", f"replay:{recorded}", "--on", "MMStar", "--lmu-data", str(folder / "lmu"), *on],
            ["published", "add", *claimed(settings, "a blog"), *on[:2]],
            ["published", "add", *claimed(settings, "another blog"), *on[:2]],
        ):
            done = CliRunner().invoke(program, words, standalone_mode=False)
            assert done.exit_code == 0, done.output
    labels = "".join(f"{each},{place % 3 // 2}\n" for place, each in enumerate(Digits("test").ids[::9]))
    (folder / "labels.csv").write_text(f"id,label\n{labels}")
    factors = "".join(f"{each},{place % 2},{place % 3 // 2}\n" for place, each in enumerate(Digits("test").ids[::9]))
    (folder / "factors.csv").write_text(f"id,pose,a_long_name_of_a_factor\n{factors}")
    return request.param, folder


def verbs(group: Group, before: tuple[str, ...] = ()) -> Iterator[str]:
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            words = (*before, name)
            yield from verbs(command, words) if isinstance(command, Group) else [" ".join(words)]


def test_every_verb_is_told_of() -> None:
    assert isinstance(program, Group)
    assert sorted(verbs(program)) == sorted([*TABLES, *OTHERS])


@pytest.mark.parametrize("verb", TABLES)
def test_lines_fit_and_numbers_stay_whole(
    verb: str,
    filled: tuple[str, Path],
    ask: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, folder = filled
    models, settings = NAMES[kind]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    words = [*verb.split(), *TABLES[verb](models, settings)]
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = ask(*words)
    monkeypatch.setenv("COLUMNS", "80")
    done = ask(*words)
    assert done.stdout.strip()
    lines = done.stdout.splitlines() + ([] if verb in PROGRESS else done.stderr.splitlines())
    assert [line for line in lines if len(line) > 80 and not TO_COPY.match(line)] == []
    names_and_times = "|".join([*map(re.escape, (str(tmp_path), str(folder), *models, *settings)), r"\bin \d+ s\b"])
    cells = NUMBER.findall(re.sub(names_and_times, "", whole.stdout + whole.stderr))
    assert set(cells) <= set(NUMBER.findall(done.stdout + done.stderr))


@pytest.mark.parametrize("width", [7, 12, 20])
def test_names_go_on_in_the_next_line_and_numbers_stay_whole(width: int) -> None:
    for name in (*MODELS, *SETTINGS, "digits-pgd.linf.eps0.1", "99,999 of 100,000"):
        lines = folded(name, width)
        assert max(map(len, lines)) <= width
        assert "".join(lines).replace(" ", "") == name.replace(" ", "")
        assert NUMBER.findall(" ".join(lines)) == NUMBER.findall(name)


def test_a_table_that_is_too_wide_has_its_columns_in_tables_below_which_name_the_rows() -> None:
    rows = [["a model of mine", *(f"{place}.{row}" for place in range(10))] for row in range(2)]
    text = fitted(["model", *(f"column {place}" for place in range(10))], rows, range(1, 11), 40)
    parts = [part.splitlines() for part in text.split("\n\n")]
    assert [line for part in parts for line in part if len(line) > 40] == []
    for row in range(2):
        assert [part[3 + row].split()[4:] for part in parts] == [
            [f"{place}.{row}" for place in chosen] for chosen in (range(0, 3), range(3, 6), range(6, 9), range(9, 10))
        ]

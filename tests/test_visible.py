"""What stored texts do to a terminal: nothing."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from stored_cells import put, samples_of, saying
from tables import cases

from testbed.console.output import grid, table
from testbed.console.streams import VisibleStream
from testbed.db.store import Store
from testbed.execution.progress import LineProgress, RichProgress
from testbed.jsontext import to_json
from testbed.visible import visible, visible_line

ATTACKS = {
    "title": "\x1b]0;owned\x07",
    "colour": "\x1b[31mred\x1b[0m",
    "clear": "\x1b[2J\x1b[H",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "eight bits": "\x9b31mred",
    "return": "net\rError: all is lost",
    "backspace": "net\b\b\bwrong",
    "bidi": "net\u202egnorw",
    "isolate": "net\u2066x",
    "delete": "net\x7f",
    "bell": "\a",
    "null": "a\0b",
    "form feed": "a\f\vb",
    "separator": "a\u2028Error: fake",
}
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@cases("text", ATTACKS.values())
def test_what_acts_on_a_terminal_is_spelled_out(text: str) -> None:
    for shown in (visible(text), visible_line(text), to_json({text: [text]}), table([text], [[text]])):
        assert not ACTIVE.search(shown)
    assert json.loads(to_json({text: [text]})) == {text: [text]}
    assert visible(visible(text)) == visible(text)
    stream = io.StringIO()
    print(text, "more", file=VisibleStream(stream))
    assert stream.getvalue() == visible(text) + " more\n"


def test_other_texts_stay() -> None:
    text = "Käse 🧀 中文 עברית\n\tindented é e\u0301 \u200d ─"
    assert visible(text) == text
    assert visible_line("two\nlines\t") == "two\\nlines\\t"


def test_a_name_makes_no_second_line_in_a_table() -> None:
    assert len(table(["model"], [["net\nError: all is lost"]]).splitlines()) == 3
    assert len(grid(["a\nb"], ["c\nd"], {("a\nb", "c\nd"): "1\n2"}, "x\ny", 80).splitlines()) == 3


@cases("text", ["[/x]", "[red]", "[link=http://evil.example]x[/link]", *ATTACKS.values()])
def test_names_do_nothing_to_bars_and_lines(text: str) -> None:
    from rich.console import Console

    class Pass:
        id, label, reads, models, cells, batch_size = 0, text, "images", (text,), {1: None}, 2

    screen, lines = io.StringIO(), io.StringIO()
    bars = RichProgress(Console(file=screen, force_terminal=True, width=200))
    for progress in (bars, LineProgress(lines, 1)):
        one: Any = Pass()
        progress.begin(one, 2, 2)
        progress.advance(0, 2)
        progress.note(f"about {text}")
        progress.close()
    assert not ACTIVE.search(lines.getvalue())
    assert visible_line(text) in screen.getvalue()
    assert "owned\a" not in screen.getvalue()


def on_a_terminal(*words: str) -> str:
    """What a command writes to a terminal, which both of its streams are."""
    ours, its = pty.openpty()
    process = subprocess.Popen(words, stdout=its, stderr=its, stdin=subprocess.DEVNULL)
    os.close(its)
    said = b""
    try:
        while more := os.read(ours, 65536):
            said += more
    except OSError:  # the other end is closed
        pass
    process.wait(timeout=60)
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose every text has control characters: names, errors, sources, reasons, commands of runs."""
    path = tmp_path_factory.mktemp("hostile") / "shared.db"
    attack = "".join(text for name, text in ATTACKS.items() if name != "null")
    with Store.create(str(path)) as store:
        for model in ("net", "other"):
            put(store, model, "shown", samples_of([0, 1, 2], ["a", "b", "c"]), saying([0, 1, 2]))
        with store.database.writing() as session:
            for statement in (
                "UPDATE models SET name = name || :text, model_type = :text",
                "UPDATE eval_settings SET name = name || :text",
                "UPDATE evaluations SET error = :text, source = :text, dtype = :text",
                "UPDATE samples SET sample_id = sample_id || :text, group_name = :text",
                "UPDATE metrics SET unit = :text, published = :text",
                "UPDATE datasets SET name = :text",
            ):
                session.execute(sa.text(statement), {"text": attack})
            session.execute(sa.text("UPDATE evaluations SET status = 'failed' WHERE id = 2"))
    return path


COMMANDS = (
    *("list models --stored", "list models --stored --json", "list settings --stored", "list results", "grid shown*"),
    *("store check", "store check --json", "store check --deep", "store status", "show * *", "show ne show"),
    *("why 1 2", "compare net* other* --on shown*", "rank shown*", "rescore", "store purge", "store repair --json"),
)
SCRIPT = """
import sys
from testbed.cli.program import main

streams = sys.stdout, sys.stderr
_, url, *commands = sys.argv
for command in commands:
    sys.stdout, sys.stderr = streams
    print("# command", command, flush=True)
    sys.argv = ["testbed", *command.split(), "--db-url", url]
    try:
        main()
    except SystemExit:
        pass
"""


def test_no_command_passes_stored_control_characters_on(hostile: Path) -> None:
    printed = on_a_terminal(sys.executable, "-c", SCRIPT, str(hostile), *COMMANDS)
    said = dict(each.split("\n", 1) for each in printed.split("# command ")[1:])
    assert list(said) == list(COMMANDS)
    for command, text in said.items():
        assert text.strip(), command
        assert not ACTIVE.search(text), (command, ascii(text))
        assert "Traceback" not in text

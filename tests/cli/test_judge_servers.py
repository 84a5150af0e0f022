"""Judges on servers: kill -9 loses no answer that was paid for, and a judge that gives no verdict is named."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import Asked, ChatServer, Reply, completion, failure, serving

pytest.importorskip("openai")
pytestmark = pytest.mark.usefixtures("shared_cache")
PLUGIN = Path(__file__).parent.parent / "plugins" / "api_world.py"
LIMIT, PAID = 52, 20
SETTING = "digits-vqa.choice.vlmevalkit"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(lambda asked: Reply(completion("yes"))) as running:
        yield running


class Stops:
    """Answers so many questions, and holds the others until it is told to go on."""

    def __init__(self, answers: int) -> None:
        self.left = answers
        self.lock, self.go_on = threading.Lock(), threading.Event()
        self.answered: set[str] = set()

    def __call__(self, asked: Asked) -> Reply:
        question = asked.parts[0].get("text") or str(asked.parts[0])
        with self.lock:
            self.left -= 1
            answers = self.left >= 0
            if answers:
                self.answered.add(question)
        if not answers:
            self.go_on.wait(60)
        return Reply(completion("yes"))


def questions(asked: list[Asked]) -> Counter[str]:
    return Counter(each.parts[0].get("text") or str(each.parts[0]) for each in asked)


def answers_stored(path: Path) -> int:
    """How many answers of models and judges a store has."""
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as database:
        try:
            (count,) = database.execute(
                "SELECT (SELECT count(*) FROM item_values) + (SELECT coalesce(sum(count), 0) FROM output_chunks)"
            ).fetchone()
        except sqlite3.OperationalError:  # its tables are being made
            return 0
    return int(count)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("model", "setting", "executor"),
    [
        pytest.param("student", "judged", "processes", id="judge-processes", marks=pytest.mark.long),
        pytest.param("api:toy", "said", "inline", id="model-inline"),
    ],
)
def test_of_the_answers_that_came_before_kill_9_none_is_asked_for_again(
    server: ChatServer, root: Path, tmp_path: Path, program: Any, model: str, setting: str, executor: str
) -> None:
    workers = ("--cpu-processes", "1") if executor == "processes" else ()
    words = ("--plugin", str(PLUGIN), "--models", model, "--eval-settings", setting, "--limit", str(LIMIT))
    words = (*words, "--executor", executor, *workers, "--trust")
    variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1"}
    server.behave = stops = Stops(PAID)
    run = subprocess.Popen(
        [sys.executable, str(root / "eval.py"), *words], cwd=tmp_path, env={**os.environ, **variables},
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    # A judge is asked about stored answers to all questions.
    wait_for(lambda: answers_stored(tmp_path / "testbed.db") >= PAID + (LIMIT if setting == "judged" else 0))
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    heard = -1
    while heard != (heard := len(server.asked)):  # what was sent before the kill may be read after it
        time.sleep(0.3)
    stops.go_on.set()
    first = questions(server.take())
    assert len(stops.answered) == PAID < len(first)
    server.behave = lambda asked: Reply(completion("yes"))
    done = program("eval.py", *words, **variables)
    assert "1 cell: 1 complete." in done.stdout
    again = questions(server.take())
    assert not stops.answered & set(again)
    assert set(again.values()) == {1}
    assert len(again) + PAID == len({*first, *again})


def test_why_a_judge_gives_no_verdict_is_in_the_report_the_status_and_the_export(
    server: ChatServer, program: Any, tmp_path: Path
) -> None:
    told = iter(range(1_000))

    def behave(asked: Asked) -> Reply:
        number = next(told)
        if number < 2:
            return failure("this is against our policy", 400)
        if number == 2:
            return Reply(completion("A", "length"))
        return Reply(completion("It does not choose A.")) if number == 3 else Reply(completion("A"))

    server.behave = behave
    judge = f"api:judge@{server.url}"
    name = f"{SETTING}@{judge}"
    words = ("--models", "digits-talker", "--limit", "60", "--executor", "inline", "--batch-size", "1")
    variables = {"OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1"}
    done = program("eval.py", *words, "--eval-settings", name, **variables)
    assert len(server.take()) > 8
    program("testbed", "export", "verdicts", "verdicts.csv", "--on", name)
    with (tmp_path / "verdicts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    silent = Counter(row["no_verdict"] for row in rows if not row["label"])
    assert silent.keys() == {
        "HTTP 400: this is against our policy",
        "its reply was cut off",
        "its reply has no verdict on a line of its own",
    }
    reasons = {f"{times} of {len(rows)} answers; {judge}: {reason}" for reason, times in silent.items()}
    shown = {line.removeprefix("No verdict: ") for line in done.stdout.splitlines() if line.startswith("No verdict")}
    assert shown == {f"digits-talker on {name}: {each}" for each in reasons}
    assert f"{judge} refused 2 questions: HTTP 400: this is against our policy" in done.stderr
    status = program("testbed", "store", "status").stdout
    assert all(f"digits-talker on {name}: {each}" in status for each in reasons)
    found = json.loads(program("testbed", "store", "status", "--json").stdout)["no_verdict"]
    assert {f"{each['without_verdict']} of {each['answers']} answers; {each['reason']}" for each in found} == reasons
    program("eval.py", *words, "--eval-settings", name, **variables)
    assert server.take() == []  # what was refused is not asked again

"""A captioner whose server is too busy now and then: what it said is kept, what got no answer is asked again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest
from tables import cases

from testbed.data.sets.digits import Digits
from testbed.db.store import Store
from testbed.errors import UnreachedError
from testbed.workers.kernels.answering import is_passing

PLUGIN = Path(__file__).parent.parent / "plugins" / "flaky_world.py"
LIMIT = 20


@pytest.fixture
def flaky(program: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs a captioner while its server is too busy for some samples; gives what it printed and what it was asked."""

    def run(
        model: str, *words: str, busy: Sequence[int] = (), refused: Sequence[int] = (), code: int = 0
    ) -> SimpleNamespace:
        for mark in (*tmp_path.glob("busy-*"), *tmp_path.glob("refused-*")):
            mark.unlink()
        for mark in (*(f"busy-{number}" for number in busy), *(f"refused-{number}" for number in refused)):
            (tmp_path / mark).touch()
        (tmp_path / "asked").write_text("")
        what = ("--plugin", str(PLUGIN), "--models", model, "--eval-settings", "said", "--limit", str(LIMIT))
        # The marks stand for the state of a server, which no run can see; these files it would see, and check.
        done = program("eval.py", *what, "--executor", "inline", "--trust", *words, code=code)
        asked = Counter(int(line[-4:]) for line in (tmp_path / "asked").read_text().split())
        return SimpleNamespace(out=done.stdout, asked=asked)

    return run


IDS = Digits("test").ids
SAMPLES = [int(IDS[number * len(IDS) // LIMIT][-4:]) for number in range(LIMIT)]  # those that --limit chooses


@pytest.mark.parametrize("model", ["served", "careful", "polite"])
def test_what_did_not_get_through_is_asked_again_and_nothing_else(model: str, flaky: Any, tmp_path: Path) -> None:
    busy, refused = SAMPLES[5:7], SAMPLES[9]
    first = flaky(model, busy=busy, refused=[refused], code=1)
    assert first.asked == Counter(SAMPLES)  # each once, those in the batch of a failure too
    assert f"Incomplete: {model} on said: 2 of 20 samples got no answer (" in first.out
    assert "HTTP Error 503: Service Unavailable); run again to ask for these only" in first.out
    assert "1 cell: 1 incomplete." in first.out
    again = flaky(model, "--json", busy=busy[:1], code=1)
    assert again.asked == Counter(busy)  # not the refused one: a refusal is an answer
    (outcome,) = json.loads(again.out)["outcomes"]
    assert outcome["status"] == "incomplete"
    assert outcome["reason"].startswith("1 of 20 samples got no answer")
    last = flaky(model)
    assert last.asked == Counter(busy[:1])
    assert "1 cell: 1 complete." in last.out
    with Store.open(str(tmp_path / "testbed.db")) as store:
        (found,) = store.evaluations.find([model], ["said"])
        stored = list(store.outputs.read(found.id, "text"))
    assert [each["text"] or None for each in stored] == [None if n == refused else f"a digit, {n}" for n in SAMPLES]
    assert stored[9]["finish_reason"].startswith("error: ")
    assert stored[9]["finish_reason"].endswith("HTTP Error 400: content policy")
    assert flaky(model).asked == Counter()


def test_a_batch_that_fails_as_a_whole_is_asked_one_by_one_and_so_is_all_that_follows(flaky: Any) -> None:
    first = flaky("loop", busy=[SAMPLES[5], SAMPLES[13]], code=1)
    assert {n: times for n, times in first.asked.items() if times > 1} == {SAMPLES[4]: 2, SAMPLES[5]: 2}
    assert "2 of 20 samples got no answer" in first.out
    assert flaky("loop").asked == Counter([SAMPLES[5], SAMPLES[13]])


def test_a_server_that_never_answers_fails_the_cell(flaky: Any) -> None:
    first = flaky("careful", busy=SAMPLES, code=1)
    assert "Failed: careful on said: RunError: it fails on every sample: HTTPError: HTTP Error 503" in first.out
    assert sum(first.asked.values()) == 8
    assert flaky("careful").asked == Counter(SAMPLES)


def test_a_cell_that_takes_its_outputs_is_incomplete_with_it(flaky: Any) -> None:
    busy = SAMPLES[3:4]
    both = ("--eval-settings", "said", "said.coarse@toy-embedder", "--json")
    outcomes = json.loads(flaky("careful", *both, busy=busy, code=1).out)["outcomes"]
    assert [each["status"] for each in outcomes] == ["incomplete", "incomplete"]


def test_a_run_with_processes_says_the_same(flaky: Any) -> None:
    busy = SAMPLES[3:4]
    done = flaky("served", "--executor", "processes", "--cpu-processes", "1", busy=busy, code=1)
    assert "1 of 20 samples got no answer (HTTPError: HTTP Error 503: Service Unavailable)" in done.out
    assert flaky("served").asked == Counter(busy)


class Status(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("no")
        self.status_code = status


class APIConnectionError(Exception):
    pass


@cases(
    ("error", "passing"),
    [
        (UnreachedError("queue full"), True),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (HTTPError("http://x", 502, "Bad Gateway", {}, None), True),  # type: ignore[arg-type]
        (HTTPError("http://x", 400, "too many requests of this kind", {}, None), False),  # type: ignore[arg-type]
        (Status(429), True),
        (Status(401), False),
        (APIConnectionError("no route"), True),
        (RuntimeError("HTTP 503 from the server"), True),
        (RuntimeError("503 Service Unavailable"), True),
        (RuntimeError("a tensor of 503 rows was expected"), False),
        (FileNotFoundError("weights"), False),
        (ValueError("sevens are hard"), False),
    ],
)
def test_which_failures_pass(error: Exception, passing: bool) -> None:
    assert is_passing(error) is passing
    wrapped = RuntimeError("asking failed")
    wrapped.__cause__ = error
    assert is_passing(wrapped) is passing

"""Runs with a model on a server that fails in all the ways that servers do: nothing is lost or paid for twice."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chat_server import Asked, ChatServer, Reply, completion, failure, serving

from testbed.data.sets.digits import Digits
from testbed.db.store import Store

pytest.importorskip("openai")
PLUGIN = Path(__file__).parent.parent / "plugins" / "api_world.py"
KEY = "sk-never-to-be-seen-0123456789"
LIMIT = 20


def shown(image: Any) -> str:
    """What the server says about a picture."""
    return f"a digit, {hashlib.sha256(image.convert('RGB').tobytes()).hexdigest()[:12]}"


def describe(asked: Asked) -> Reply:
    """Right answers."""
    return Reply(completion(shown(asked.image)))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(describe) as running:
        yield running


@pytest.fixture
def evaluate(program: Any, server: ChatServer) -> Callable[..., SimpleNamespace]:
    """Runs the model of the server on settings; gives what was printed, and what the server was asked."""

    def run(*settings: str, words: Sequence[str] = (), model: str = "api:toy", **given: Any) -> SimpleNamespace:
        server.take()
        what = ("--plugin", str(PLUGIN), "--models", model, "--eval-settings", *settings, "--limit", str(LIMIT))
        variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
        done = program("eval.py", *what, "--executor", "inline", *words, **given, **variables)
        return SimpleNamespace(out=done.stdout, err=done.stderr, asked=server.take())

    return run


@pytest.fixture
def stored(server: ChatServer, tmp_path: Path) -> Callable[..., list[Any]]:
    """What is stored of a setting."""

    def read(setting: str) -> list[Any]:
        with Store.open(str(tmp_path / "testbed.db")) as store:
            (found,) = store.evaluations.find([f"api:toy@{server.url}"], [setting])
            return list(store.outputs.read(found.id, "text"))

    return read


def images() -> list[Any]:
    """The digits of a run, in order."""
    digits = Digits("test", None)
    return [digits.image(place) for place in places(len(digits))]


def places(size: int) -> list[int]:
    """The samples that ``--limit`` chooses."""
    return [number * size // LIMIT for number in range(LIMIT)]


def ids(done: SimpleNamespace) -> Counter[str]:
    """How often each picture was shown."""
    return Counter(shown(asked.image) for asked in done.asked)


def test_answers_are_stored_with_what_they_cost_and_asked_for_once(
    evaluate: Any, stored: Any, server: ChatServer
) -> None:
    plan = evaluate("said", words=["--dry-run"])
    assert "pass 1: 20 samples, each answered once, for 1 cell" in plan.out
    assert plan.asked == []
    first = evaluate("said")
    right = [shown(image) for image in images()]
    assert ids(first) == Counter(right)
    outputs = stored("said")
    assert [each["text"] for each in outputs] == right
    assert outputs[0]["extra"] == {
        "prompt_tokens": 7,
        "output_tokens": 3,
        "model": "toy-2026-11-01",
        "system_fingerprint": "fp_1",
        "request_id": "chatcmpl-1",
        "created": 1750000000,
    }
    assert f"api:toy@{server.url}: 20 requests (0 retried), 140 tokens in, 60 out" in first.err
    again = evaluate("said")
    assert again.asked == []
    assert "All results were already stored" in again.out


def test_equal_questions_of_settings_are_asked_once_and_found_after_the_evaluation_is_gone(
    evaluate: Any, stored: Any, program: Any, server: ChatServer
) -> None:
    both = evaluate("said", "said-again")
    assert len(both.asked) == LIMIT
    assert "20 answers stored already" in both.err
    assert stored("said") == stored("said-again")
    assert len(evaluate("asked").asked) == LIMIT  # other questions
    model = f"api:toy@{server.url}"
    program("db.py", "--remove-evaluation", model, "said", "--db-url", "testbed.db")
    removed = evaluate("said")
    assert removed.asked == []
    assert f"{model}: 20 answers stored already" in removed.err
    assert "1 cell: 1 complete." in removed.out
    anew = evaluate("said", "said-again", words=["--override"])
    assert len(anew.asked) == LIMIT
    other = evaluate("said", model=f"api:other@{server.url}")
    assert len(other.asked) == LIMIT


def test_sampling_has_a_seed_for_each_sample_and_many_requests_at_a_time(evaluate: Any, server: ChatServer) -> None:
    together = threading.Barrier(LIMIT, timeout=60)  # passes when so many requests are under way at the same time

    def behave(asked: Asked) -> Reply:
        together.wait()
        return describe(asked)

    server.behave = behave
    first = evaluate("drawn")
    server.behave = describe
    seeds = {shown(asked.image): asked.body["seed"] for asked in first.asked}
    assert len(set(seeds.values())) == LIMIT
    again = evaluate("drawn", words=["--override"])
    assert {shown(asked.image): asked.body["seed"] for asked in again.asked} == seeds
    other = evaluate("drawn", words=["--seed", "1"])
    assert not set(seeds.values()) & {asked.body["seed"] for asked in other.asked}


def test_a_slow_answer_does_not_keep_the_next_questions_waiting(evaluate: Any, stored: Any, server: ChatServer) -> None:
    many, lock, asked_first = threading.Event(), threading.Lock(), []

    def behave(asked: Asked) -> Reply:
        with lock:
            asked_first.append(asked)
            number = len(asked_first)
        if number == 10:
            many.set()
        waited = number > 1 or many.wait(60)  # the first answer comes when ten questions are there
        return describe(asked) if waited else failure("the next questions waited for this one", 400)

    server.behave = behave
    done = evaluate("said", words=["--batch-size", "4"])
    assert len(done.asked) == LIMIT
    assert "1 cell: 1 complete." in done.out
    assert [each["text"] for each in stored("said")] == [shown(image) for image in images()]


class Troubles:
    """What happens to some of the pictures, by number: the replies to the first questions about each."""

    def __init__(self, **replies: list[Reply]) -> None:
        known = [shown(image) for image in images()]
        self._replies = {known[int(name[1:])]: iter(each) for name, each in replies.items()}
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Reply:
        with self._lock:
            return next(self._replies.get(shown(asked.image), iter(())), None) or describe(asked)


def test_every_kind_of_failure_ends_as_it_should_and_the_next_run_asks_for_what_is_open(
    evaluate: Any, stored: Any, server: ChatServer
) -> None:
    right = [shown(image) for image in images()]
    server.behave = Troubles(
        n0=[failure("boom", 500)] * 3,  # an answer at the fourth time
        n1=[failure("slow down", 429, {"Retry-After": "0"})] * 2,
        n2=[Reply('{"choices": [{"mess')] * 100,
        n3=[failure("down", 503)] * 100,
        n4=[Reply(completion("a dig", "length"))],
        n5=[failure("unsafe", 400)],
        n6=[Reply(completion("half", "content_filter"))],
        n7=[Reply(completion(None, "other"))],
        n8=[Reply(completion("late", "stop"), seconds=0.3)],
        n9=[failure("no money", 402)],
    )
    first = evaluate("said", code=1)
    asked = ids(first)
    assert [asked[each] for each in right[:10]] == [4, 3, 7, 7, 1, 1, 1, 1, 1, 1]  # six repetitions at most
    assert all(asked[each] == 1 for each in right[10:])
    reason = "the reply of the server is not a JSON object"
    assert f"3 of 20 samples got no answer (UnreachedError: {reason}" in first.out
    assert f"{sum(asked.values())} requests ({sum(asked.values()) - LIMIT} retried)" in first.err

    server.behave = Troubles(n3=[failure("down", 503)] * 100)
    again = evaluate("said", code=1)
    assert ids(again) == Counter({right[2]: 1, right[3]: 7, right[9]: 1})  # not the refused ones
    server.behave = describe
    last = evaluate("said")
    assert ids(last) == Counter([right[3]])
    outputs = stored("said")
    texts = [each["text"] for each in outputs]
    assert texts == [*right[:4], "a dig", None, None, None, "late", *right[9:]]
    assert outputs[4]["finish_reason"] == "length"
    assert [outputs[place]["finish_reason"] for place in (5, 6, 7)] == [
        "error: RefusedError: HTTP 400: unsafe",
        "error: RefusedError: the server kept the answer back (finish_reason 'content_filter')",
        "error: RefusedError: the answer has no text (finish_reason 'other')",
    ]
    assert evaluate("said").asked == []
    told = " ".join(last.out.split())
    assert "on said: 3 of 20 refused: 1 × " in told
    assert "1 × HTTP 400: unsafe" in told


def test_a_server_that_is_gone_and_a_wrong_key_fail_the_cell_and_nothing_is_stored(
    evaluate: Any, server: ChatServer
) -> None:
    server.behave = lambda asked: failure("who are you?", 401)
    wrong = evaluate("said", code=1)
    assert 8 <= len(wrong.asked) <= LIMIT  # once each, until it is hopeless
    assert max(ids(wrong).values()) == 1
    assert "it fails on every sample: UnreachedError: HTTP 401: who are you? (the key in $OPENAI_API_" in wrong.out
    gone = evaluate("said", model="lab-model", code=1)
    assert "no connection to http://127.0.0.1:9/v1: " in gone.out
    server.behave = describe
    assert len(evaluate("said").asked) == LIMIT


def test_the_key_is_nowhere(evaluate: Any, server: ChatServer, tmp_path: Path) -> None:
    broken = [failure(f"Incorrect API key provided: {KEY}", status) for status in (500, 401, 400)]
    server.behave = Troubles(
        n0=broken[:1] * 100, n1=broken[1:2] * 100, n2=broken[2:], n3=[Reply(completion(f"Your key is {KEY}."))]
    )
    told = [evaluate("said", words=["-v", "--logdir", "logs"], code=1, traceback=True)]
    told.append(evaluate("said", words=["-v", "--logdir", "logs", "--json"], code=1, traceback=True))
    assert any(asked.headers["authorization"] == f"Bearer {KEY}" for asked in told[0].asked)
    assert "[key]" in told[0].out
    for done in told:
        assert KEY not in done.out + done.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "testbed.db" for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_password_in_a_url_is_refused_and_not_shown(evaluate: Any, server: ChatServer, tmp_path: Path) -> None:
    done = evaluate("said", model=server.url.replace("http://", "api:toy@http://me:pass-word@"), code=1)
    assert "the URL of a served model has a user or a password in it" in done.err
    assert "pass-word" not in done.out + done.err
    assert done.asked == []


@pytest.mark.parametrize("name", ["api:toy,base_url=http://me:pass-word@host", "api:http://me:pass-word@host/v1"])
def test_a_url_in_another_place_of_the_name_is_refused_and_not_shown(evaluate: Any, name: str) -> None:
    done = evaluate("said", model=name, code=1)
    assert "write api:NAME@https://host/v1" in done.err
    assert "pass-word" not in done.out + done.err


def test_without_the_package_a_run_says_how_to_get_it(
    program: Any, server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hiding = tmp_path / "hiding.py"
    hiding.write_text("import sys\nsys.modules['openai'] = None\n")
    words = ("--plugin", str(PLUGIN), "--plugin", str(hiding), "--models", f"api:toy@{server.url}")
    done = program("eval.py", *words, "--eval-settings", "said", "--limit", "2", "--executor", "inline", code=1)
    assert "asking a served model needs the package openai: pip install -e '.[api]'" in done.stdout


@pytest.mark.long
def test_workers_ask_as_well(evaluate: Any, server: ChatServer) -> None:
    done = evaluate("said", words=["--executor", "processes", "--cpu-processes", "1"])
    assert len(done.asked) == LIMIT
    assert "20 requests (0 retried)" in done.err


def test_verify_asks_again_and_compares_what_was_said(evaluate: Any, server: ChatServer) -> None:
    evaluate("said")
    server.behave = lambda asked: Reply({**describe(asked).body, "id": "chatcmpl-2", "created": 1760000000})
    same = evaluate("said", words=["--verify", "4", "--json"])
    assert len(same.asked) == 4
    assert [each["result"] for each in json.loads(same.out)["checks"]] == ["equal"]


# Judges -----------------------------------------------------------------------------------------------------------


def test_a_served_judge_is_asked_each_question_once(evaluate: Any, server: ChatServer) -> None:
    server.behave = lambda asked: Reply(completion("yes" if "7" in asked.parts[0]["text"] else "no"))
    first = evaluate("judged", model="student")
    questions = Counter(asked.parts[0]["text"] for asked in first.asked)
    assert set(questions.values()) == {1}
    assert {asked.body["model"] for asked in first.asked} == {"judge"}
    assert f"api:judge: {len(questions)} requests (0 retried)" in first.err
    assert evaluate("judged", model="student").asked == []
    assert evaluate("judged", model="student", words=["--seed", "1"]).asked == []


def test_what_a_judge_did_not_get_is_asked_by_the_next_run(evaluate: Any, server: ChatServer) -> None:
    def busy(asked: Asked) -> Reply:
        return failure("busy", 503) if "7'" in asked.parts[0]["text"] else Reply(completion("yes"))

    server.behave = busy
    first = evaluate("judged", model="student", code=1)
    lacking = {text for each in first.asked if "7'" in (text := each.parts[0]["text"])}
    assert lacking
    assert f"{len(lacking)} questions to its judge got no answer (UnreachedError: HTTP 503: busy)" in first.out
    server.behave = lambda asked: Reply(completion("yes"))
    again = evaluate("judged", model="student")
    assert {asked.parts[0]["text"] for asked in again.asked} == lacking
    assert "1 cell: 1 complete." in again.out


def test_a_judge_is_asked_as_many_questions_at_a_time_as_its_definition_says(evaluate: Any) -> None:
    plan = json.loads(evaluate("judged-by-lab", model="student", words=["--dry-run", "--json"]).out)
    assert [each["batch_size"] for each in plan["passes"] if each["reads"] == "questions"] == [4]

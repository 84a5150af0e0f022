"""Models on servers: what is sent, what comes of each reply, and how often a question is sent."""

from __future__ import annotations

import base64
import io
import itertools
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from chat_server import Asked, ChatServer, Reply, completion, failure, serving
from PIL import Image, features

from testbed.data.rows import Picture
from testbed.errors import (
    DefinitionError,
    MissingExtraError,
    RefusedError,
    SampleError,
    UnreachedError,
    UnsupportedError,
)
from testbed.models import api
from testbed.models.api import ApiFamily, ApiModel
from testbed.models.base import served
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.definition import LoadOptions
from testbed.models.base.served import Pace, retry_after
from testbed.workers.kernels.answering import is_passing

pytest.importorskip("openai")
KEY = "sk-never-to-be-seen-0123456789"
JPEG = b"\xff\xd8\xff\xe0 the bytes of a file, as they are"


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses, which take no time here."""
    taken: list[float] = []
    monkeypatch.setattr(served, "pause", taken.append)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return taken


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(lambda asked: Reply(completion("a dog"))) as running:
        yield running


def ask(
    server: ChatServer, message: Message | None = None, config: GenerationConfig | None = None, **options: Any
) -> Any:
    """What a model of the server answers: a generation, or an exception."""
    loaded = ApiModel("toy", "toy-model", server.url, **options).load(LoadOptions())
    (answer,) = loaded.generate([message or Message(["What is it?"])], config or GenerationConfig())
    return answer


# Requests ---------------------------------------------------------------------------------------------------------


def test_a_message_is_sent_with_its_history_its_pictures_and_the_options_that_are_given(server: ChatServer) -> None:
    history = [Message(["Look."]), Message(["Yes?"], role="assistant")]
    message = Message([Picture(JPEG), "What is it?", Image.new("RGB", (2, 1), "red")], sample="7", history=history)
    drawn = {"top_p": 0.8, "top_k": 20, "presence_penalty": 1.5, "seed": 2**40 + 1}
    config = GenerationConfig(64, 0.7, ("\n",), system="Be brief.", **drawn)  # type: ignore[arg-type]
    ask(server, message, config, extra_body={"chat_template_kwargs": {"enable_thinking": False}}, image_detail="low")
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    body = dict(asked.body)
    system, look, yes, last = body.pop("messages")
    assert (system, look, yes) == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "Yes?"},
    )
    jpeg, text, red = last["content"]
    assert base64.b64decode(jpeg["image_url"]["url"].removeprefix("data:image/jpeg;base64,")) == JPEG
    assert jpeg["image_url"]["detail"] == "low"
    assert text == {"type": "text", "text": "What is it?"}
    assert red["image_url"]["url"].startswith("data:image/png;base64,")
    assert Asked({"messages": [{"content": [red]}]}, {}, "").image.getpixel((1, 0)) == (255, 0, 0)
    assert body == {
        "model": "toy-model",
        "max_tokens": 64,
        "temperature": 0.7,
        "stop": ["\n"],
        "top_p": 0.8,
        "top_k": 20,
        "presence_penalty": 1.5,
        "seed": 1,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_what_is_not_given_is_not_sent_and_none_leaves_a_field_out(server: ChatServer) -> None:
    ask(server)
    ask(server, extra_body={"temperature": None, "max_tokens": None, "max_completion_tokens": 5})
    usual, other = (asked.body for asked in server.asked)
    message = {"model": "toy-model", "messages": [{"role": "user", "content": "What is it?"}]}
    assert usual == message | {"temperature": 0.0, "max_tokens": 128}
    assert other == message | {"max_completion_tokens": 5}


def test_a_server_without_a_key_is_asked_without_one(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask(server).text == "a dog"
    monkeypatch.setenv("LAB_KEY", "lab-key-1234567890")
    ask(server, key_variable="LAB_KEY")
    without, lab = (asked.headers["authorization"] for asked in server.asked)
    assert KEY not in without
    assert lab == "Bearer lab-key-1234567890"


def test_beams_are_refused(server: ChatServer) -> None:
    assert isinstance(ask(server, config=GenerationConfig(num_beams=4)), UnsupportedError)
    assert server.asked == []


# Replies ----------------------------------------------------------------------------------------------------------


def test_what_is_kept_of_an_answer(server: ChatServer) -> None:
    server.behave = lambda asked: Reply(
        completion("a d", "length", reasoning_content="Hm."), headers={"x-request-id": "req-9"}
    )
    extra = {"prompt_tokens": 7, "output_tokens": 3, "model": "toy-2026-11-01", "system_fingerprint": "fp_1"}
    extra |= {"request_id": "req-9", "created": 1750000000, "thinking": "Hm."}
    assert ask(server) == Generation("a d", "length", extra)


@pytest.mark.parametrize("reason", ["stop", "length"])
@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "reasoning": "Hm."},
        {"content": None, "reasoning_content": "Hm."},
        {"content": "", "reasoning": "Hm."},
        {"content": [], "reasoning": "Hm."},
        {"content": [{"type": "thinking", "thinking": "Hm."}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
        {"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}]},
        {"content": None, "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]},
    ],
)
def test_thoughts_alone_are_an_answer_without_a_text(server: ChatServer, message: dict[str, Any], reason: str) -> None:
    server.behave = lambda asked: Reply(completion(None, reason, **message))
    answer = ask(server)
    assert (answer.text, answer.finish_reason, answer.extra["thinking"]) == ("", reason, "Hm.")


def test_an_answer_in_parts_is_one_text(server: ChatServer) -> None:
    parts = [{"type": "thinking", "text": "Hm."}, {"type": "text", "text": "a "}, {"type": "text", "text": "dog"}]
    server.behave = lambda asked: Reply(completion(parts))  # type: ignore[arg-type]
    assert ask(server).text == "a dog"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        *(
            (Reply(completion(text, refusal="I cannot.")), "the model refused: I cannot.")
            for text in (None, "", "I cannot.")
        ),
        (Reply(completion([{"type": "refusal", "refusal": "I cannot."}])), "the model refused: I cannot."),
        *(
            (Reply(completion(text, reason)), f"the server kept the answer back (finish_reason {reason!r})")
            for text in (None, "", "half")
            for reason in (
                *("content_filter", "SAFETY", "FinishReason.RECITATION", "prohibited-content", "blocklist"),
                "ERROR_TOXIC",
            )
        ),
        *(
            (Reply(completion(text, reason)), f"the answer has no text (finish_reason {reason!r})")
            for text in (None, " ")
            for reason in ("other", "MALFORMED_RESPONSE")
        ),
        (
            Reply({"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}),
            "the reply of the server has no choices: blockReason: SAFETY",
        ),
        (
            Reply({"prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}]}),
            "the reply of the server has no choices: filtered: True",
        ),
        (
            Reply({"choices": [{"finish_reason": "SPII", "message": None}]}),
            "the server kept the answer back (finish_reason 'SPII')",
        ),
        (
            Reply(
                {"choices": [{"finish_reason": "stop", "native_finish_reason": "SAFETY", "message": {"content": ""}}]}
            ),
            "the server kept the answer back (finish_reason 'SAFETY')",
        ),
        (
            Reply({"code": "no permission", "error": "Content violates usage guidelines."}, 403),
            "HTTP 403: Content violates usage guidelines.",
        ),
        (
            failure("Your prompt was flagged; your account may be closed", 400),
            "HTTP 400: Your prompt was flagged; your account may be closed",
        ),
        (Reply({"error": {"message": "no", "code": "content_filter"}}), "the server refused: no"),
        (Reply({"error": {"message": "flagged", "metadata": {"flagged_input": "a"}}}, 403), "HTTP 403: flagged"),
        (failure("too  long\nby 7 tokens", 400, code="context_length_exceeded"), "HTTP 400: too long by 7 tokens"),
        (failure("rate limit of images: 503 a message", 422), "HTTP 422: rate limit of images: 503 a message"),
        (Reply({"error": {"message": "bad image", "code": 400}}), "HTTP 400: bad image"),
    ],
)
def test_a_refusal_is_final_and_asked_once(server: ChatServer, reply: Reply, said: str) -> None:
    server.behave = lambda asked: reply
    error = ask(server)
    assert isinstance(error, RefusedError)
    assert str(error) == said
    assert not is_passing(error)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "said", "times"),
    [
        (failure("boom", 500), "HTTP 500: boom", 4),
        (Reply("<html>Bad\nGateway</html>", 502), "HTTP 502: <html>Bad Gateway</html>", 4),
        (failure("slow down", 429), "HTTP 429: slow down", 4),
        (failure("busy", 503), "HTTP 503: busy", 4),
        (Reply('{"choices": [', 200), "the reply of the server is not a JSON object: '{\"choices\": ['", 4),
        (Reply("null", 200), "the reply of the server is not a JSON object: 'null'", 4),
        (Reply({"error": {"message": "overloaded", "code": 503}}), "HTTP 503: overloaded", 4),
        (Reply({"choices": []}), "the reply of the server has no choices", 4),
        (Reply({"choices": [{}]}), "the reply of the server has no message", 4),
        (Reply({"object": "else"}), "the reply of the server has no choices", 4),
        (Reply({"detail": "warming up"}), "the reply of the server has no choices: warming up", 4),
        (
            Reply({"code": 50505, "message": "Model service overloaded.", "data": None}),
            "the reply of the server has no choices: code 50505: Model service overloaded.",
            4,
        ),
        (
            Reply({"error_code": 18, "error_msg": "qps limit"}),
            "the reply of the server has no choices: code 18: qps limit",
            4,
        ),
        *(
            (Reply(completion("half", reason)), f"the server broke the answer off (finish_reason {reason!r})", 4)
            for reason in (
                *("error", "abort", "network_error", "insufficient_system_resource", "Cancelled", "timeout"),
                *("incomplete", "preempted", "connection_lost", "engine shutdown", "FinishReason.PRE_EMPTED"),
                *("pause_turn", "load", "unload"),
            )
        ),
        (
            Reply({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "upstream is gone"}}]}),
            "HTTP 502: upstream is gone",
            4,
        ),
        (Reply({**completion("half"), "error": {"message": "stream lost"}}), "HTTP 500: stream lost", 4),
        (failure("pay first", 429, code="insufficient_quota"), "HTTP 429: pay first", 1),
        (failure("no such model", 404), "HTTP 404: no such model", 1),
        *(
            (failure(told, 400), f"HTTP 400: {told}", 1)
            for told in (
                "Your credit balance is too low to access the API.",
                "API key not valid. Please pass a valid API key.",
                "Budget has been exceeded!",
                "User location is not supported for the API use.",
                "Access denied, please make sure your account is in good standing.",
            )
        ),
        (failure("who?", 401), "HTTP 401: who? (the key in $OPENAI_API_KEY is not accepted)", 1),
    ],
)
def test_what_says_nothing_about_the_question_leaves_it_open_after_a_few_times(
    server: ChatServer, reply: Reply, said: str, times: int
) -> None:
    server.behave = lambda asked: reply
    error = ask(server, retries=3)
    assert isinstance(error, UnreachedError)
    assert str(error) == said
    assert len(server.asked) == times


def test_a_server_that_is_slow_or_gone_leaves_it_open(server: ChatServer) -> None:
    server.behave = lambda asked: Reply(completion("late"), seconds=0.6)
    error = ask(server, timeout=0.2, retries=1)
    assert isinstance(error, UnreachedError)
    assert str(error) == "no answer within 0.2 s"
    assert len(server.asked) == 2
    server.close()
    error = ask(server, retries=1)
    assert isinstance(error, UnreachedError)
    assert str(error).startswith(f"no connection to {server.url}: ")


def test_a_question_is_sent_again_until_there_is_an_answer(server: ChatServer, pauses: list[float]) -> None:
    replies = iter([failure("boom", 500), Reply("{"), failure("boom", 500), Reply(completion("a dog"))])
    server.behave = lambda asked: next(replies)
    model = ApiModel("toy", "toy-model", server.url).load(LoadOptions())
    (answer,) = model.generate([Message(["?"])], GenerationConfig())
    assert answer.text == "a dog"
    waits = [each for each in pauses if each > 0]
    assert len(waits) == 3
    assert all(2**number / 2 <= wait <= 2**number for number, wait in enumerate(waits))
    assert model.generator.usage.take() == "4 requests (3 retried), 7 tokens in, 3 out"
    assert model.generator.usage.take() == ""


# Limits -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> Iterator[list[float]]:
    """A clock that only pauses move; gives the moments at which requests begin."""
    moment = itertools.accumulate(iter(lambda: 0.0, None))
    state = {"now": next(moment) + 100.0}
    monkeypatch.setattr(served.time, "monotonic", lambda: state["now"])
    monkeypatch.setattr(served, "pause", lambda seconds: state.update(now=state["now"] + max(seconds, 0.0)))
    begun: list[float] = []
    yield begun
    begun.clear()


def test_a_rate_holds_for_all_threads_together(clock: list[float]) -> None:
    pace = Pace(per_minute=30)
    for _ in range(4):
        pace.wait()
        clock.append(served.time.monotonic())
    assert clock == [100.0, 102.0, 104.0, 106.0]
    pace.hold(60)
    pace.wait()
    assert served.time.monotonic() == 166.0


@pytest.mark.parametrize("asked_by", ["seconds", "date"])
def test_the_wait_that_a_server_asks_for_is_kept(server: ChatServer, pauses: list[float], asked_by: str) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    busy = failure("slow down", 429, {"Retry-After": "40" if asked_by == "seconds" else date})
    replies = iter([busy, Reply(completion("a dog"))])
    server.behave = lambda asked: next(replies)
    assert ask(server).text == "a dog"
    (wait,) = [each for each in pauses if each > 0]
    assert 35 < wait <= 40


def test_a_server_that_asks_for_an_hour_is_not_asked_again(server: ChatServer) -> None:
    server.behave = lambda asked: failure("slow down", 429, {"Retry-After": "3600"})
    error = ask(server)
    assert isinstance(error, UnreachedError)
    assert str(error) == "HTTP 429: slow down; it asks to wait 3,600 s"
    assert len(server.asked) == 1


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_other_words_ask_for_no_wait(value: str) -> None:
    assert retry_after({"retry-after": value}) == 0


# The key ----------------------------------------------------------------------------------------------------------


def test_a_key_that_the_server_repeats_is_hidden(server: ChatServer) -> None:
    server.behave = lambda asked: failure(f"Incorrect key {KEY}", 400)
    assert str(ask(server)) == "HTTP 400: Incorrect key [key]"
    server.behave = lambda asked: Reply(completion(f"You sent {KEY}."))
    assert ask(server).text == "You sent [key]."
    loaded = ApiModel("toy", "toy-model", server.url).load(LoadOptions())
    assert KEY not in repr(loaded.generator.service)


def test_a_word_as_a_key_may_be_said(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    server.behave = lambda asked: Reply(completion("EMPTY"))
    assert ask(server).text == "EMPTY"


# Names ------------------------------------------------------------------------------------------------------------


def test_a_name_holds_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    canonical = ApiFamily().canonical
    assert canonical("api:gpt-4o-mini") == "api:gpt-4o-mini@https://api.openai.com/v1"
    assert canonical("api:a/b:8b@http://host:8000/v1/") == "api:a/b:8b@http://host:8000/v1"
    assert canonical("api:m@http://host/v1/chat/completions") == "api:m@http://host/v1"
    assert canonical("api:@cf/meta@https://host/v1") == "api:@cf/meta@https://host/v1"
    assert canonical("api:") is None
    assert canonical("gpt-4o-mini") is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://lab/v1")
    assert canonical("api:m") == "api:m@http://lab/v1"
    assert canonical("api:m@https://api.openai.com/v1") == "api:m@https://api.openai.com/v1"


@pytest.mark.parametrize(
    "url",
    ["http://me:pass-word@host/v1", "http://me@host/v1", "https://host/v1?key=pass-word", "https:///v1", "http:x"],
)
def test_a_url_with_a_secret_or_without_a_host_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        ApiFamily().canonical(f"api:m@{url}")
    assert "pass-word" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "gpt,url=https//me:pass-word@host/v1",
        "gpt@https//me:pass-word@host/v1",
        "gpt,base_url=https:me:pass-word@host.org/",
    ],
)
def test_a_url_that_is_not_one_is_no_part_of_a_models_name(name: str) -> None:
    with pytest.raises(DefinitionError, match=r"write api:NAME@https://host/v1") as refused:
        ApiFamily().canonical(f"api:{name}")
    assert "pass-word" not in str(refused.value)


def test_what_is_part_of_the_identity() -> None:
    def identity(**options: Any) -> Any:
        model = ApiModel("x", "toy", **options)
        weights = model.weights()
        assert weights is not None
        return model.spec()["generator"], weights.id

    usual = identity()
    assert usual == identity(eval_batch_size=4, retries=1, timeout=5, requests_per_minute=3, key_variable="LAB_KEY")
    assert usual != identity(url="http://lab/v1")
    assert usual != identity(extra_body={"top_k": 1})
    assert usual != identity(image_detail="low")
    assert identity(weights="v1") == identity(weights="v1", url="http://lab/v1")


@pytest.mark.parametrize("options", [{"timeout": 0}, {"requests_per_minute": -1}, {"retries": -1}, {"url": "lab"}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        ApiModel("x", "toy", **options)


def test_without_the_package_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    model = api.ApiModel("x", "toy")  # can be defined, and its stored results be scored
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[api\]'"):
        model.load(LoadOptions())


@pytest.mark.parametrize("reason", ["stop", "eos", "end_turn", "FinishReason.STOP", "stop_sequence", None, ""])
@pytest.mark.parametrize("text", ["", None])
def test_no_text_at_a_usual_end_is_a_blank_answer(server: ChatServer, text: str | None, reason: str | None) -> None:
    server.behave = lambda asked: Reply(completion(text, reason))
    found = ask(server)
    assert (found.text, found.finish_reason) == ("", "stop")


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "FinishReason.MAX_TOKENS", "token limit", "max-output-tokens"])
def test_an_answer_that_reached_a_limit_is_cut_off_however_that_is_spelt(server: ChatServer, reason: str) -> None:
    server.behave = lambda asked: Reply(completion("half", reason))
    assert ask(server).finish_reason == "length"


def test_a_byte_order_mark_and_raw_line_breaks_do_no_harm(server: ChatServer) -> None:
    raw = json.dumps(completion("one|two")).replace("|", "\n")
    server.behave = lambda asked: Reply("\ufeff" + raw)
    assert ask(server).text == "one\ntwo"


@pytest.mark.parametrize("form", ["PPM", "BMP", "TIFF", "AVIF"])
def test_a_picture_in_a_format_that_not_every_server_reads_is_sent_as_png(server: ChatServer, form: str) -> None:
    if not features.check("avif") and form == "AVIF":
        pytest.skip("this Pillow has no AVIF")
    file = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(file, form)
    ask(server, Message([Picture(file.getvalue(), "x"), "What is it?"]))
    part = server.asked[0].parts[0]["image_url"]["url"]
    kind, _, data = part.partition(";base64,")
    assert kind == "data:image/png"
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        assert image.size == (4, 3)
        if form != "AVIF":
            assert image.convert("RGB").getpixel((0, 0)) == (255, 0, 0)


def test_a_picture_that_cannot_be_read_is_not_sent_and_says_why(server: ChatServer) -> None:
    file = io.BytesIO()
    Image.new("F", (4, 3)).save(file, "TIFF")
    error = ask(server, Message([Picture(file.getvalue(), "f.tif"), "What is it?"]))
    assert isinstance(error, SampleError)
    assert "f.tif is not decoded: its pixels are floats" in str(error)
    assert not server.asked

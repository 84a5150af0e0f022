"""What servers of models reply."""

from __future__ import annotations

from typing import Any

from fuzzing import damaged_json, fuzzed, mangled, odd_values, robust
from hypothesis import given
from hypothesis import strategies as st

from testbed.db.payloads import encoding
from testbed.errors import RefusedError, UnreachedError
from testbed.models.base.chat import generation_of, reply_of, said, tokens
from testbed.models.base.served import retry_after

REPLIES: tuple[Any, ...] = (
    {
        "id": "chatcmpl-1",
        "created": 1_700_000_000,
        "model": "x",
        "system_fingerprint": "fp_1",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a cat", "refusal": None}}
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    },
    {"choices": [{"finish_reason": "length", "message": {"content": [{"type": "text", "text": "a"}]}}]},
    {"choices": [{"finish_reason": "content_filter", "message": {"content": None}}]},
    {"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "I will not"}}]},
    {"error": {"message": "too long", "type": "invalid_request_error", "code": "400"}},
    {"error": "overloaded", "choices": []},
)


@fuzzed()
@given(content=damaged_json(*REPLIES), request_id=st.none() | st.text(max_size=5))
def test_replies(content: bytes, request_id: str | None) -> None:
    with robust(errors=(RefusedError, UnreachedError)):
        reply = reply_of(content.decode("utf-8", "replace"))
        assert all(isinstance(each, int) for each in tokens(reply))
        found = generation_of(reply, request_id)
        assert found.finish_reason in ("stop", "length")
        encoding.encode([{"text": found.text, "extra": found.extra}])  # as it is stored


@fuzzed()
@given(error=odd_values({"message": "no"}, {"detail": ["x"]}, {"error": {"message": "y"}}, "z", None))
def test_errors(error: Any) -> None:
    with robust():
        assert 0 < len(said(error)) <= 300


@fuzzed()
@given(value=mangled("3", "0.5", "Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 -2300", "-1", "1e9"))
def test_times_to_wait(value: str) -> None:
    with robust():
        assert retry_after({"retry-after": value}) >= 0

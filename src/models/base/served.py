"""Asks a server that is compatible with OpenAI's: sends, retries and counts questions."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from testbed.errors import MissingExtraError, RefusedError, TestbedError, UnreachedError
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.chat import fault, generation_of, reply_of, request_of, said, tokens

OPENAI = "https://api.openai.com/v1"
AGAIN = frozenset({408, 409, 425, 429})  # besides 500 and above: statuses after which a question is sent again
OUT_OF_MONEY = "insufficient_quota"  # a 429 that waiting does not help
FIRST_WAIT = 1.0  # seconds before the first repetition, doubled each time
LONGEST_WAIT = 60.0
LONGEST_ASKED = 300.0  # the longest wait that a server may ask for by Retry-After; above it, the question is left open
CONNECT_SECONDS = 10.0
SECRET = 8  # characters that a key has at least; shorter ones, such as "EMPTY", are words that answers may have
HIDDEN = "[key]"


@dataclass(frozen=True)
class Service:
    """A model on a server.

    Attributes:
        served: Its name there.
        url: The server, up to ``/v1``.
        key: Sent with each request; empty for a server without keys.
        key_variable: The source of the key, for messages.
        requests_per_minute: The maximum; None for no limit.
        timeout: Seconds until an answer must have begun, and between its parts.
        retries: The number of times that a question is sent again.
        extra_body: Fields of requests, which replace usual ones; None leaves one out.
        image_detail: OpenAI's ``detail`` of images.
    """

    served: str
    url: str
    key: str = field(default="", repr=False)
    key_variable: str = "OPENAI_API_KEY"
    requests_per_minute: float | None = None
    timeout: float = 600.0
    retries: int = 6
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    image_detail: str | None = None


class Pace:
    """Spaces the requests of all threads together: at most so many in a minute; None for no limit."""

    def __init__(self, per_minute: float | None = None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Waits for the turn of a request."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = max(self._next, turn + self._gap)
        pause(turn - now)

    def hold(self, seconds: float) -> None:
        """Blocks new requests for some time."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


class Usage:
    """Requests and their cost since the last report."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("requests", "retries", "read", "written"), 0)

    def add(self, **counts: int) -> None:
        """Counts requests, retries, and tokens read and written."""
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def take(self) -> str:
        """Returns the counts for people, and resets them; empty if nothing was asked."""
        with self._lock:
            now, self._counts = self._counts, dict.fromkeys(self._counts, 0)
        if not now["requests"]:
            return ""
        return (
            f"{now['requests']:,} request{'' if now['requests'] == 1 else 's'} ({now['retries']:,} retried),"
            f" {now['read']:,} tokens in, {now['written']:,} out"
        )


class Served:
    """Answers from a server.

    Raises:
        MissingExtraError: If the package openai is not installed.
    """

    def __init__(self, service: Service) -> None:
        try:
            import openai
        except ImportError:
            raise MissingExtraError("openai", "api", "asking a served model") from None
        self.service = service
        self.usage = Usage()
        self._pace = Pace(service.requests_per_minute)
        timeout = openai.Timeout(service.timeout, connect=min(service.timeout, CONNECT_SECONDS))
        self._client = openai.OpenAI(
            api_key=service.key or "none", base_url=service.url, timeout=timeout, max_retries=0
        )

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation | Exception]:
        """The answer to each message, or the error in its place."""
        return [self._answer(message, config) for message in messages]

    def _answer(self, message: Message, config: GenerationConfig) -> Generation | Exception:
        service = self.service
        limit = "max_completion_tokens" if service.url == OPENAI else "max_tokens"  # OpenAI's newer models refuse it
        try:
            body = request_of(message, config, limit, service.image_detail) | dict(service.extra_body)
            return self._ask({name: value for name, value in body.items() if value is not None})
        except TestbedError as error:
            return error

    def _ask(self, body: Mapping[str, Any]) -> Generation:
        """Sends a question until there is an answer, or no prospect of one."""
        attempt = 0
        while True:
            self._pace.wait()
            self.usage.add(requests=1, retries=attempt > 0)
            try:
                return self._send(body)
            except _PassingError as error:
                if attempt >= self.service.retries or error.wait > LONGEST_ASKED:
                    raise UnreachedError(str(error)) from None
                waits = error.wait
            if waits:
                self._pace.hold(waits)
            else:
                pause(_backoff(attempt))
            attempt += 1

    def _send(self, body: Mapping[str, Any]) -> Generation:
        """Sends one request.

        Raises:
            _PassingError: If sending it again may help.
            RefusedError: If there is no answer to this question.
            UnreachedError: If none is available now.
        """
        import openai

        rest = {name: value for name, value in body.items() if name != "messages"}
        try:
            raw = self._client.chat.completions.with_raw_response.create(
                model=self.service.served, messages=body["messages"], extra_body=rest
            )
            text, request_id = self._hidden(raw.text), raw.headers.get("x-request-id")
        except openai.APIStatusError as error:
            raise self._status_fault(error) from None
        except openai.APITimeoutError:
            raise _PassingError(f"no answer within {self.service.timeout:g} s") from None
        except openai.APIConnectionError as error:
            why = self._hidden(said(error.__cause__ or error))
            raise _PassingError(f"no connection to {self.service.url}: {why}") from None
        try:
            reply = reply_of(text)
            read, written = tokens(reply)
            self.usage.add(read=read, written=written)
            return generation_of(reply, request_id)
        except UnreachedError as error:
            raise _PassingError(str(error)) from None

    def _status_fault(self, error: Any) -> TestbedError | _PassingError:
        """Returns the error that an HTTP status means for a question."""
        body = error.body if error.body is not None else error.message
        told = fault(error.status_code, self._hidden(said(body)), body)
        if isinstance(told, RefusedError):
            return told
        text = str(told)
        if error.status_code == 401:
            state = "is not accepted" if self.service.key else "is not set"
            text += f" (the key in ${self.service.key_variable} {state})"
        passing = error.status_code in AGAIN or error.status_code >= 500
        if not passing or getattr(error, "code", None) == OUT_OF_MONEY:
            return UnreachedError(text)
        return _PassingError(text, retry_after(error.response.headers))

    def _hidden(self, text: str) -> str:
        """Removes the key from a text, should the server have repeated it."""
        key = self.service.key
        return text.replace(key, HIDDEN) if len(key) >= SECRET else text


class _PassingError(Exception):
    """A failure after which a question is sent again, after the seconds that the server asks for."""

    def __init__(self, text: str, wait: float = 0.0) -> None:
        super().__init__(f"{text}; it asks to wait {wait:,.0f} s" if wait > LONGEST_ASKED else text)
        self.wait = wait


def retry_after(headers: Mapping[str, str]) -> float:
    """The seconds that a server asks to wait, in seconds or as an HTTP date (RFC 9110); 0 if it does not."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def _backoff(attempt: int) -> float:
    """Returns the seconds before a retry: doubled each time, less up to a half, so that threads do not coincide."""
    return float(min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) * random.uniform(0.5, 1.0))  # no number depends on it


def pause(seconds: float) -> None:
    """Waits."""
    if seconds > 0:
        time.sleep(seconds)

"""Served models: any server that is compatible with OpenAI's chat completions (vLLM, SGLang, Ollama, OpenAI, …).

``api:gpt-4o-mini`` is a model of OpenAI, or of the server ``$OPENAI_BASE_URL`` (or ``$OPENAI_API_BASE``);
``api:NAME@https://host/v1`` is a model of another server. The key is that of the variable ``OPENAI_API_KEY``; a server
may do without. A lab names its own:

    registry.add_model(ApiModel("our-judge", "Qwen/Qwen3-VL-8B-Instruct", "http://gpu7:8000/v1", weights="2026-10"))
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from testbed.errors import DefinitionError, WeightsError
from testbed.models.base.capability import NETWORK
from testbed.models.base.generator import Generator
from testbed.models.base.served import OPENAI, Served, Service
from testbed.redaction import redacted
from testbed.registry import registry

PREFIX = "api:"
BASE_URLS = ("OPENAI_BASE_URL", "OPENAI_API_BASE")  # the first that is set; the second is VLMEvalKit's
KEY = "OPENAI_API_KEY"
EVAL_BATCH_SIZE = 32
REVISION = 1  # of what is sent; raised when the same message becomes another request
COMPLETIONS = "/chat/completions"


class ApiModel(Generator):
    """A model on a server that is compatible with OpenAI's chat completions.

    Args:
        name: Unique in the registry.
        served: Its name on the server.
        url: The server, up to ``/v1``.
        key_variable: The environment variable with the key, which is read when the model is asked and kept nowhere.
        eval_batch_size: The number of simultaneous requests.
        requests_per_minute: The maximum for this model in this run; None for no limit.
        timeout: Seconds until an answer must have begun, and between its parts.
        retries: The number of times that a question is sent again after a failure.
        extra_body: Fields of requests besides the usual ones, or in their place; None leaves one out, as
            ``{"temperature": None}`` for models that take no temperature.
        image_detail: OpenAI's ``detail`` of images: ``"low"``, ``"high"`` or ``"auto"``.
        **options: See `ModelDefinition`. ``weights`` is your own name of what is served; without it, the server's URL
            is a part of the identity, so that the same model elsewhere is asked again.

    Raises:
        DefinitionError: If the URL is invalid, or has a password in it.
    """

    resource = NETWORK
    costs_money = True
    by_content = True

    def __init__(
        self,
        name: str,
        served: str,
        url: str = OPENAI,
        key_variable: str = KEY,
        eval_batch_size: int = EVAL_BATCH_SIZE,
        requests_per_minute: float | None = None,
        timeout: float = 600.0,
        retries: int = 6,
        extra_body: Mapping[str, Any] | None = None,
        image_detail: str | None = None,
        **options: Any,
    ) -> None:
        url = checked_url(url)
        for what, value in (("timeout", timeout), ("requests_per_minute", requests_per_minute)):
            if value is not None and not value > 0:
                raise DefinitionError(f"model {name!r}: {what} must be above 0, got {value!r}")
        if retries < 0:
            raise DefinitionError(f"model {name!r}: retries must be at least 0, got {retries!r}")
        self.service = Service(
            served, url, "", key_variable, requests_per_minute, timeout, retries, dict(extra_body or {}), image_detail
        )
        asked = {"extra_body": self.service.extra_body, "image_detail": image_detail}
        options.setdefault("weights", f"{served}@{url}")
        options["architecture"] = {"api": REVISION, "served": served} | {k: v for k, v in asked.items() if v}
        super().__init__(name, self._served, eval_batch_size, **options)

    def _served(self) -> Served:
        key = os.environ.get(self.service.key_variable, "").strip()
        return Served(replace(self.service, key=key))

    def make_random_network(self, seed: int) -> Any:
        """Raises WeightsError: a server's models are trained."""
        raise WeightsError(f"{self.name}: a served model has no random weights; leave out --random-weights")


def checked_url(url: str) -> str:
    """Returns the URL of a server as it is stored: without a slash at its end, and without the name of the function.

    Raises:
        DefinitionError: If it is not a URL, or has a user, a password, a query or a fragment in it.
    """
    try:
        parts = urlsplit(url)
        secret = parts.username is not None or parts.password is not None or "@" in parts.netloc
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        secret, sound = False, False
    if "@" in url or secret:  # not even a wrong one is shown
        raise DefinitionError(
            "the URL of a served model has a user or a password in it, which would be stored; leave them out and set"
            f" the variable {KEY}"
        )
    if not sound or parts.query or parts.fragment:
        shown = url.partition("?")[0]
        raise DefinitionError(
            f"the URL of a served model begins with http:// or https://, ends before any '?' and is something like"
            f" https://host/v1; got {shown!r}"
        )
    return url.rstrip("/").removesuffix(COMPLETIONS).rstrip("/")


class ApiFamily:
    """Every model of every server."""

    name = "api"

    def names(self) -> Iterable[str]:
        """Lists none: only the servers have the names."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The name with the server."""
        served, url = _parts(name)
        if "//" in served or redacted(served) != served:
            raise DefinitionError(
                "the name of a served model has a URL in it that is not at its end, after an @; write"
                " api:NAME@https://host/v1"
            )
        return f"{PREFIX}{served}@{checked_url(url or usual_url())}" if served else None

    def explain(self, name: str) -> str | None:
        """Explains how to write such a name."""
        return "a served model is api:NAME or api:NAME@https://host/v1" if name.startswith(PREFIX) else None

    def build(self, name: str) -> ApiModel:
        """The definition; no server is asked."""
        served, url = _parts(name)
        return ApiModel(name, served, url or usual_url())


def usual_url(*variables: str) -> str:
    """The server that is meant where none is named: that of these variables or `BASE_URLS`, or OpenAI's."""
    named = (os.environ.get(each, "").strip() for each in (*variables, *BASE_URLS))
    return next(filter(None, named), OPENAI)


def _parts(name: str) -> tuple[str, str]:
    """The name of a model on its server, and the URL of that; empty where there is none."""
    found = re.fullmatch(re.escape(PREFIX) + r"(?P<served>.+?)(?:@(?P<url>https?:.*))?", name)
    return (found["served"], found["url"] or "") if found else ("", "")


registry.add_model_family(ApiFamily())

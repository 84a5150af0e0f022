"""One function makes a reason out of any error."""

from __future__ import annotations

import pytest

from testbed.calls import first_line, reason_of
from testbed.errors import LONGEST, TestbedError, message_of, within
from testbed.planning.opening import attempt


class WithoutWordsError(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


class OddError(Exception):
    """Says something else than a text."""

    def __str__(self) -> str:
        return 3  # type: ignore[return-value]


@pytest.mark.parametrize("error", [WithoutWordsError(), OddError()])
def test_an_error_that_cannot_say_what_it_is_is_named_by_its_type(error: Exception) -> None:
    name = type(error).__name__
    assert (message_of(error), first_line(error), reason_of(error)) == ("", name, name)

    def fails() -> None:
        raise error

    assert attempt(fails) == name


@pytest.mark.parametrize("text", ["x" * 5_000_000, "a\n" + "y" * 10_000, "z" * 10_000 + "\nb"])
def test_a_long_message_is_given_by_its_beginning_and_its_end(text: str) -> None:
    for said in (message_of(ValueError(text)), str(TestbedError(text)), within(text)):
        assert len(said) <= LONGEST
        assert said.startswith(text[:1000])
        assert said.endswith(text[-500:])
        assert f"{len(text):,} characters" in said
    assert len(reason_of(ValueError(text))) <= LONGEST
    assert reason_of(ValueError(text)).startswith("ValueError: ")


def test_a_short_message_stays_as_it_is() -> None:
    assert str(TestbedError("a\nb")) == "a\nb"
    assert reason_of(ValueError("a\nb")) == "ValueError: a"

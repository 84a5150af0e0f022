"""The names of models that are made of others: one grammar, by which they are taken apart and put together.

    ensemble:A+B[+C…]  ensemble.logits:A+B  ensemble.ranks:A+B  soup:A+B  wiseft:A,B,WEIGHT
    A@temperature=SETTING  A@prior=em  A@prior=oracle  A@prior=SETTING  soup:A+B+C@@greedy=SETTING

What follows an ``@`` belongs to the one name before it, and what follows ``@@`` to all of a name with members.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from testbed.registry.table import natural_key

ENSEMBLE, ENSEMBLE_LOGITS, ENSEMBLE_RANKS = "ensemble", "ensemble.logits", "ensemble.ranks"
SOUP, WISEFT = "soup", "wiseft"
TEMPERATURE, PRIOR, GREEDY = "temperature", "prior", "greedy"
EM, ORACLE = "em", "oracle"
_LISTS = (ENSEMBLE, ENSEMBLE_LOGITS, ENSEMBLE_RANKS, SOUP, WISEFT)
_LIST = re.compile(f"({'|'.join(map(re.escape, _LISTS))}):")
_CORRECTED = re.compile(f"@({TEMPERATURE}|{PRIOR}|{GREEDY})=")
_MARK = "@"

Known = Callable[[str], str | None]  # the canonical form of a name; None if it is unknown


class NotMadeError(Exception):
    """A name looks like a derived model's but is invalid; the message gives the reason."""


@dataclass(frozen=True)
class Made:
    """A parsed name.

    Attributes:
        how: Its prefix, or its correction.
        of: The canonical names of the models that it is made of.
        value: The weight of the second model; the setting that a temperature is fitted on, whose labels a prior is
            counted from, or by which members of a soup are kept; or ``em`` or ``oracle``.
    """

    how: str
    of: tuple[str, ...]
    value: str = ""

    def __str__(self) -> str:
        if self.how == WISEFT:
            return f"{self.how}:{','.join((*self.of, self.value))}"
        if self.how in _LISTS:
            return f"{self.how}:{'+'.join(self.of)}"
        mark = 2 * _MARK if _LIST.match(self.of[0]) else _MARK
        return f"{self.of[0]}{mark}{self.how}={self.value}"


def looks_made(name: str) -> bool:
    """Checks whether a name has a mark of this grammar."""
    return _LIST.match(name) is not None or _CORRECTED.search(name) is not None


def marked(name: str) -> bool:
    """Checks whether a name ends like a correction, maybe with another word, such as ``@temprature=val``."""
    return re.search(f"{_MARK}[^{_MARK}=]*=[^{_MARK}=]*$", name) is not None


def with_members(name: str, written: Callable[[str], str]) -> str:
    """An ensemble or a soup with its members in canonical order, as far as the names alone determine it.

    Args:
        name: Any word.
        written: The way to write a member.
    """
    match, before, whole, after = _LIST.match(name), *name.partition(2 * _MARK)
    if match is None or match[1] == WISEFT or _MARK in before:
        return name
    members = sorted(map(written, before[match.end() :].split("+")), key=natural_key)
    return f"{match[0]}{'+'.join(members)}{whole}{after}"


def parse(name: str, model: Known, setting: Known) -> Made:
    """Parses a name, with canonical names.

    Args:
        name: One that `looks_made`.
        model: Looks up models.
        setting: Looks up settings.

    Raises:
        NotMadeError: If it is not one of these.
    """
    how, colon, of = name.partition(":")
    if _LIST.match(name) is None or 2 * _MARK in name:
        return _corrected(name, model, setting)
    assert colon
    return _between(of, model) if how == WISEFT else _members(how, of, model)


def made_in(name: str, model: Known, setting: Known) -> Iterator[Made]:
    """Yields a name's parse (see `parse`), after those of the names in it; nothing for a model that is not derived."""
    try:
        made = parse(name, model, setting) if looks_made(name) else None
    except NotMadeError:  # a definition's own name
        return
    if made is not None:
        for part in made.of:
            yield from made_in(part, model, setting)
        yield made


def _corrected(name: str, model: Known, setting: Known) -> Made:
    base, _, correction = name.rpartition(_MARK)
    how, _, value = correction.partition("=")
    base = base.removesuffix(_MARK)
    if how not in (TEMPERATURE, PRIOR, GREEDY):
        raise NotMadeError(
            "after @ comes temperature=SETTING, prior=em, prior=oracle, prior=SETTING or, after a soup,"
            f" @greedy=SETTING; got {correction!r}"
        )
    known = model(base)
    if known is None:
        if looks_made(base):
            parse(base, model, setting)  # reports what is wrong with it
        raise NotMadeError(f"there is no model {base!r}")
    if how == GREEDY and not (looks_made(known) and parse(known, model, setting).how == SOUP):
        raise NotMadeError(f"{GREEDY}= keeps some members of a soup, as in soup:A+B+C@@greedy=SETTING; got {base!r}")
    if how == PRIOR and value in (EM, ORACLE):
        return Made(how, (known,), value)
    canonical = setting(value)
    if canonical is None and how == PRIOR:
        raise NotMadeError(
            f"the prior is {EM}, estimated without labels, {ORACLE}, from the labels, or an eval setting whose labels"
            f" are counted; got {value!r}"
        )
    if canonical is None:
        what = "fit a temperature on" if how == TEMPERATURE else "choose members by"
        raise NotMadeError(f"there is no eval setting {value!r} to {what}; testbed list settings")
    return Made(how, (known,), canonical)


def _members(how: str, text: str, model: Known) -> Made:
    """The members of an ensemble or a soup, in the order of their names, since their order makes no difference."""
    pieces = text.split("+")

    def after(start: int) -> tuple[str, ...] | None:
        if start == len(pieces):
            return ()
        for stop in range(start + 1, len(pieces) + 1):  # a path may have a plus
            if (name := model("+".join(pieces[start:stop]))) is not None and (rest := after(stop)) is not None:
                return (name, *rest)
        return None

    members = after(0)
    if members is None:
        unknown = next((piece for piece in pieces if model(piece) is None), text)
        if f"{_MARK}{GREEDY}=" in unknown:
            raise NotMadeError(f"{GREEDY}= is about the whole soup: write @@{GREEDY}=SETTING after its last member")
        raise NotMadeError(f"there is no model {unknown!r}; {how}:A+B has names of models with + between them")
    if len(members) < 2:
        raise NotMadeError(f"{how}:A+B takes two models or more; got {len(members)}")
    if len(set(members)) < len(members):
        twice = next(name for name in members if members.count(name) > 1)
        raise NotMadeError(f"it names {twice} twice")
    return Made(how, tuple(sorted(members, key=natural_key)))


def _between(text: str, model: Known) -> Made:
    """Splits two models and a weight; names may have commas."""
    names, _, weight = text.rpartition(",")
    pieces = names.split(",")
    cuts = ((",".join(pieces[:cut]), ",".join(pieces[cut:])) for cut in range(1, len(pieces)))
    both = next(((model(one), model(other)) for one, other in cuts if model(one) and model(other)), (None, None))
    if both[0] is None or both[1] is None:
        raise NotMadeError(f"wiseft:A,B,0.5 takes two models and the weight of the second; got {text!r}")
    if both[0] == both[1]:
        raise NotMadeError(f"it names {both[0]} twice")
    if re.fullmatch(r"\d*\.?\d+", weight) is None or not 0 <= float(weight) <= 1:
        raise NotMadeError(f"the weight of the second model is between 0 and 1, as in wiseft:A,B,0.5; got {weight!r}")
    return Made(WISEFT, (both[0], both[1]), f"{float(weight):.12g}")

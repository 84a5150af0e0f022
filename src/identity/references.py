"""Finds what code refers to, from its instructions: variables, the attributes taken from them, imports."""

from __future__ import annotations

import dis
import types
from functools import lru_cache
from typing import NamedTuple

# A class body reads the first for its __module__; none of them decides a number, and some depend on where a file lies.
_BOOKKEEPING = frozenset(
    """
    __name__ __qualname__ __module__ __doc__ __package__ __spec__ __loader__ __builtins__ __annotations__ __annotate__
    __conditional_annotations__
    """.split()
)
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_ENCLOSED = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_KEPT = 4096  # what methods refer to is asked for again by each definition that uses their class

Chain = tuple[str, ...]


class References(NamedTuple):
    """The references of a code object and of the functions within it.

    Attributes:
        global_: Each variable of the module, with the attributes taken from it: ``("helper", "K")``, or ``("helper",)``
            where it is used as it is.
        enclosed: The same for the variables of functions around the code.
        imports: The modules that are imported.
    """

    global_: frozenset[Chain]
    enclosed: frozenset[Chain]
    imports: frozenset[str]


@lru_cache(maxsize=_KEPT)
def references(code: types.CodeType) -> References:
    """Finds what a code object and the functions within it refer to, outside of them."""
    chains: dict[frozenset[str], set[Chain]] = {_GLOBAL: set(), _ENCLOSED: set()}
    imports: set[str] = set()
    kind = _GLOBAL
    chain: Chain = ()
    for step in dis.get_instructions(code):
        if step.opname in _ATTRIBUTES and chain:
            chain = (*chain, step.argval)
        elif step.opname != "EXTENDED_ARG":
            chains[kind].add(chain)
            kind = _ENCLOSED if step.opname in _ENCLOSED else _GLOBAL
            chain = (step.argval,) if step.opname in kind else ()
            if step.opname == "IMPORT_NAME":
                imports.add(step.argval)
    for inner in (references(const) for const in code.co_consts if isinstance(const, types.CodeType)):
        chains[_GLOBAL] |= inner.global_
        chains[_ENCLOSED] |= inner.enclosed
        imports |= inner.imports
    return References(
        _outside(chains[_GLOBAL], _BOOKKEEPING),
        _outside(chains[_ENCLOSED], _BOOKKEEPING.union(code.co_cellvars)),
        frozenset(imports),
    )


def _outside(chains: set[Chain], names: frozenset[str]) -> frozenset[Chain]:
    return frozenset(chain for chain in chains if chain and chain[0] not in names)

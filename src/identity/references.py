"""Finds what code refers to, from its instructions: variables, the attributes taken from them, imports."""

from __future__ import annotations

import dis
import types
from functools import lru_cache

# A class body reads the first for its __module__; none of them decides a number, and some depend on where a file lies.
_BOOKKEEPING = frozenset(
    """
    __name__ __qualname__ __module__ __doc__ __package__ __spec__ __loader__ __builtins__ __annotations__ __annotate__
    __conditional_annotations__
    """.split()
)
_VARIABLES = frozenset(
    """
    LOAD_GLOBAL LOAD_NAME LOAD_FROM_DICT_OR_GLOBALS LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF
    """.split()
)
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_KEPT = 4096  # what methods refer to is asked for again by each definition that uses their class

Chain = tuple[str, ...]


@lru_cache(maxsize=_KEPT)
def references(code: types.CodeType) -> tuple[frozenset[Chain], frozenset[str]]:
    """Finds what a code object and the functions within it refer to.

    Returns:
        Each variable that is not local, with the attributes taken from it: ``("helper", "K")``, or ``("helper",)``
        where it is used as it is; and the modules that are imported.
    """
    chains: set[Chain] = set()
    imports: set[str] = set()
    chain: Chain = ()
    for step in dis.get_instructions(code):
        if step.opname in _ATTRIBUTES and chain:
            chain = (*chain, step.argval)
        elif step.opname != "EXTENDED_ARG":
            chains.add(chain)
            chain = (step.argval,) if step.opname in _VARIABLES else ()
            if step.opname == "IMPORT_NAME":
                imports.add(step.argval)
    for inner in (references(const) for const in code.co_consts if isinstance(const, types.CodeType)):
        chains |= inner[0]
        imports |= inner[1]
    return frozenset(chain for chain in chains if chain and chain[0] not in _BOOKKEEPING), frozenset(imports)

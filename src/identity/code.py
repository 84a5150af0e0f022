"""Descriptions of code: functions and modules, by name if they are a library's, by source if they are a user's own."""

from __future__ import annotations

import functools
import os
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from testbed.errors import IdentityError
from testbed.identity import source_code
from testbed.identity.lazy_imports import reached_lazily
from testbed.identity.references import Chain, references
from testbed.tracing import own_code

# Modules whose functions are put around another one and compute what it does: testbed's, and that of `torch.compile`.
_AROUND = frozenset({"testbed.tracing.patches", "torch._dynamo.eval_frame"})
MARK = "!"  # begins the keys of what is not plain JSON; a mapping with such keys of its own is written as pairs
SOURCE = f"{MARK}source"


class CodeDescriber(ABC):
    """Describes functions and modules. Each is described once, and then referred to by number.

    Args:
        files: Set to fill with the source files of all code that is met.
    """

    def __init__(self, files: set[str] | None = None) -> None:
        self._files = files
        self._code: dict[int, int] = {}
        self._alive: list[Any] = []  # ids are only good as long as their objects live

    @abstractmethod
    def value(self, value: Any) -> Any:
        """Describes anything."""

    def again(self, thing: Any) -> Any:
        """A reference to a function, class or module that was described before; None for a new one."""
        if id(thing) in self._code:
            return {f"{MARK}again": self._code[id(thing)]}
        self._code[id(thing)] = len(self._code)
        self._alive.append(thing)
        return None

    def alone(self, value: Any) -> Any:
        """Describes something so that nothing else refers into its description."""
        known = len(self._code)
        try:
            return self.value(value)
        finally:
            self._forget(known)

    def attempt(self, value: Any, otherwise: Any = None) -> Any:
        """Describes something, or returns ``otherwise`` if it cannot be described."""
        known = len(self._code)
        try:
            return self.value(value)
        except IdentityError:
            self._forget(known)  # else later descriptions would refer to something that is not there
            return otherwise

    def _forget(self, known: int) -> None:
        while len(self._code) > known:
            self._code.popitem()

    def met(self, module: str, file: str | None) -> None:
        """Notes the source file of code that is a user's own."""
        if self._files is not None and file and not file.startswith("<") and own_code.is_own(module, file):
            self._files.add(os.path.abspath(file))

    # Functions ----------------------------------------------------------------------------------------------------

    def function(self, function: types.FunctionType) -> Any:
        """A function: by name if it belongs to a library or to testbed, else by its source and what it refers to."""
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None and function.__globals__.get("__name__") in _AROUND:
            return self.value(wrapped)
        if function.__globals__ is vars(functools) and hasattr(function, "registry"):
            return self._dispatched(function, function.registry)
        code = function.__code__
        # The code's own name: a decorator may have given the function the name of another one.
        module, name = str(function.__globals__.get("__name__")), code.co_qualname
        own = own_code.is_own(module, code.co_filename)
        self.met(module, code.co_filename)
        if not own and _has_name(function):
            return self._library_function(function, f"{module}.{name}")
        again = self.again(function)
        if again is not None:
            return again
        described = self.surroundings(function)
        return {SOURCE: source_code.function_text(function), **described, **(self._reached(function) if own else {})}

    def _library_function(self, function: types.FunctionType, name: str) -> Any:
        described: dict[str, Any] = {f"{MARK}function": name, "revision": getattr(function, "revision", 1)}
        captured = captured_variables(function)  # a library's decorator keeps there what it was put around
        if captured:
            described["variables"] = self.named(captured, name)
        if "<locals>" in name:
            described["defaults"] = self.value([*(function.__defaults__ or ()), function.__kwdefaults__])
        return described

    def surroundings(self, function: types.FunctionType) -> dict[str, Any]:
        """Describes what a function refers to: its defaults, attributes, captured variables and module variables."""
        parts: dict[str, Any] = {
            "defaults": list(function.__defaults__ or ()),
            "keyword defaults": function.__kwdefaults__ or {},
            "attributes": _attributes(function),
            "variables": captured_variables(function),
            "globals": _globals(function),
        }
        return {part: self.named(content, function.__qualname__) for part, content in parts.items() if content}

    def named(self, content: Any, owner: str) -> Any:
        """Describes values one by one, so that an error can name the variable."""
        if not isinstance(content, dict):
            try:
                return self.value(content)
            except IdentityError as error:
                raise IdentityError(f"{error} [a default of {owner}]") from error
        described = {}
        for name, item in content.items():
            try:
                described[name] = self.value(item)
            except IdentityError as error:
                raise IdentityError(f"{error} [{name!r}, which {owner} refers to]") from error
        return described

    def _reached(self, function: types.FunctionType) -> dict[str, Any]:
        """Describes what a user's function takes from modules."""
        known = {**_globals(function), **captured_variables(function)}
        found = references(function.__code__)
        for name in found.imports:
            self.met(name, getattr(sys.modules.get(name), "__file__", None))
        reached: dict[str, Any] = {}
        for chain in sorted(found.global_ | found.enclosed):
            if isinstance(known.get(chain[0]), types.ModuleType):
                for name, item in _follow(known[chain[0]], chain).items():
                    if name not in reached:
                        reached.update(self.named({name: item}, function.__qualname__))
        lazily = reached_lazily(function)
        for name, file in sorted(lazily.files.items()):
            self.met(name, file)
        parts = {"reached": by_name(reached), "imported": lazily.texts}
        return {part: content for part, content in parts.items() if content}

    def _dispatched(self, function: types.FunctionType, registry: Mapping[type, Any]) -> Any:
        """A function of `functools.singledispatch`: all the implementations that it leads to, by their types."""
        described = {f"{MARK}dispatched": function.__code__.co_name}
        again = self.again(registry)
        if again is not None:
            return {**described, **again}
        kinds = sorted(registry, key=lambda kind: (kind.__qualname__, kind.__module__))
        return {**described, "by": [[self.value(kind), self.value(registry[kind])] for kind in kinds]}

    def made(self, function: types.FunctionType) -> Any:
        """A method that a decorator has made by running text that nobody kept: by its code."""
        again = self.again(function)
        if again is not None:
            return again
        made = {f"{MARK}made": function.__name__, "code": self._code_object(function.__code__)}
        return {**made, **self.surroundings(function)}

    def _code_object(self, code: types.CodeType) -> Any:
        constants = [
            self._code_object(const) if isinstance(const, types.CodeType) else self.value(const)
            for const in code.co_consts
        ]
        names = [list(names) for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)]
        return {"instructions": self.value(code.co_code), "names": names, "constants": constants}

    def module(self, module: types.ModuleType) -> Any:
        """A module by its name alone: the files of modules are in records."""
        self.met(module.__name__, getattr(module, "__file__", None))
        return {f"{MARK}module": own_code.plain_name(module.__name__)}


def captured_variables(function: types.FunctionType) -> dict[str, Any]:
    """The values of variables of enclosing functions; one that has none yet is described as unset."""
    captured: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:
            captured[name] = {f"{MARK}unset": True}
    return by_name(captured)


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The values of the module variables that a function reads."""
    names = sorted({chain[0] for chain in references(function.__code__).global_})
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _follow(module: types.ModuleType, chain: Chain) -> dict[str, Any]:
    """Resolves a chain of attributes of a module, by name; only for the user's code, or code of testbed.

    Code that a user has put into a library's module (``F.blur = mine``) is the user's.
    """
    for index, name in enumerate(chain[1:], start=2):
        own = own_code.is_own_module(module)
        try:  # a library may import a lot to answer, and a function __getattr__ of the user's may raise anything
            item = getattr(module, name) if own else vars(module)[name]
        except Exception:
            return {}
        if not isinstance(item, types.ModuleType):
            code = isinstance(item, types.FunctionType | type) and module.__name__.startswith("testbed.")
            put = own_code.is_own_function(item) or (isinstance(item, type) and own_code.is_own_class(item))
            return {".".join(chain[:index]): item} if own or code or put else {}
        module = item
    return {}


def _attributes(function: types.FunctionType) -> dict[str, Any]:
    """The attributes of a function, without what `functools` keeps in it for itself, or copied from a dispatcher."""
    copied = ("_clear_cache", "dispatch", "registry", "register") if hasattr(function, "_clear_cache") else ()
    return {key: item for key, item in sorted(vars(function).items()) if key not in ("__wrapped__", *copied)}


def _has_name(function: types.FunctionType) -> bool:
    """Checks whether the name of a library's function identifies it.

    An inner function has no name of its own, but a version of Python is a version of its standard library: there the
    name must do, or else an identity would change with the version.
    """
    name = function.__code__.co_qualname
    if "<locals>" not in name and "<lambda>" not in name:
        return True
    return "<lambda>" not in name and own_code.is_standard_file(function.__code__.co_filename)


def by_name(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Sorts a mapping of names whose order has no meaning."""
    return {name: variables[name] for name in sorted(variables)}

"""Descriptions of code: functions and modules, by name if they are a library's, by source if they are a user's own."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from testbed.errors import IdentityError
from testbed.identity import source_code
from testbed.identity.references import Chain, references

_AUDIT = "testbed.tracing.audit"
MARK = "!"  # begins the keys of what is not plain JSON; a mapping with such keys of its own is written as pairs
SOURCE = f"{MARK}source"


class CodeDescriber(ABC):
    """Describes functions and modules. Each is described once, and then referred to by number.

    Args:
        files: Is filled with the source files of all code that is met, if given.
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
        """Describes something, or says ``otherwise`` if it cannot be described."""
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
        if self._files is not None and file and not file.startswith("<") and source_code.is_own(module, file):
            self._files.add(os.path.abspath(file))

    # Functions ----------------------------------------------------------------------------------------------------

    def function(self, function: types.FunctionType) -> Any:
        """A function: by name if it belongs to a library or to testbed, else by its source and what it refers to."""
        if function.__globals__.get("__name__") == _AUDIT:  # put around another one, which it calls
            return self.value(function.__wrapped__)  # type: ignore[attr-defined]
        if (registry := _registry(function)) is not None:
            return self._dispatched(function, registry)
        code = function.__code__
        # Of the code: a decorator may have given the function the name of another one.
        module, name = str(function.__globals__.get("__name__")), code.co_qualname
        own = source_code.is_own(module, code.co_filename)
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
        """What a function refers to: its defaults, attributes, captured variables and module variables."""
        parts: dict[str, Any] = {
            "defaults": list(function.__defaults__ or ()),
            "keyword defaults": function.__kwdefaults__ or {},
            "attributes": _attributes(function),
            "variables": _by_name_alone(captured_variables(function)),
            "globals": _by_name_alone(_globals(function)),
        }
        return {part: self.named(content, function.__qualname__) for part, content in parts.items() if content}

    def named(self, content: Any, owner: str) -> Any:
        """Describes values one by one, so that a refusal can say which variable it is about."""
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
        """What an own function reaches by way of modules, of the environment and of ``globals()``."""
        known = {**_globals(function), **captured_variables(function)}
        chains, imports, texts = references(function.__code__)
        for name in imports:
            self.met(name, getattr(sys.modules.get(name), "__file__", None))
        described: dict[str, Any] = {}
        reached: dict[str, Any] = {}
        for chain in sorted(chains):
            if isinstance(known.get(chain[0]), types.ModuleType):
                for name, item in _follow(known[chain[0]], chain):
                    if name not in reached:
                        reached.update(self.named({name: item}, function.__qualname__))
        if reached:
            described["reached"] = by_name(reached)
        if any({"environ", "getenv"}.intersection(chain) for chain in chains):  # by digest: one may hold a key
            names = {*texts, *(text for text in known.values() if isinstance(text, str))}
            values = {name: os.environ[name].encode(errors="surrogateescape") for name in names if name in os.environ}
            described["environment"] = self.value(by_name(values))
        if ("globals",) in chains and "globals" not in known:
            described["module"] = self._variables(function.__globals__)
        return described

    def _variables(self, variables: dict[str, Any]) -> Any:
        """A module's data and its own functions and classes; of a package also its modules.

        What cannot be described is left out.
        """
        again = self.again(variables)
        if again is not None:
            return again
        described = {}
        for name, item in sorted(variables.items()):
            if not name.startswith("__") and _is_content(item, variables):
                found = self.attempt(item, _REFUSED)
                if found is not _REFUSED:
                    described[name] = found
        return described

    def _dispatched(self, function: types.FunctionType, registry: Mapping[type, Any]) -> Any:
        """A function of `functools.singledispatch`: all the implementations that it leads to, by their types."""
        described = {f"{MARK}dispatched": function.__code__.co_name}
        again = self.again(registry)
        if again is not None:
            return {**described, **again}
        kinds = sorted(registry, key=lambda kind: (kind.__qualname__, kind.__module__))
        return {**described, "by": [[self.value(kind), self.value(registry[kind])] for kind in kinds]}

    def made(self, function: types.FunctionType) -> Any:
        """A method that a decorator has made by running text: by that text if it is known, else by its code."""
        again = self.again(function)
        if again is not None:
            return again
        described: dict[str, Any] = {f"{MARK}made": function.__name__}
        text = "".join(linecache.getlines(function.__code__.co_filename))
        described["code"] = source_code.text_of(text) if text else self._code_object(function.__code__)
        return {**described, **self.surroundings(function)}

    def _code_object(self, code: types.CodeType) -> Any:
        constants = [
            self._code_object(each) if isinstance(each, types.CodeType) else self.value(each) for each in code.co_consts
        ]
        names = [list(each) for each in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)]
        return {"instructions": self.value(code.co_code), "names": names, "constants": constants}

    # Modules ------------------------------------------------------------------------------------------------------

    def module(self, module: types.ModuleType) -> Any:
        """A module by name, and if it is a user's own with all that is in it: nobody knows what is read from it."""
        described: dict[str, Any] = self.value(NameOf(module))
        if source_code.is_own_module(module):
            described["variables"] = self._variables(vars(module))
        return described

    def name_of(self, module: NameOf) -> Any:
        """A module by its name alone: the files of modules are in records."""
        self.met(module.name, module.file)
        return {f"{MARK}module": source_code.plain_name(module.name)}


class NameOf:
    """Stands for a module of which it is described apart what a function takes from it."""

    def __init__(self, module: types.ModuleType) -> None:
        self.name, self.file = module.__name__, getattr(module, "__file__", None)


_REFUSED = object()


def _registry(function: types.FunctionType) -> Any:
    """The implementations by type behind a function that `functools.singledispatch` made; None for others."""
    singledispatch = function.__code__.co_qualname.startswith("singledispatch.<locals>.")
    if not singledispatch or function.__globals__ is not vars(functools):
        return None
    captured = captured_variables(function)
    return captured["registry"] if "registry" in captured else _registry(captured["dispatch"])


def captured_variables(function: types.FunctionType) -> dict[str, Any]:
    """The values of variables of enclosing functions; one that has none yet is described as unset."""
    captured: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:
            captured[name] = {f"{MARK}unset": True}
    return {name: captured[name] for name in sorted(captured)}


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The values of the module variables that a function reads."""
    names = sorted({chain[0] for chain in references(function.__code__)[0]})
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _follow(module: types.ModuleType, chain: Chain) -> list[tuple[str, Any]]:
    """The values that a chain of attributes of a module leads to, by name; without those that do not count."""
    for index, name in enumerate(chain[1:], start=2):
        own = source_code.is_own_module(module)
        try:  # a library may import a lot to answer, and a function __getattr__ of the user's may raise anything
            item = getattr(module, name) if own else vars(module)[name]
        except Exception:
            return []
        if not isinstance(item, types.ModuleType):
            return [(".".join(chain[:index]), item)] if own or _counts(module, item) else []
        module = item
    # It is passed on, and anything may be read from it.
    return [(f"{'.'.join(chain)}.*", module)] if source_code.is_own_module(module) else []


def _is_content(item: Any, variables: dict[str, Any]) -> bool:
    """Whether something among a module's variables is data, or code of the user's; of modules, a part of a package."""
    if isinstance(item, types.ModuleType):
        return item.__name__.startswith(f"{variables.get('__name__')}.") and source_code.is_own_module(item)
    if isinstance(item, type):
        return source_code.is_own_class(item)
    code = isinstance(item, types.FunctionType | types.BuiltinFunctionType)
    return not code or source_code.is_own_function(item)


def _attributes(function: types.FunctionType) -> dict[str, Any]:
    """The attributes of a function, without what `functools` keeps in it for itself, or copied from a dispatcher."""
    dispatch = getattr(function, "dispatch", None)
    copied = isinstance(dispatch, types.FunctionType) and _registry(dispatch) is not None
    apart = {"__wrapped__", *(("_clear_cache", "registry", "register") if copied else ())}
    return {key: item for key, item in sorted(vars(function).items()) if key not in apart}


def _by_name_alone(variables: dict[str, Any]) -> dict[str, Any]:
    return {name: NameOf(item) if isinstance(item, types.ModuleType) else item for name, item in variables.items()}


def _has_name(function: types.FunctionType) -> bool:
    """Whether the name of a library's function says which one it is.

    An inner function has no name of its own, but a version of Python is a version of its standard library: there the
    name must do, or else an identity would change with the version.
    """
    name = function.__code__.co_qualname
    if "<locals>" not in name and "<lambda>" not in name:
        return True
    return "<lambda>" not in name and source_code.is_standard_file(function.__code__.co_filename)


def _counts(module: types.ModuleType, item: Any) -> bool:
    """Whether an attribute of a module that is not a user's own counts: something of a user's, or code of testbed."""
    while isinstance(item, functools.partial):
        item = item.func
    if isinstance(item, types.MethodType):
        item = item.__func__
    if isinstance(item, types.FunctionType):
        return module.__name__.startswith("testbed.") or source_code.is_own_function(inspect.unwrap(item))
    if isinstance(item, type):
        own = source_code.is_own_class(item) or bool(source_code.replaced_methods(item))
        return own or module.__name__.startswith("testbed.")
    return source_code.is_own_class(type(item))


def by_name(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping of names whose order says nothing, sorted."""
    return {name: variables[name] for name in sorted(variables)}

"""What a thing is, told by its content: canonical descriptions of definitions, and digests of them.

A cell's fingerprint is the digest of everything that decides its numbers. `describe` turns a definition into plain
JSON that two people get alike when they wrote alike, on any machine: functions by their source text (normalised, so
that comments and layout do not count) together with all that they refer to, classes by their members, arrays by a
digest of their bytes, objects by their class and state. What it cannot describe it refuses, rather than give two things
one identity.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import math
import sys
import types
from collections.abc import Callable, Mapping
from copyreg import dispatch_table
from enum import Enum
from pathlib import PurePath
from typing import Any

from testbed import sourcecode
from testbed.errors import IdentityError

_DEEPEST = 100
MARK = "!"  # begins the keys of what is not plain JSON; a mapping with such keys of its own is written as pairs


def digest(value: Any) -> str:
    """A 32-digit hexadecimal digest of a description (anything that `describe` takes)."""
    text = json.dumps(describe(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def digest_bytes(*parts: bytes | memoryview) -> str:
    """A 32-digit hexadecimal digest of some bytes."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(part)
    return hasher.hexdigest()[:32]


def describe(value: Any) -> Any:
    """A JSON value that is equal for equal content.

    An object may say what it is itself, by a method ``spec()`` that returns plain values.

    Raises:
        IdentityError: If part of the value cannot be told apart from a changed one; says which part.
    """
    return _Describer().value(value)


class _Describer:
    """One description under way. Functions, classes and modules are described once, and then referred to by number."""

    def __init__(self) -> None:
        self._code: dict[int, int] = {}
        self._alive: list[Any] = []  # ids are only good as long as their objects live
        self._within: list[int] = []

    def value(self, value: Any) -> Any:
        """Describes anything."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {f"{MARK}float": repr(value)}
        if id(value) in self._within:
            return {f"{MARK}cycle": len(self._within) - self._within.index(id(value))}
        if len(self._within) > _DEEPEST:
            raise IdentityError(
                f"{type(value).__name__} is nested too deeply to be identified; give it a spec() method"
            )
        self._within.append(id(value))
        self._alive.append(value)
        try:
            return self._handler(value)(value)
        finally:
            self._within.pop()

    def _handler(self, value: Any) -> Callable[[Any], Any]:
        kind = type(value)
        if kind in self._EXACT:
            return functools.partial(self._EXACT[kind], self)
        if isinstance(value, type):
            return self._class
        if isinstance(value, types.ModuleType):
            return self._module
        if callable(getattr(value, "spec", None)):
            return self._spec
        if isinstance(value, Enum):
            return self._enum
        if hasattr(value, "untyped_storage") and hasattr(value, "detach"):
            return self._tensor
        if isinstance(value, PurePath):
            return lambda path: {f"{MARK}path": path.as_posix()}
        if kind.__module__ == "numpy" and (kind.__name__ == "ndarray" or hasattr(value, "dtype")):
            return self._array
        if isinstance(value, functools._lru_cache_wrapper):
            return lambda cached: {f"{MARK}cached": self.value(cached.__wrapped__)}
        return self._object

    # Plain values -------------------------------------------------------------------------------------------------

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        if all(type(key) is str and not key.startswith(MARK) for key in value):
            return {key: self.value(value[key]) for key in value}
        pairs = [[self.value(key), self.value(item)] for key, item in value.items()]
        return {f"{MARK}mapping": sorted(pairs, key=json.dumps)}

    def _sequence(self, value: Any) -> Any:
        return [self.value(item) for item in value]

    def _set(self, value: Any) -> Any:
        return {f"{MARK}set": sorted((self.value(item) for item in value), key=json.dumps)}

    def _range(self, value: range) -> Any:
        return {f"{MARK}range": [value.start, value.stop, value.step]}

    def _bytes(self, value: Any) -> Any:
        return {f"{MARK}bytes": digest_bytes(bytes(value))}

    def _enum(self, value: Enum) -> Any:
        return {f"{MARK}enum": f"{type(value).__qualname__}.{value.name}", "value": self.value(value.value)}

    def _array(self, value: Any) -> Any:
        import numpy as np

        array = np.asarray(value)
        if array.dtype.hasobject:
            return {f"{MARK}array": self.value(array.tolist()), "shape": list(array.shape)}
        layout = array.dtype.str if array.dtype.names is None else repr(array.dtype.descr)
        return {f"{MARK}array": digest_bytes(array.tobytes()), "dtype": layout, "shape": list(array.shape)}

    def _tensor(self, value: Any) -> Any:
        import torch

        try:
            flat = value.detach().cpu().contiguous().reshape(-1)
            content = digest_bytes(flat.resolve_conj().resolve_neg().view(torch.uint8).numpy().data)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            raise IdentityError(
                f"a tensor ({value.layout}, on {value.device}) has no content that can be read: {error}"
            ) from error
        return {f"{MARK}tensor": content, "dtype": str(value.dtype), "shape": list(value.shape)}

    # Objects ------------------------------------------------------------------------------------------------------

    def _spec(self, value: Any) -> Any:
        kind = type(value)
        described = {f"{MARK}spec": self.value(value.spec()), "type": kind.__name__}
        described["revision"] = getattr(value, "revision", 1)
        if sourcecode.is_own_class(kind):
            described["class"] = self.value(kind)
        return described

    def _object(self, value: Any) -> Any:
        """An object without a spec: its class and its state, as copying it would take them."""
        kind = type(value)
        reduce = dispatch_table.get(kind)
        try:
            reduced = reduce(value) if reduce is not None else value.__reduce_ex__(4)
        except Exception as error:  # whatever a class raises to say that it cannot be copied
            raise IdentityError(
                f"an object of type {kind.__module__}.{kind.__qualname__} cannot be identified by its content"
                f" ({_first_line(error)}); give its class a method spec() that returns its parameters, or use a"
                " function"
            ) from error
        if isinstance(reduced, str):
            return {f"{MARK}global": f"{kind.__module__}.{reduced}"}
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        return {
            f"{MARK}object": self.value(kind),
            "made": [self.value(make), [self.value(argument) for argument in arguments]],
            "state": self.value(_without_bookkeeping(value, state)),
            "items": [self.value(item) for item in items or ()],
            "pairs": self.value(dict(pairs)) if pairs is not None else None,
        }

    # Code ---------------------------------------------------------------------------------------------------------

    def _again(self, thing: Any) -> Any:
        """A reference to a function, class or module that was described before; None for a new one."""
        if id(thing) in self._code:
            return {f"{MARK}again": self._code[id(thing)]}
        self._code[id(thing)] = len(self._code)
        self._alive.append(thing)
        return None

    def _function(self, function: types.FunctionType) -> Any:
        """A function: by name if it belongs to a library or to testbed, else by its source and what it refers to."""
        # Of the code: a decorator may have given the function the name of another one.
        module, name = str(function.__globals__.get("__name__")), function.__code__.co_qualname
        anonymous = "<lambda>" in name or "<locals>" in name
        own = sourcecode.is_own(module, function.__code__.co_filename)
        if not own and not anonymous:
            by_name = {f"{MARK}function": f"{module}.{name}", "revision": getattr(function, "revision", 1)}
            captured = _captured(function)  # a library's decorator keeps there what it was put around
            return {**by_name, "variables": self._named(captured, name)} if captured else by_name
        again = self._again(function)
        if again is not None:
            return again
        tree = sourcecode.function_tree(function)
        described: dict[str, Any] = {f"{MARK}source": ast.unparse(tree)}
        parts = {
            "defaults": list(function.__defaults__ or ()),
            "keyword defaults": function.__kwdefaults__ or {},
            "attributes": {key: item for key, item in vars(function).items() if key != "__wrapped__"},
            "variables": _captured(function),
            "globals": _globals(function),
        }
        for part, content in parts.items():
            if content:
                described[part] = self._named(content, function.__qualname__)
        package = function.__globals__.get("__package__")
        imported = [self._file(each) for each in sourcecode.imported_modules(tree, package)]
        if any(imported):
            described["imports"] = [each for each in imported if each]
        return described

    def _named(self, content: Any, owner: str) -> Any:
        """Describes values one by one, so that a refusal can say which variable it is about."""
        if not isinstance(content, dict):
            return self.value(content)
        described = {}
        for name, item in content.items():
            try:
                described[name] = self.value(item)
            except IdentityError as error:
                raise IdentityError(f"{error} [{name!r}, which {owner} refers to]") from error
        return described

    def _class(self, kind: type) -> Any:
        """A class: by name if it belongs to a library or to testbed, else by its bases and members."""
        if not sourcecode.is_own_class(kind):
            return {f"{MARK}class": f"{kind.__module__}.{kind.__qualname__}"}
        again = self._again(kind)
        if again is not None:
            return again
        members = {name: member for name, member in vars(kind).items() if name not in _CLASS_BOOKKEEPING}
        return {
            f"{MARK}class": kind.__qualname__,
            "bases": [self.value(base) for base in kind.__bases__ if base is not object],
            "members": {name: self._member(members[name], kind) for name in sorted(members)},
        }

    def _member(self, member: Any, kind: type) -> Any:
        if isinstance(member, staticmethod | classmethod):
            return {type(member).__name__: self._member(member.__func__, kind)}
        if isinstance(member, property):
            return {"property": [self._member(each, kind) for each in (member.fget, member.fset, member.fdel)]}
        made = inspect.unwrap(member) if isinstance(member, types.FunctionType) else None
        if isinstance(made, types.FunctionType) and made.__code__.co_filename.startswith("<"):
            # Made by a decorator such as dataclass, out of the other members.
            return {"made": made.__name__, "code": digest_bytes(made.__code__.co_code)}
        if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType):
            return {"slot": member.__name__}
        return self._named({member_name(member): member}, kind.__qualname__)

    def _module(self, module: types.ModuleType) -> Any:
        """A module: by name, and if it is a user's own by the source of its file and of the own ones that it uses."""
        return self._file(module.__name__) or {f"{MARK}module": module.__name__}

    def _file(self, name: str) -> Any:
        """An own module by its source; None for one that is not."""
        path = sourcecode.module_file(name)
        if path is None:
            return None
        key = sys.modules.get(name, name)
        again = self._again(key)
        if again is not None:
            return again
        tree = sourcecode.file_tree(path)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        uses = [self._file(each) for each in sourcecode.imported_modules(tree, package)]
        described = {f"{MARK}module": name.rpartition(".")[2], "source": digest_bytes(ast.unparse(tree).encode())}
        return {**described, "uses": [each for each in uses if each]}

    def _partial(self, value: functools.partial[Any]) -> Any:
        return {f"{MARK}partial": [self.value(each) for each in (value.func, list(value.args), value.keywords)]}

    def _method(self, method: types.MethodType) -> Any:
        return {f"{MARK}method": self.value(method.__func__), "of": self.value(method.__self__)}

    def _builtin(self, function: types.BuiltinFunctionType) -> Any:
        described: dict[str, Any] = {f"{MARK}function": f"{function.__module__}.{function.__qualname__}"}
        owner = function.__self__
        if owner is not None and not isinstance(owner, types.ModuleType):
            described["of"] = self.value(owner)
        return described

    _EXACT: dict[type, Callable[[Any, Any], Any]] = {  # noqa: RUF012 -- a table of this class's own methods
        dict: _mapping,
        types.MappingProxyType: _mapping,
        list: _sequence,
        tuple: _sequence,
        set: _set,
        frozenset: _set,
        range: _range,
        bytes: _bytes,
        bytearray: _bytes,
        functools.partial: _partial,
        types.FunctionType: _function,
        types.MethodType: _method,
        types.BuiltinFunctionType: _builtin,
    }


_CLASS_BOOKKEEPING = frozenset(
    """
    __module__ __doc__ __dict__ __weakref__ __qualname__ __annotations__ __firstlineno__ __static_attributes__
    __abstractmethods__ _abc_impl __parameters__ __orig_bases__ __slotnames__ __annotate__ __annotations_cache__
    __dataclass_params__
    """.split()
)


def member_name(member: Any) -> str:
    """What to call a member of a class in a message."""
    return str(getattr(member, "__name__", type(member).__name__))


def _captured(function: types.FunctionType) -> dict[str, Any]:
    """The values of variables of enclosing functions; one that has none yet is told by its name."""
    captured: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:
            captured[name] = {f"{MARK}unset": True}
    return captured


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The values of the module variables that a function reads."""
    names = sorted(sourcecode.global_names(function.__code__))
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _without_bookkeeping(value: Any, state: Any) -> Any:
    """The state of a torch module without the fields that torch itself keeps in every one."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.nn.Module) or not isinstance(state, dict):
        return state
    common = vars(torch.nn.Module()).keys() - {"_parameters", "_buffers", "_modules", "training"}
    return {key: item for key, item in state.items() if key not in common}


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

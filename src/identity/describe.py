"""Describes definitions by their content: canonical descriptions, and digests of them.

A cell's fingerprint is the digest of everything that decides its numbers. `describe` turns a definition into plain
JSON. Equal definitions get equal JSON, on any machine and any supported version of Python: functions by
their source text (in a normal form, so that comments and layout do not count) together with all that they refer to,
classes by their members, arrays by a digest of their bytes, objects by their class and state. Things that cannot be
described are refused, so that two different things never get one identity.

The order of a mapping counts: ``nn.Sequential(OrderedDict(...))`` runs its layers in that order. The order of names
that somebody looks up one by one (attributes, module variables, the keys of a ``spec()``) does not.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import os
import sys
import types
from collections.abc import Callable, Mapping
from copyreg import dispatch_table
from enum import Enum
from pathlib import PurePath
from typing import Any

from testbed.calls import first_line
from testbed.errors import IdentityError
from testbed.identity.classes import ClassDescriber
from testbed.identity.code import MARK, by_name
from testbed.tracing import own_code

# The version of these rules. Raise it when a definition that nobody changed gets another description.
SCHEME = 3
_DEEPEST = 100


def digest(value: Any) -> str:
    """A 32-digit hexadecimal digest of a description (anything that `describe` takes)."""
    text = json.dumps(describe(value), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def digest_bytes(*parts: bytes | memoryview) -> str:
    """A 32-digit hexadecimal digest of some bytes."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(part)
    return hasher.hexdigest()[:32]


def describe(value: Any, files: set[str] | None = None) -> Any:
    """Describes a value as JSON that is equal for equal content.

    An object may describe itself, by a method ``spec()`` that returns plain values.

    Args:
        value: The value to describe.
        files: Set to fill with the absolute paths of the source files of all code that is met: the user's own, and
            testbed's that is described by name only. It does not change the description.

    Raises:
        IdentityError: If a change to some part of the value could go unnoticed; the message names the part.
    """
    return Describer(files).value(value)


def describe_fields(fields: Mapping[str, Any], files: set[str] | None = None) -> dict[str, Any]:
    """Describes a record of named fields, such as a ``spec()``; the order of its keys does not count.

    Args:
        fields: The record.
        files: As for `describe`.

    Raises:
        IdentityError: As `describe` does.
    """
    described: dict[str, Any] = Describer(files).fields(fields)
    return described


class Describer(ClassDescriber):
    """One description under way.

    Args:
        files: Set to fill with the source files of all code that is met.
    """

    def __init__(self, files: set[str] | None = None) -> None:
        super().__init__(files)
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
        if value is os.environ:  # the variables that code reads are in records
            return lambda environment: {f"{MARK}global": "os.environ"}
        if isinstance(value, type):
            return self.klass
        if isinstance(value, types.ModuleType):
            return self.module
        if _describes_itself(value):
            return self._spec
        if isinstance(value, Enum):
            return self._enum
        if kind.__module__ == "torch.utils.hooks" and kind.__name__ == "RemovableHandle":
            return lambda handle: {f"{MARK}handle": None}  # of a hook, by a number that torch counts up
        if "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
            return self._tensor
        if isinstance(value, PurePath):
            return lambda path: {f"{MARK}path": path.as_posix()}
        if kind.__module__ == "numpy" and (kind.__name__ == "ndarray" or hasattr(value, "dtype")):
            return self._array
        if kind.__module__ in ("omegaconf.dictconfig", "omegaconf.listconfig"):
            return self._configuration
        if isinstance(value, functools._lru_cache_wrapper):
            return lambda cached: {f"{MARK}cached": self.value(cached.__wrapped__)}
        return self._object

    # Plain values -------------------------------------------------------------------------------------------------

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        if all(type(key) is str and not key.startswith(MARK) for key in value):
            return {key: self.value(item) for key, item in value.items()}
        return {f"{MARK}mapping": [[self.value(key), self.value(item)] for key, item in value.items()]}

    def fields(self, value: Any) -> Any:
        """Describes a mapping of names whose order has no meaning; anything else as it is."""
        if isinstance(value, Mapping) and all(type(key) is str for key in value):
            return self.value(by_name(value))
        return self.value(value)

    def _sequence(self, value: Any) -> Any:
        return [self.value(item) for item in value]

    def _tuple(self, value: Any) -> Any:
        return {f"{MARK}tuple": self._sequence(value)}

    def _set(self, value: Any) -> Any:
        return {f"{MARK}set": sorted((self.alone(item) for item in value), key=json.dumps)}

    def _range(self, value: range) -> Any:
        return {f"{MARK}range": [value.start, value.stop, value.step]}

    def _bytes(self, value: Any) -> Any:
        return {f"{MARK}bytes": digest_bytes(bytes(value))}

    def _enum(self, value: Enum) -> Any:
        kind = type(value)
        described = {f"{MARK}enum": f"{kind.__qualname__}.{value.name}", "value": self.value(value.value)}
        return {**described, "class": self.value(kind)} if own_code.is_own_class(kind) else described

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

    def _configuration(self, value: Any) -> Any:
        """A configuration of OmegaConf or Hydra: what was written, not what it has looked up, such as the time."""
        written = sys.modules["omegaconf"].OmegaConf.to_container
        described = {f"{MARK}config": self.value(written(value))}
        if "${" in str(described):  # which may refer to other parts
            described["of"] = self.value(written(value._get_root()))
        return described

    # Objects ------------------------------------------------------------------------------------------------------

    def _spec(self, value: Any) -> Any:
        kind = type(value)
        described = {f"{MARK}spec": self.fields(value.spec()), "type": kind.__name__}
        missing = inspect.getattr_static(value, "revision", None) is None  # a __getattr__ would invent one
        described["revision"] = 1 if missing else value.revision
        if own_code.is_own_class(kind):
            described["class"] = self.value(kind)
        else:
            self.met_class(kind)
        return described

    def _object(self, value: Any) -> Any:
        """An object without a spec: its class and its state, as copying it would take them."""
        kind = type(value)
        reduce = dispatch_table.get(kind)
        try:
            reduced = reduce(value) if reduce is not None else value.__reduce_ex__(4)
            if not isinstance(reduced, str | tuple):
                raise TypeError("copying it gives nothing that could be compared")
        except Exception as error:  # whatever a class raises if it cannot be copied
            raise IdentityError(
                f"an object of type {kind.__module__}.{kind.__qualname__} cannot be identified by its content"
                f" ({first_line(error)}); give its class a method spec() that returns its parameters, or use a"
                " function"
            ) from error
        if isinstance(reduced, str):
            return {f"{MARK}global": f"{kind.__module__}.{reduced}"}
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        return {
            f"{MARK}object": self.value(kind),
            "made": [self.value(make), [self.value(argument) for argument in arguments]],
            "state": self._state(value, state),
            "items": [self.value(item) for item in items or ()],
            "pairs": self.value(dict(pairs)) if pairs is not None else None,
        }

    def _state(self, value: Any, state: Any) -> Any:
        """Describes the state of an object; the order in which its attributes were set does not count."""
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):  # with slots
            return [self._state(value, state[0]), self.fields(state[1])]
        if not isinstance(state, dict) or not all(type(name) is str for name in state):
            return self.value(state)
        if is_network(value):
            return self.fields(_without_bookkeeping(value, state))
        kept = {name: item for name, item in state.items() if not _is_cached(value, name)}
        return self.named(by_name(kept), type(value).__qualname__)

    def _partial(self, value: functools.partial[Any]) -> Any:
        return {f"{MARK}partial": [self.value(part) for part in (value.func, list(value.args), value.keywords)]}

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
        tuple: _tuple,
        set: _set,
        frozenset: _set,
        range: _range,
        bytes: _bytes,
        bytearray: _bytes,
        functools.partial: _partial,
        types.FunctionType: ClassDescriber.function,
        types.MethodType: _method,
        types.BuiltinFunctionType: _builtin,
        functools.cached_property: ClassDescriber.cached_property,
        functools.singledispatchmethod: ClassDescriber.dispatched_method,
    }


def _is_cached(value: Any, name: str) -> bool:
    """Checks whether an attribute is the cache of a cached property."""
    return isinstance(inspect.getattr_static(type(value), name, None), functools.cached_property)


def is_network(value: Any) -> bool:
    """Checks whether something is a torch module."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def hooks_of(network: Any) -> dict[str, Any]:
    """The hooks of a module of torch that act on what passes through it: those of each kind in order."""
    with_keywords = vars(network).get("_forward_hooks_with_kwargs", {}) | vars(network).get(
        "_forward_pre_hooks_with_kwargs", {}
    )
    hooks_by_kind = {}
    for kind in _HOOKS:
        hooks = vars(network).get(kind)
        if hooks:  # by numbers that torch counts up: they have no meaning
            hooks_by_kind[kind] = [[hook, key in with_keywords] for key, hook in hooks.items()]
    return hooks_by_kind


_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def torch_bookkeeping() -> set[str]:
    """The fields that torch itself keeps in every module."""
    return set(vars(sys.modules["torch"].nn.Module()))


def _without_bookkeeping(network: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The state of a module of torch without the fields that torch itself keeps in every one, with its hooks."""
    common = torch_bookkeeping() - {"_parameters", "_buffers", "_modules", "training"}
    return {key: item for key, item in state.items() if key not in common} | hooks_of(network)


def _describes_itself(value: Any) -> bool:
    """Checks whether an object has a method ``spec()``; one that asks for arguments serves another purpose."""
    if not _has_method(value, "spec"):
        return False
    try:
        inspect.signature(value.spec).bind()
    except (TypeError, ValueError) as error:
        return isinstance(error, ValueError)  # some of those that are written in C have no signature
    return True


def _has_method(value: Any, name: str) -> bool:
    """Checks whether an object has a method, rather than a ``__getattr__`` that answers anything."""
    return inspect.getattr_static(value, name, None) is not None and callable(getattr(value, name, None))

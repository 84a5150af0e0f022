"""Descriptions of classes: by name if they are a library's, by bases and members if they are a user's own.

What `dataclass`, `Enum` and `namedtuple` generate differs from version to version of Python; such classes are described
by what their author wrote.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
import types
from collections.abc import Iterator
from dataclasses import MISSING
from enum import Enum
from typing import Any

from testbed.errors import IdentityError
from testbed.identity.code import MARK, CodeDescriber
from testbed.tracing import own_code

# Modules that put methods into the classes of others; which ones depends on the version of Python.
_GENERATORS = frozenset({"collections", "dataclasses", "enum", "typing"})


class ClassDescriber(CodeDescriber):
    """Describes classes as well as functions and modules.

    Args:
        files: Set to fill with the source files of all code that is met.
    """

    def __init__(self, files: set[str] | None = None) -> None:
        super().__init__(files)
        self._members_of: dict[type, dict[str, Any]] = {}

    def klass(self, kind: type) -> Any:
        """A class: by name if it belongs to a library or to testbed, else by its bases and members."""
        self.met_class(kind)
        if not own_code.is_own_class(kind):
            return {f"{MARK}class": f"{kind.__module__}.{kind.__qualname__}", **self._replaced(kind)}
        again = self.again(kind)
        if again is not None:
            return again
        described: dict[str, Any] = {
            f"{MARK}class": kind.__qualname__,
            "bases": [self.value(base) for base in kind.__bases__ if base is not object],
        }
        if own_code.is_own_class(type(kind)):
            described["metaclass"] = self.value(type(kind))
        if issubclass(kind, Enum):
            described["values"] = [[name, self.value(member.value)] for name, member in kind.__members__.items()]
        fields = vars(kind).get("__dataclass_fields__", {}).values()
        if fields:
            described["fields"] = [[field.name, self.named(_defaults(field), kind.__qualname__)] for field in fields]
        members = {name: member for name, member in sorted(vars(kind).items()) if _is_written(kind, name, member)}
        described["members"] = {name: self._named_member(name, member, kind) for name, member in members.items()}
        return described

    def _replaced(self, kind: type) -> dict[str, Any]:
        """Describes the methods of a library's class that a user has replaced (``Attention.forward = mine``)."""
        replaced = {
            f"{base.__qualname__}.{name}": member
            for base in kind.__mro__
            for name, member in self._own_members(base).items()
        }
        if not replaced:
            return {}
        return self.again(kind) or {
            "replaced": {name: self._named_member(name, member, kind) for name, member in sorted(replaced.items())}
        }

    def _own_members(self, kind: type) -> dict[str, Any]:
        """The methods of a library's class that are a user's; looked for once in each class."""
        if kind not in self._members_of:
            library = kind.__module__ != "builtins" and not own_code.is_own_class(kind)
            members = vars(kind).items() if library else ()
            self._members_of[kind] = {
                name: member for name, member in members if any(map(_is_put_there, _functions_of(member)))
            }
        return self._members_of[kind]

    def met_class(self, kind: type) -> None:
        """Notes the source file of a class."""
        if self._files is not None:
            self.met(kind.__module__ or "", own_code.class_file(kind))

    def _named_member(self, name: str, member: Any, kind: type) -> Any:
        try:
            return self._member(member)
        except IdentityError as error:
            raise IdentityError(f"{error} [{name!r}, which {kind.__qualname__} refers to]") from error

    def _member(self, member: Any) -> Any:
        if type(member) in (staticmethod, classmethod):
            return {type(member).__name__: self._member(member.__func__)}
        if isinstance(member, property):
            parts = [self._member(accessor) for accessor in (member.fget, member.fset, member.fdel)]
            own = own_code.is_own_class(type(member))
            return {"property": parts, "class": self.value(type(member))} if own else {"property": parts}
        if isinstance(member, types.FunctionType):
            unwrapped = inspect.unwrap(member)
            file = getattr(unwrapped, "__code__", member.__code__).co_filename
            return self.made(unwrapped) if file.startswith("<") and not linecache.getlines(file) else self.value(member)
        if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType):
            return {"slot": member.__name__}
        return self.value(member)

    def cached_property(self, member: functools.cached_property[Any]) -> Any:
        """A property that is computed once."""
        return {f"{MARK}cached property": self.value(member.func)}

    def dispatched_method(self, member: Any) -> Any:
        """A method with an implementation for each type."""
        return {f"{MARK}dispatched method": self.value(member.dispatcher)}


def _defaults(field: Any) -> dict[str, Any]:
    """Returns the default of a data class's field, and its factory."""
    given = {name: getattr(field, name) for name in ("default", "default_factory")}
    return {name: value for name, value in given.items() if value is not MISSING}


def _is_put_there(function: types.FunctionType) -> bool:
    """Checks whether a user has written a method of a library's class, rather than something that makes classes."""
    module, file = sys.modules.get(str(function.__globals__.get("__name__"))), function.__code__.co_filename
    known = os.path.isfile(file) if module is None else vars(module) is function.__globals__
    return known and own_code.is_own_function(function)


def _functions_of(member: Any) -> Iterator[types.FunctionType]:
    """Yields the function of a method, and those that decorators have wrapped in it."""
    if isinstance(member, staticmethod | classmethod):
        member = member.__func__
    for accessor in (member.fget, member.fset) if isinstance(member, property) else (member,):
        while isinstance(accessor, types.FunctionType):
            yield accessor
            accessor = getattr(accessor, "__wrapped__", None)


def _function_of(member: Any) -> Any:
    if isinstance(member, staticmethod | classmethod):
        member = member.__func__
    return inspect.unwrap(member) if isinstance(member, types.FunctionType) else None


def _is_written(kind: Any, name: str, member: Any) -> bool:
    """Checks whether the author of a class wrote a member; the rest comes from Python and its library."""
    plain = not callable(member) and not isinstance(member, classmethod | property)
    if (name.startswith("__") and plain) or name == "_abc_impl" or type(member).__name__ == "_tuplegetter":
        return False
    function = _function_of(member)
    module = "" if function is None else str(function.__globals__.get("__name__"))
    if (module in _GENERATORS and name.startswith("_")) or module.startswith("namedtuple_"):
        return False
    if issubclass(kind, Enum):
        if function is not None:
            return own_code.is_own_function(function)
        kept = name.startswith("_") and name.endswith("_") and not isinstance(member, property)
        return not kept and name not in kind.__members__
    made = function is not None and function.__code__.co_filename == "<string>" and name.startswith("__")
    return not (made and "__dataclass_fields__" in vars(kind))

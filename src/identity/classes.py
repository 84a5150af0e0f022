"""Descriptions of classes: by name if they are a library's, by bases and members if they are a user's own.

What `dataclass`, `Enum` and `namedtuple` generate differs from version to version of Python; such classes are described
by what their author wrote.
"""

from __future__ import annotations

import functools
import inspect
import types
from dataclasses import MISSING
from enum import Enum, Flag
from typing import Any

from testbed.errors import IdentityError
from testbed.identity import source_code
from testbed.identity.code import MARK, CodeDescriber
from testbed.identity.normalize import printable

_BOOKKEEPING = frozenset(
    """
    __module__ __doc__ __dict__ __weakref__ __qualname__ __annotations__ __firstlineno__ __static_attributes__
    __abstractmethods__ _abc_impl __parameters__ __orig_bases__ __slotnames__ __annotate__ __annotations_cache__
    __annotate_func__ __classdictcell__ __type_params__ __protocol_attrs__ __non_callable_proto_members__
    __callable_proto_members_only__ __mutable_keys__ __readonly_keys__
    """.split()
)
_DATACLASS_METHODS = frozenset(
    """
    __init__ __repr__ __eq__ __lt__ __le__ __gt__ __ge__ __hash__ __setattr__ __delattr__ __replace__ __getstate__
    __setstate__
    """.split()
)
_DATACLASS = frozenset({"__dataclass_fields__", "__dataclass_params__", "__match_args__"})
_NAMEDTUPLE = frozenset({"_fields", "_field_defaults", "__match_args__", "__slots__"})
# Modules that put methods into the classes of others; which ones depends on the version of Python.
_GENERATORS = frozenset({"collections", "dataclasses", "enum", "typing"})


class ClassDescriber(CodeDescriber):
    """Describes classes, too."""

    def klass(self, kind: type) -> Any:
        """A class: by name if it belongs to a library or to testbed, else by its bases and members."""
        self.met_class(kind)
        if not source_code.is_own_class(kind):
            described: dict[str, Any] = {f"{MARK}class": f"{kind.__module__}.{kind.__qualname__}"}
            patched = source_code.replaced_methods(kind)
            return {**described, "patched": self.named(patched, kind.__qualname__)} if patched else described
        again = self.again(kind)
        if again is not None:
            return again
        described = {
            f"{MARK}class": kind.__qualname__,
            "bases": [self.value(base) for base in kind.__bases__ if base is not object],
        }
        if source_code.is_own_class(type(kind)):
            described["metaclass"] = self.value(type(kind))
        if issubclass(kind, Enum):
            described["values"] = [[name, self.value(member.value)] for name, member in kind.__members__.items()]
            if issubclass(kind, Flag):
                described["boundary"] = str(getattr(vars(kind).get("_boundary_"), "name", None))
        elif _is_namedtuple(kind):
            described["fields"] = list(vars(kind)["_fields"])
            described["defaults"] = self.named(dict(vars(kind)["_field_defaults"]), kind.__qualname__)
        elif "__dataclass_fields__" in vars(kind):
            described["dataclass"] = self._dataclass(kind)
        members = {name: member for name, member in sorted(vars(kind).items()) if _is_written(kind, name, member)}
        described["members"] = {name: self._named_member(name, member, kind) for name, member in members.items()}
        return described

    def met_class(self, kind: type) -> None:
        """Notes the source file of a class."""
        if self._files is not None:
            module = kind.__module__ or ""
            self.met(module, source_code.class_file(kind))

    def _dataclass(self, kind: Any) -> Any:
        names = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")
        return {
            "params": {name: getattr(kind.__dataclass_params__, name) for name in names},
            "fields": [self._field(field, kind) for field in vars(kind)["__dataclass_fields__"].values()],
        }

    def _field(self, field: Any, kind: type) -> Any:
        names = ("init", "repr", "hash", "compare", "kw_only", "default", "default_factory")
        values = {name: getattr(field, name) for name in names if getattr(field, name) is not MISSING}
        described = {"name": field.name, "kind": field._field_type.name, "type": self._annotation(field.type, kind)}
        return described | self.named({**values, "metadata": dict(field.metadata)}, f"{kind.__qualname__}.{field.name}")

    def _annotation(self, annotation: Any, kind: type) -> Any:
        if isinstance(annotation, str):
            return annotation
        if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
            return annotation.__qualname__
        text = repr(annotation).replace(f"{kind.__module__}.", "")  # the name of a plug-in tells where it lies
        return printable(text)

    def _named_member(self, name: str, member: Any, kind: type) -> Any:
        try:
            return self._member(member, kind)
        except IdentityError as error:
            raise IdentityError(f"{error} [{name!r}, which {kind.__qualname__} refers to]") from error

    def _member(self, member: Any, kind: type) -> Any:
        if type(member) in (staticmethod, classmethod):
            return {type(member).__name__: self._member(member.__func__, kind)}
        if isinstance(member, property):
            parts = [self._member(each, kind) for each in (member.fget, member.fset, member.fdel)]
            own = source_code.is_own_class(type(member))
            return {"property": parts, "class": self.value(type(member))} if own else {"property": parts}
        if isinstance(member, types.FunctionType):
            unwrapped = inspect.unwrap(member)
            if isinstance(unwrapped, types.FunctionType) and unwrapped.__code__.co_filename.startswith("<"):
                return self.made(unwrapped)
            return self.value(member)
        if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType):
            return {"slot": member.__name__}
        return self.value(member)

    # Descriptors that functools makes ----------------------------------------------------------------------------

    def cached_property(self, member: functools.cached_property[Any]) -> Any:
        """A property that is computed once."""
        return {f"{MARK}cached property": self.value(member.func)}

    def dispatched_method(self, member: Any) -> Any:
        """A method with an implementation for each type."""
        return {f"{MARK}dispatched method": self.value(member.dispatcher)}

    def partial_method(self, member: functools.partialmethod[Any]) -> Any:
        """A method with some of its arguments."""
        parts = (member.func, list(member.args), member.keywords)
        return {f"{MARK}partial method": [self.value(each) for each in parts]}


def _is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and "_fields" in vars(kind) and "_field_defaults" in vars(kind)


def _function_of(member: Any) -> Any:
    if isinstance(member, staticmethod | classmethod):
        member = member.__func__
    return inspect.unwrap(member) if isinstance(member, types.FunctionType) else None


def _is_written(kind: Any, name: str, member: Any) -> bool:
    """Whether the author of a class wrote a member; the rest is what Python and its library keep in such classes."""
    function = _function_of(member)
    module = "" if function is None else str(function.__globals__.get("__name__"))
    generated = module in _GENERATORS or (name == "__new__" and module.startswith("namedtuple_"))
    if name in _BOOKKEEPING or (generated and name.startswith("_")):
        return False
    if issubclass(kind, Enum):
        if function is not None:
            return source_code.is_own_function(function)
        kept = name.startswith("_") and name.endswith("_") and not isinstance(member, property)
        return not kept and name not in kind.__members__
    if _is_namedtuple(kind):
        return name not in _NAMEDTUPLE and name not in vars(kind)["_fields"]
    if "__dataclass_fields__" in vars(kind):
        made = function is not None and name in _DATACLASS_METHODS and function.__code__.co_filename == "<string>"
        return not made and name not in _DATACLASS and not (name == "__hash__" and member is None)
    return True

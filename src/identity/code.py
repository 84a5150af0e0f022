"""Descriptions of code: functions and modules, by name if they are a library's, by source if they are a user's own."""

from __future__ import annotations

import ast
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
from testbed.identity import references, source_code
from testbed.identity.import_names import meant, plain_name
from testbed.identity.normalize import normal_text

_AUDIT = "testbed.tracing.audit"
MARK = "!"  # begins the keys of what is not plain JSON; a mapping with such keys of its own is written as pairs


class CodeDescriber(ABC):
    """Describes functions and modules. Each is described once, and then referred to by number.

    Args:
        files: Is filled with the source files of all code that is met, if given.
    """

    def __init__(self, files: set[str] | None = None) -> None:
        self._files = files
        self._code: dict[int, int] = {}
        self._alive: list[Any] = []  # ids are only good as long as their objects live
        self._copied: set[int] = set()  # registries of dispatchers whose attributes `functools.wraps` has copied

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
        """Notes a source file; for a module of testbed, also the corruptions that it imports."""
        if self._files is None:
            return
        if module.startswith("testbed."):
            self._files |= source_code.files_behind(module)
        if file and not file.startswith("<") and source_code.is_own(module, file):
            self._files.add(os.path.abspath(file))

    # Functions ----------------------------------------------------------------------------------------------------

    def function(self, function: types.FunctionType) -> Any:
        """A function: by name if it belongs to a library or to testbed, else by its source and what it refers to."""
        if is_dispatcher(function):
            return self.dispatcher(function)
        if function.__globals__.get("__name__") == _AUDIT:  # put around another one, which it calls
            return self.value(function.__wrapped__)  # type: ignore[attr-defined]
        if _made_by_singledispatch(function):
            return self._part_of_dispatcher(function)
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
        tree, text = source_code.written(function)
        described = self.surroundings(function)
        package = function.__globals__.get("__package__")
        imported = [self.file(meant(each, code.co_filename)) for each in _imported_modules(tree, package)]
        if any(imported):
            described["imports"] = [each for each in imported if each]
        if own:
            described.update(self._reached(function, tree))
        return {f"{MARK}source": text, **described}

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
        copied: Any = vars(function).get("dispatch")
        if _made_by_singledispatch(copied):  # its registry is among the attributes, too
            self._copied.add(id(captured_variables(copied).get("registry")))
        parts: dict[str, Any] = {
            "defaults": list(function.__defaults__ or ()),
            "keyword defaults": function.__kwdefaults__ or {},
            "attributes": _attributes(function),
            "variables": _sources(captured_variables(function)),
            "globals": _sources(_globals(function)),
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

    def _reached(self, function: types.FunctionType, tree: Any) -> dict[str, Any]:
        """What an own function reaches by way of modules, of the environment and of ``globals()``."""
        known = {**_globals(function), **captured_variables(function)}
        described: dict[str, Any] = {}
        modules = {name for name, item in known.items() if isinstance(item, types.ModuleType)}
        reached: dict[str, Any] = {}
        for chain in sorted(references.attribute_chains(tree, modules)):
            for name, item in self._follow(known[chain[0]], chain):
                if name not in reached:
                    reached.update(self.named({name: item}, function.__qualname__))
        if reached:
            described["reached"] = by_name(reached)
        variables = references.environment_names(tree, known.get)
        if variables:  # by digest: a variable may hold a key
            described["environment"] = {
                name: None if name not in os.environ else self.value(os.environ[name].encode(errors="surrogateescape"))
                for name in sorted(variables)
            }
        if references.calls_globals(tree):
            described["module"] = self._variables(function.__globals__, code=True)
        return described

    def _follow(self, module: types.ModuleType, chain: tuple[str, ...]) -> list[tuple[str, Any]]:
        """The values that a chain of attributes of a module leads to, by name; without those that do not count."""
        found: list[tuple[str, Any]] = []
        for place, name in enumerate(chain[1:], start=2):
            own = source_code.is_own_module(module)
            if name in vars(module):
                item = vars(module)[name]
            elif not own:
                return found  # a library may import a lot to answer
            else:
                try:
                    item = getattr(module, name)
                except Exception:  # a function __getattr__ of the module may raise anything
                    return found
            title = ".".join(chain[:place])
            if isinstance(item, types.ModuleType):
                module = item
                if source_code.is_own_module(module):
                    found.append((title, Source(module)))
                continue
            if own or _counts(module, item):
                found.append((title, item))
            return found
        if source_code.is_own_module(module):  # it is passed on, and anything may be read from it
            found.append((f"{'.'.join(chain)}.*", module))
        return found

    def _variables(self, variables: dict[str, Any], code: bool) -> Any:
        """The data among a module's variables, and if ``code`` its own functions and classes, too.

        Of a package also its modules. What cannot be described is left out.
        """
        again = self.again(variables)
        if again is not None:
            return again
        described = {}
        for name, item in sorted(variables.items()):
            if name.startswith("__"):
                continue
            if isinstance(item, types.ModuleType) and not _is_part(item, variables):
                continue
            if isinstance(item, type | types.FunctionType | types.BuiltinFunctionType):
                own = source_code.is_own_class(item) if isinstance(item, type) else source_code.is_own_function(item)
                if not code or not own:
                    continue
            found = self.attempt(item, _REFUSED)
            if found is not _REFUSED:
                described[name] = found
        return described

    def dispatcher(self, function: Any) -> Any:
        """A function made by `functools.singledispatch`: all its implementations, by the type that they are for."""
        again = self.again(function)
        if again is not None:
            return again
        return {f"{MARK}dispatched": self._implementations(function.registry)}

    def _part_of_dispatcher(self, function: types.FunctionType) -> Any:
        """``dispatch`` or ``register`` of a dispatcher; taken alone, with the implementations that they lead to."""
        described: dict[str, Any] = {f"{MARK}function": f"functools.{function.__code__.co_qualname}"}
        registry = captured_variables(function).get("registry")
        if registry is None or id(registry) in self._copied:
            return described
        again = self.again(registry)
        return {**described, "of": again if again is not None else self._implementations(registry)}

    def _implementations(self, registry: Mapping[type, Any]) -> list[Any]:
        kinds = sorted(registry, key=lambda kind: (kind.__qualname__, kind.__module__))
        return [[self.value(kind), self.value(registry[kind])] for kind in kinds]

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
        """A module, and if it is a user's own all its plain data, since nobody knows what is read from it."""
        described = self.source(Source(module))
        if not source_code.is_own_module(module):
            return described
        return {**described, "variables": self._variables(vars(module), code=False)}

    def source(self, source: Source) -> Any:
        """A module: by name, and if it is a user's own by the source of its file and of the own ones that it uses."""
        module = source.module
        described = self.file(module.__name__, module)
        if described is None:
            self.met(module.__name__, getattr(module, "__file__", None))
        return described or {f"{MARK}module": module.__name__}

    def file(self, name: str, module: types.ModuleType | None = None) -> Any:
        """An own module by its source; None for one that is not."""
        path = source_code.module_file(name, module)
        if path is None:
            if name.startswith("testbed."):
                self.met(name, None)
            return None
        # By name: looking for what a module holds may import it, and it is the same one before and after.
        by_hand = module is not None and sys.modules.get(name) is not module
        again = self.again(module if by_hand else sys.intern(name))
        if again is not None:
            return again
        self.met(name, str(path))
        tree = source_code.file_tree(path)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        uses = [self.file(meant(each, path)) for each in references.imported_modules(tree, package)]
        source = self.value(normal_text(tree).encode(errors="surrogatepass"))
        described = {f"{MARK}module": plain_name(name.rpartition(".")[2]), "source": source}
        return {**described, "uses": [each for each in uses if each]}


class Source:
    """Stands for the source of a module, without what its variables are now."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module


_REFUSED = object()


def is_dispatcher(function: Any) -> bool:
    """Whether a function was made by `functools.singledispatch`."""
    return _made_by_singledispatch(function) and function.__code__.co_name == "wrapper"


def _made_by_singledispatch(function: Any) -> bool:
    if not isinstance(function, types.FunctionType) or function.__globals__ is not vars(functools):
        return False
    return function.__code__.co_qualname.startswith("singledispatch.<locals>.")


def captured_variables(function: types.FunctionType) -> dict[str, Any]:
    """The values of variables of enclosing functions; one that has none yet is described as unset."""
    captured: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:
            captured[name] = {f"{MARK}unset": True}
    return {name: captured[name] for name in sorted(captured)}


@functools.lru_cache(maxsize=4096)
def _imported_modules(tree: ast.AST, package: str | None) -> list[str]:
    """Of the tree of a function, which is kept anyway; those of files are large."""
    return references.imported_modules(tree, package)


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The values of the module variables that a function reads."""
    names = sorted(references.global_names(function.__code__))
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _is_part(module: types.ModuleType, package: dict[str, Any]) -> bool:
    """Whether a module belongs to user code, and lies in the package that has some variables."""
    return module.__name__.startswith(f"{package.get('__name__')}.") and source_code.is_own_module(module)


def _attributes(function: types.FunctionType) -> dict[str, Any]:
    """The attributes of a function, without what `functools` keeps in it for itself."""
    apart = {"__wrapped__"}
    if _made_by_singledispatch(getattr(function, "dispatch", None)):
        apart.add("_clear_cache")  # copied from a dispatcher by `functools.wraps`
    return {key: item for key, item in sorted(vars(function).items()) if key not in apart}


def _sources(variables: dict[str, Any]) -> dict[str, Any]:
    """Variables of a function, of modules the source alone: what the function takes from them is described apart."""
    return {name: Source(item) if isinstance(item, types.ModuleType) else item for name, item in variables.items()}


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

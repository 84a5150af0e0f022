"""Values that a Python source file defines by constants, read without running it.

Libraries keep the names of their models in tables of calls such as ``_cfg(url="…")``, in modules whose import takes
seconds. What is read are literals, names that the file defines, ``dict(…)``, and calls of functions of the file that
return an expression of their arguments, comprehensions over these, and a few operations on texts; everything else is
`UNKNOWN`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

UNKNOWN = object()
_DEEPEST = 50  # calls and names within each other


class StaticModule:
    """A source file.

    Raises:
        OSError: If it cannot be read.
        SyntaxError: If it is not Python.
    """

    def __init__(self, path: Path) -> None:
        self.body = ast.parse(path.read_bytes()).body
        self.functions = {
            statement.name: statement for statement in self.body if isinstance(statement, ast.FunctionDef)
        }
        self.classes = {statement.name: statement for statement in self.body if isinstance(statement, ast.ClassDef)}
        self._assigned = dict(_assignments(self.body))
        self._values: dict[str, Any] = {}

    def named(self, name: str) -> Any:
        """The value of a name of the file."""
        return self._name(name, 0)

    def value(self, node: ast.expr | None) -> Any:
        """The value of an expression at the top of the file."""
        return self._value(node, {}, 0)

    def changed_with(self, name: str) -> set[str]:
        """The names used where a table of the file is changed after it was assigned, as by a loop."""
        used: set[str] = set()
        for statement in self.body:
            if isinstance(statement, ast.For | ast.If | ast.With | ast.Try | ast.Expr | ast.Assign | ast.AugAssign):
                nodes = list(ast.walk(statement))
                if any(_changes(node, name) for node in nodes):
                    used |= {node.id for node in nodes if isinstance(node, ast.Name)}
        return used

    def decorated(self, decorator: str) -> Iterator[ast.FunctionDef]:
        """The functions with a decorator, whether it is called or not."""
        for function in self.functions.values():
            for applied in function.decorator_list:
                called = applied.func if isinstance(applied, ast.Call) else applied
                if isinstance(called, ast.Name) and called.id == decorator:
                    yield function

    def _name(self, name: str, depth: int) -> Any:
        if name not in self._values:
            self._values[name] = UNKNOWN  # of a name that is defined by itself
            self._values[name] = self._value(self._assigned.get(name), {}, depth + 1)
        return self._values[name]

    def _value(self, node: ast.expr | None, local: Mapping[str, Any], depth: int) -> Any:
        if depth > _DEEPEST:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return local[node.id] if node.id in local else self._name(node.id, depth)
        if isinstance(node, ast.Tuple | ast.List):
            return [self._value(element, local, depth) for element in node.elts]
        if isinstance(node, ast.Dict):
            keys = (None if key is None else self._value(key, local, depth) for key in node.keys)
            values = (self._value(value, local, depth) for value in node.values)
            return _dictionary(zip(keys, values, strict=True))
        if isinstance(node, ast.DictComp):
            rows = self._rows(node.generators, local, depth)
            made = rows and ((self._value(node.key, row, depth), self._value(node.value, row, depth)) for row in rows)
            return UNKNOWN if made is None else _dictionary(made)
        if isinstance(node, ast.GeneratorExp | ast.ListComp):
            rows = self._rows(node.generators, local, depth)
            return UNKNOWN if rows is None else [self._value(node.elt, row, depth) for row in rows]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, local, depth + 1)
        return self._computed(node, local, depth + 1)

    def _computed(self, node: ast.expr | None, local: Mapping[str, Any], depth: int) -> Any:
        """The value of an operation on known values."""
        if isinstance(node, ast.JoinedStr):
            parts = [self._value(value, local, depth) for value in node.values]
            return "".join(parts) if all(isinstance(part, str) for part in parts) else UNKNOWN
        if isinstance(node, ast.FormattedValue):
            plain = node.conversion == -1 and node.format_spec is None
            return self._value(node.value, local, depth) if plain else UNKNOWN
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._value(node.left, local, depth), self._value(node.right, local, depth)
            return left + right if isinstance(left, str) and isinstance(right, str) else UNKNOWN
        if isinstance(node, ast.Subscript):
            of, at = self._value(node.value, local, depth), self._value(node.slice, local, depth)
            return of[at] if isinstance(of, list) and isinstance(at, int) and -len(of) <= at < len(of) else UNKNOWN
        if isinstance(node, ast.IfExp):
            test = self._value(node.test, local, depth)
            return UNKNOWN if test is UNKNOWN else self._value(node.body if test else node.orelse, local, depth)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = (self._value(side, local, depth) for side in (node.left, node.comparators[0]))
            return _compared(node.ops[0], *sides)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
            given = [self._value(arg, local, depth) for arg in node.args]
            return _method(self._value(node.func.value, local, depth), node.func.attr, given)
        return UNKNOWN

    def _rows(
        self, generators: Sequence[ast.comprehension], local: Mapping[str, Any], depth: int
    ) -> list[dict[str, Any]] | None:
        """Yields the values of a comprehension's names, turn by turn; None if that is not known."""
        rows = [dict(local)]
        for generator in generators:
            longer = []
            for row in rows:
                over = self._value(generator.iter, row, depth)
                if not isinstance(over, list | dict):
                    return None
                for item in over:
                    bound = _bound(generator.target, item)
                    tests = [self._value(condition, {**row, **(bound or {})}, depth) for condition in generator.ifs]
                    if bound is None or UNKNOWN in tests:
                        return None
                    longer += [{**row, **bound}] if all(tests) else []
            rows = longer
        return rows

    def _call(self, node: ast.Call, local: Mapping[str, Any], depth: int) -> Any:
        given = [self._value(arg, local, depth) for arg in node.args]
        named = _dictionary((keyword.arg, self._value(keyword.value, local, depth)) for keyword in node.keywords)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if named is UNKNOWN:
            return UNKNOWN
        if name == "dict" and name not in self.functions:
            parts = [_dictionary(value) if _are_items(value) else value for value in given]
            return _dictionary([*((None, part) for part in parts), (None, named)])
        function = self.functions.get(name)
        if function is None or not isinstance(function.body[-1], ast.Return):
            return UNKNOWN
        if any(not _is_text(statement) for statement in function.body[:-1]):
            return UNKNOWN
        takes = [arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)]
        defaults = dict(zip(reversed(function.args.args), reversed(function.args.defaults), strict=False))
        bound = {arg.arg: self.value(default) for arg, default in defaults.items()}
        bound |= dict(zip(takes, given, strict=False)) | {key: value for key, value in named.items() if key in takes}
        if function.args.kwarg is not None:
            bound[function.args.kwarg.arg] = {key: value for key, value in named.items() if key not in takes}
        return self._value(function.body[-1].value, bound, depth)


def _assignments(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yields names with their values; not those that refer to the name itself, as in ``table = checked(table)``."""
    for statement in body:
        if isinstance(statement, ast.Assign):
            used = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            names = (target.id for target in statement.targets if isinstance(target, ast.Name))
            yield from ((name, statement.value) for name in names if name not in used)
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            yield statement.target.id, statement.value


def _changes(node: ast.AST, name: str) -> bool:
    """Checks whether a node changes what a name stands for: an assignment to an item, or a method call on it."""
    if isinstance(node, ast.Assign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(target, ast.Subscript) and _is_name(target.value, name) for target in targets)
    method = node.func if isinstance(node, ast.Call) else None
    if not isinstance(method, ast.Attribute) or method.attr not in ("update", "pop", "setdefault", "clear"):
        return False
    return _is_name(method.value, name)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _bound(target: ast.expr, item: Any) -> dict[str, Any] | None:
    """The names of a target with their values; None if it has another form."""
    if isinstance(target, ast.Name):
        return {target.id: item}
    if not isinstance(target, ast.Tuple) or not isinstance(item, list):
        return None
    names = [element.id for element in target.elts if isinstance(element, ast.Name)]
    return dict(zip(names, item, strict=True)) if len(names) == len(item) == len(target.elts) else None


def _compared(sign: ast.cmpop, left: Any, right: Any) -> Any:
    if UNKNOWN in (left, right):
        return UNKNOWN
    if isinstance(sign, ast.Eq | ast.NotEq):
        return (left == right) is isinstance(sign, ast.Eq)
    if isinstance(sign, ast.In | ast.NotIn) and isinstance(right, list | dict | str):
        return (left in right) is isinstance(sign, ast.In)
    return UNKNOWN


def _method(of: Any, name: str, given: Sequence[Any]) -> Any:
    """The result of a method of a text or a dictionary that changes nothing."""
    if isinstance(of, dict) and name == "items" and not given:
        return [list(item) for item in of.items()]
    texts = isinstance(of, str) and all(isinstance(value, str | int) for value in given)
    try:
        return getattr(of, name)(*given) if texts and name in ("split", "replace", "lower", "upper") else UNKNOWN
    except (TypeError, ValueError):
        return UNKNOWN


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _are_items(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, list) and len(item) == 2 for item in value)


def _dictionary(items: Any) -> Any:
    """A dictionary of keys and values; a value without a key is a dictionary whose items belong to it."""
    dictionary: dict[Any, Any] = {}
    for key, value in items:
        if key is None:
            if not isinstance(value, dict):
                return UNKNOWN
            dictionary |= value
        elif isinstance(key, str | int):
            dictionary[key] = value
        else:
            return UNKNOWN
    return dictionary

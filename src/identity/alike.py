"""Whether two descriptions of a definition say the same, up to how its code is written and where its files lie.

A renamed local variable, a type hint, an unrelated function in an imported module, a folder or a file under another
name: each gives a definition another identity, though it hardly moves a number. What differs in nothing else is not
computed anew: a run checks a few samples, and then takes the stored evaluation for its own.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from testbed.identity.code import MARK

SOURCE, MODULE, AGAIN, PATH = f"{MARK}source", f"{MARK}module", f"{MARK}again", f"{MARK}path"
# Parts of a function's description that repeat the text of whole modules.
_REPEATED = frozenset({"imports"})
_EXACTLY = frozenset({"samples", "dtype"})  # parts of an identity
_READ_BY_NAME = frozenset({"locals", "vars", "dir", "eval", "exec"})


class Comparison:
    """Compares descriptions.

    Args:
        folders: Where relative names of files are looked for.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(dict.fromkeys(folders))

    def identities(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether two identities of cells say the same.

        Samples, precision and the content of weights must be equal.
        """
        before, now = ({key: each[key] for key in each if key != "scheme"} for each in (before, now))
        if before.keys() != now.keys() or any(before.get(key) != now.get(key) for key in _EXACTLY):
            return False
        if before["model"]["weights"] != now["model"]["weights"] and (
            "network" not in now or before["network"]["state"] != now["network"]["state"]
        ):
            return False
        parts = [key for key in now if key not in (*_EXACTLY, "model")]
        return self.alike(before["model"]["spec"], now["model"]["spec"]) and all(
            self.alike(before[key], now[key]) for key in parts
        )

    def alike(self, before: Any, now: Any) -> bool:
        """Whether two JSON values from `testbed.identity.describe.describe` say the same."""
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            return self._mappings(before, now)
        if isinstance(before, list) and isinstance(now, list):
            return len(before) == len(now) and all(map(self.alike, before, now))
        if isinstance(before, str) and isinstance(now, str):
            return before == now or self._is_file(now)
        return type(before) is type(now) and bool(before == now)

    def _mappings(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        kinds = {MODULE, AGAIN}
        if before.keys() & kinds and now.keys() & kinds:  # what is taken from a module is described apart
            return before.get(MODULE) == now.get(MODULE) or AGAIN in before or AGAIN in now
        if SOURCE in before and SOURCE in now and not self._texts(before[SOURCE], now[SOURCE]):
            return False
        names = [name for name in {**before, **now} if name not in _REPEATED and name != SOURCE]
        return (SOURCE in before) == (SOURCE in now) and all(
            name in before and name in now and self.alike(before[name], now[name]) for name in names
        )

    def _texts(self, before: str, now: str) -> bool:
        if before == now:
            return True
        trees = [without_names(text) for text in (before, now)]
        return None not in trees and self._nodes(*trees)

    def _nodes(self, before: Any, now: Any) -> bool:
        if isinstance(before, ast.Constant) and isinstance(now, ast.Constant):
            return self.alike(before.value, now.value)
        if isinstance(before, ast.AST):
            return type(before) is type(now) and all(
                self._nodes(getattr(before, name, None), getattr(now, name, None)) for name in before._fields
            )
        if isinstance(before, list):
            return isinstance(now, list) and len(before) == len(now) and all(map(self._nodes, before, now))
        return type(before) is type(now) and bool(before == now)

    def _is_file(self, name: str) -> bool:
        """Whether a text names a file, or with a slash in it also a folder, that is there now."""
        if not name or "\0" in name or len(name) > os.pathconf("/", "PC_PATH_MAX"):
            return False
        places = [name] if os.path.isabs(name) else [os.path.join(folder, name) for folder in self._folders]
        there = os.path.exists if os.sep in name else os.path.isfile
        return any(there(place) for place in places)


# Text without the names of local variables ------------------------------------------------------------------------


def without_names(text: str) -> ast.AST | None:
    """The syntax tree of a function's text with its local variables numbered and without type hints.

    Returns:
        The tree; None for a text that this version of Python cannot parse.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return _Numbered({}, 0).visit(tree)  # type: ignore[no-any-return]


class _Numbered(ast.NodeTransformer):
    """Numbers the local variables of functions, in the order in which they occur.

    Parameters keep their names, which callers use, and so do local functions, classes and imports.

    Args:
        names: Local variables of enclosing functions → what stands for them.
        depth: How many functions are around.
    """

    def __init__(self, names: Mapping[str, str], depth: int) -> None:
        self._names = dict(names)
        self._depth = depth

    def _visit_function(self, node: Any) -> Any:
        for outside in ("decorator_list",):
            setattr(node, outside, [self.visit(each) for each in getattr(node, outside, [])])
        arguments = node.args
        arguments.defaults = [self.visit(each) for each in arguments.defaults]
        arguments.kw_defaults = [each and self.visit(each) for each in arguments.kw_defaults]
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for each in parameters:
            if each is not None:
                each.annotation = None
        if not isinstance(node, ast.Lambda):
            node.returns = None
        own = {each.arg for each in parameters if each is not None}
        body = node.body if isinstance(node.body, list) else [node.body]
        scope = _Numbered({name: new for name, new in self._names.items() if name not in own}, self._depth + 1)
        scope.number(body, own)
        visited = [scope.visit(each) for each in body]
        node.body = [each for each in visited if each is not None] if isinstance(node.body, list) else visited[0]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function

    def number(self, body: Sequence[ast.AST], kept: set[str]) -> None:
        """Numbers the variables that some statements of one scope assign."""
        found = _Assigned()
        for each in body:
            found.visit(each)
        own = [name for name in found.names if name not in found.outer]
        for name in own:
            self._names.pop(name, None)
        if not found.reads_names:
            new = [name for name in own if name not in kept | found.fixed]
            self._names.update({name: f"local_{self._depth}_{place}" for place, name in enumerate(new)})

    def _visit_comprehension(self, node: Any) -> Any:
        targets = _Assigned()
        for each in node.generators:
            targets.visit(each.target)
        scope = _Numbered(self._names, self._depth)
        scope._names.update({name: f"each_{self._depth}_{place}" for place, name in enumerate(targets.names)})
        node.generators[0].iter = self.visit(node.generators[0].iter)
        for place, each in enumerate(node.generators):
            each.target = scope.visit(each.target)
            each.iter = each.iter if place == 0 else scope.visit(each.iter)
            each.ifs = [scope.visit(test) for test in each.ifs]
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                setattr(node, part, scope.visit(getattr(node, part)))
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """In a function, an annotation says nothing."""
        if self._depth == 0:
            return self.generic_visit(node)
        if node.value is None:
            return None
        return self.visit(ast.Assign(targets=[node.target], value=node.value, lineno=node.lineno))

    def visit_Name(self, node: ast.Name) -> Any:
        """Replaces a local variable."""
        node.id = self._names.get(node.id, node.id)
        return node

    def _visit_named(self, node: Any) -> Any:
        name = "rest" if isinstance(node, ast.MatchMapping) else "name"
        value = getattr(node, name)
        if value is not None:
            setattr(node, name, self._names.get(value, value))
        return self.generic_visit(node)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = visit_MatchMapping = _visit_named

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        """Names variables of an enclosing function."""
        node.names = [self._names.get(name, name) for name in node.names]
        return node


class _Assigned(ast.NodeVisitor):
    """What the statements of one scope assign.

    Attributes:
        names: In the order in which they occur.
        fixed: Names that are kept: of functions, classes and imports, and of module variables.
        outer: Names of variables of an enclosing function.
        reads_names: Whether the code may ask for its variables by name.
    """

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.fixed: set[str] = set()
        self.outer: set[str] = set()
        self.reads_names = False

    def visit_Name(self, node: ast.Name) -> None:
        """Notes an assigned variable."""
        if not isinstance(node.ctx, ast.Load):
            self.names[node.id] = None

    def visit_Call(self, node: ast.Call) -> None:
        """Notes what reads variables by name."""
        self.reads_names |= isinstance(node.func, ast.Name) and node.func.id in _READ_BY_NAME
        self.generic_visit(node)

    def _visit_named(self, node: Any) -> None:
        value = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if value is not None:
            self.names[value] = None
        self.generic_visit(node)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = visit_MatchMapping = _visit_named

    def _visit_definition(self, node: Any) -> None:
        self.names[node.name] = None
        self.fixed.add(node.name)
        inner = _Assigned()
        for each in node.body:
            inner.visit(each)
        self.reads_names |= inner.reads_names  # a closure may ask for them

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_definition

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A scope of its own."""
        inner = _Assigned()
        inner.visit(node.body)
        self.reads_names |= inner.reads_names

    def _visit_comprehension(self, node: Any) -> None:
        inside = [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
        for each in inside:  # these belong to the function around
            self.visit(each.target)
        self.visit(node.generators[0].iter)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def _visit_import(self, node: Any) -> None:
        names = {(each.asname or each.name).partition(".")[0] for each in node.names}
        self.names.update(dict.fromkeys(names))
        self.fixed |= names

    visit_Import = visit_ImportFrom = _visit_import

    def visit_Global(self, node: ast.Global) -> None:
        """Names module variables."""
        self.fixed.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        """Names variables of an enclosing function."""
        self.outer.update(node.names)

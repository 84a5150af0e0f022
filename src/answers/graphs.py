"""Solutions of problems on graphs that were seen in pictures (NPMM): valid or not, and how good they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from testbed.answers.columns import truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import UNREAD, Columns, Verdict

Graph = Mapping[str, Any]

_ANSWER = "Answer:"
_LABEL = re.compile(r"answer\W{0,4}:", re.IGNORECASE)
_LIST = re.compile(r"\[([^\]]*)\]")
_BRACKETS = re.compile(r"[{\[(]([^)}\]]*)[}\])]")
_TWO_LISTS = re.compile(r"\[\s*\[([^\]]*)\]\s*,\s*\[([^\]]*)\]\s*\]")
_PATH = re.compile(r"(?<!\d)\d++(?:\s*+(?:->|→)\s*+\d+)+")
_QUOTES = str.maketrans("", "", "'\"")
_LONGEST = 1 << 16  # characters of a solution or a graph


def task_of(columns: Columns) -> str:
    """The problem: the second part of the column ``data_source``."""
    return columns.get("data_source", "").partition("/")[2].partition("/")[0]


def published_solution(columns: Columns, text: str) -> Verdict:
    """The quality of a solution after ``Answer:``, relative to the best one; 0 for one that is not valid.

    Args:
        columns: The columns of the row; ``graph`` is a dictionary, and the right answer the best value.
        text: The answer.
    """
    graph, best = _graph(columns), _number(truth(columns))
    value_of, smaller = _PROBLEMS.get(task_of(columns), (None, True))
    if graph is None or best is None or value_of is None:
        return UNREAD
    try:
        value = value_of(graph, text) if _ANSWER in text and len(text) <= _LONGEST else None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # of another form than the problem's
        value = None
    if value is None:
        return UNREAD
    above, below = (best, value) if smaller else (value, best)
    return Verdict(f"{value:g}", min(above / below, 1.0) if below else 0.0, "solution")


def solution(columns: Columns, text: str) -> Verdict:
    """The same of the last list or path of the final part, with ``Answer:`` in any form before it, or without it."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    labels = [*_LABEL.finditer(final)]
    rest = final[labels[-1].end() :] if labels else final
    closed = rest[: max(map(rest.rfind, "]})")) + 1]  # brackets that stay open would be looked through again and again
    forms = ((_TWO_LISTS, closed), (_PATH, rest), (_BRACKETS, closed))
    found = [match[0] for pattern, part in forms for match in [*pattern.finditer(part)][-1:]]
    said = found[0] if found else rest.splitlines()[0] if labels and rest.strip() else ""
    plain = said if _TWO_LISTS.fullmatch(said) else f"[{', '.join(re.findall(r'-?[0-9]+', said))}]"
    return published_solution(_named(columns), f"{_ANSWER} {plain}")


def _named(columns: Columns) -> Columns:
    """The row of an independent set with neighbours that are texts, as the nodes are; numbers never equal those."""
    graph = _graph(columns) if task_of(columns) == "NpMaximumSet" else None
    if graph is None:
        return columns
    return {**columns, "graph": repr({node: [str(end) for end in ends] for node, ends in graph.items()})}


def _number(cell: str) -> float | None:
    """The number in a cell."""
    try:
        return float(cell)
    except ValueError:
        return None


def _graph(columns: Columns) -> Graph | None:
    cell = columns.get("graph", "")
    try:
        graph: Any = ast.literal_eval(cell) if len(cell) <= _LONGEST else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        graph = None
    if not isinstance(graph, dict):
        return None
    return {str(node): neighbours for node, neighbours in graph.items()}


def _last(text: str) -> str:
    return text.split(_ANSWER)[-1].strip()


def _integers(text: str) -> list[int] | None:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        return None


def _literal(text: str) -> list[Any] | None:
    try:
        value: Any = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, list) else None


def _vertices(text: str) -> set[int] | None:
    """The numbers of the first list; empty parts do not count."""
    match = _LIST.search(_last(text).translate(_QUOTES))
    return None if match is None else _numbers(match[1])


def _numbers(text: str) -> set[int] | None:
    parts = [part for part in text.split(",") if part.strip()]
    found = _integers(",".join(parts)) if parts else []
    return None if found is None else set(found)


def _sequence(text: str) -> list[int] | None:
    """Numbers in brackets of any kind, with arrows, or with commas alone."""
    said = _last(text)
    if said.startswith("[") and said.endswith("]"):
        said = said[1:-1]
    elif "->" in said:
        said = said.replace("->", ",")
    else:
        match = _BRACKETS.search(said.translate(_QUOTES))
        said = match[1] if match else said.translate(_QUOTES)
    return _integers(said)


def _inside(vertices: set[int] | None, graph: Graph) -> bool:
    return vertices is not None and all(0 <= vertex < len(graph) for vertex in vertices)


def _edges(graph: Graph) -> list[tuple[int, int]]:
    return [(int(node), int(neighbour)) for node, neighbours in graph.items() for neighbour in neighbours]


def _dominating(graph: Graph, text: str) -> float | None:
    chosen = _vertices(text)
    if chosen is None or not chosen or not _inside(chosen, graph):
        return None
    near = [{int(neighbour) for neighbour in graph.get(str(node), ())} for node in range(len(graph))]
    return len(chosen) if all(node in chosen or near[node] & chosen for node in range(len(graph))) else None


def _covering(graph: Graph, text: str) -> float | None:
    chosen = _vertices(text)
    if chosen is None or not _inside(chosen, graph):
        return None
    return len(chosen) if all(a in chosen or b in chosen for a, b in _edges(graph) if a < b) else None


def _breaking_cycles(graph: Graph, text: str) -> float | None:
    chosen = _vertices(text)
    if chosen is None or not _inside(chosen, graph):
        return None
    rest = [(a, b) for a, b in _edges(graph) if a not in chosen and b not in chosen]
    return None if _has_cycle({(min(edge), max(edge)) for edge in rest}) else len(chosen)


def _has_cycle(edges: set[tuple[int, int]]) -> bool:
    """Checks whether undirected edges close a cycle, by joining the components that they connect."""
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        while (above := parent.setdefault(node, node)) != node:
            node = above
        return node

    for a, b in edges:
        first, second = root(a), root(b)
        if first == second:
            return True
        parent[first] = second
    return False


def _coloring(graph: Graph, text: str) -> float | None:
    colors = _sequence(text)
    if not colors or -1 in colors or len(colors) != len(graph):
        return None
    return len(set(colors)) if all(colors[a] != colors[b] for a, b in _edges(graph)) else None


def _tour(graph: Graph, text: str) -> float | None:
    path = _sequence(text)
    if not path or path[0] != path[-1] or sorted(path[:-1]) != list(range(len(graph))):
        return None
    steps = [graph.get(str(here), {}).get(str(there)) for here, there in pairwise(path)]
    return None if None in steps else sum(steps)


def _cycle(graph: Graph, text: str) -> float | None:
    path = _sequence(text)
    if not path or path[0] != path[-1] or len(set(path[:-1])) < len(path) - 1:
        return None
    connected = all(there in graph.get(str(here), ()) for here, there in pairwise(path))
    return len(path) if connected else None


def _two_sides(text: str) -> tuple[set[int], set[int]] | None:
    match = _TWO_LISTS.search(_last(text).translate(_QUOTES))
    first, second = (_numbers(match[1]), _numbers(match[2])) if match else (None, None)
    return None if first is None or second is None else (first, second)


def _largest_cut(graph: Graph, text: str) -> float | None:
    sides = _two_sides(text)
    if sides is None or sides[0] & sides[1] or sides[0] | sides[1] != set(range(graph.get("num_vertices", 0))):
        return None
    ends = [(*map(int, edge.split("-")), weight) for edge, weight in graph.get("edges", {}).items()]
    return float(sum(weight for a, b, weight in ends if (a in sides[0]) != (b in sides[0])))


def _bisection(graph: Graph, text: str) -> float | None:
    said = _literal(_last(text))
    if said is None or len(said) != 2 or not all(isinstance(side, list) for side in said):
        return None
    first, second = (set(side) for side in said)
    nodes = {int(node) for node in graph}
    uneven = abs(len(first) - len(second))
    if first & second or first | second != nodes or uneven > len(nodes) % 2:
        return None
    return float(sum(graph[str(a)].get(str(b), 0) for a in first for b in second))


def _joined(graph: Graph) -> set[frozenset[int]]:
    """The edges in either direction; one of weight 0 does not count."""
    found = set()
    for node, ends in graph.items():
        weights = ends if isinstance(ends, dict) else dict.fromkeys(ends, 1)
        found |= {frozenset((int(node), int(end))) for end, weight in weights.items() if weight != 0}
    return found


def _clique(graph: Graph, text: str) -> float | None:
    said = _literal(text.split(_ANSWER, 1)[-1].strip())
    nodes = [int(node) for node in said or ()]
    known = {int(node) for node in graph} | {end for edge in _edges(graph) for end in edge}
    if not said or len(set(said)) < len(said) or not set(nodes) <= known:
        return None
    edges = _joined(graph)
    pairs = ((a, b) for place, a in enumerate(nodes) for b in nodes[place + 1 :])
    return len(nodes) if all(a == b or frozenset((a, b)) in edges for a, b in pairs) else None


def _independent(graph: Graph, text: str) -> float | None:
    said = text.split(_ANSWER)[-1].split("\n")[0].strip()
    whole = said.startswith("[") and said.endswith("]")
    nodes: Sequence[Any] | None = _literal(said) if whole else _integers(said.replace("[", "").replace("]", ""))
    if nodes is None or not {str(node) for node in nodes} <= set(graph):
        return None
    names = [str(node) for node in nodes]
    if len(set(names)) < len(names):
        return None
    pairs = ((a, b) for place, a in enumerate(names) for b in names[place + 1 :])
    return None if any(b in graph[a] for a, b in pairs) else len(names)


# The problem → the value of a valid solution, and whether a smaller one is better.
_PROBLEMS: Mapping[str, tuple[Callable[[Graph, str], float | None], bool]] = {
    "NpGcpD": (_coloring, True),
    "NpFeedbackVertexSet": (_breaking_cycles, True),
    "NpVertexCover": (_covering, True),
    "NpDominatingSet": (_dominating, True),
    "NpMinimumCut": (_bisection, True),
    "NpMaximumCut": (_largest_cut, False),
    "NpMaximumCliqueProblem": (_clique, False),
    "NpMaximumSet": (_independent, False),
    "NpTsp": (_tour, True),
    "NpHamiltonianCycle": (_cycle, False),
}
GROUPS = {
    "constraint": ("NpGcpD", "NpFeedbackVertexSet"),
    "covering": ("NpVertexCover", "NpDominatingSet"),
    "partitioning": ("NpMinimumCut", "NpMaximumCut"),
    "subgraph": ("NpMaximumCliqueProblem", "NpMaximumSet"),
    "path": ("NpTsp", "NpHamiltonianCycle"),
}

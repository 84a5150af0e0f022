"""Tables in HTML as trees, and how similar two of them are (TEDS, arXiv 1911.10683), as CC-OCR compares them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from testbed.answers.texts import edit_distance
from testbed.answers.trees import Tree, tree_distance

_NAME = re.compile(r"[a-z][a-z0-9:_.-]*")
_VOID = frozenset(("br", "img", "hr", "input", "meta", "link", "col", "wbr"))
_OUTSIDE = frozenset(("html", "body"))  # which are there already
_CLOSES = {
    **dict.fromkeys(("td", "th"), ("td", "th")),
    "tr": ("td", "th", "tr"),
    **dict.fromkeys(("tbody", "thead", "tfoot"), ("td", "th", "tr", "tbody", "thead", "tfoot", "caption")),
    "table": ("p",),
    "p": ("p",),
}
_CELL = "td"
_MOST_NODES = 1500
_FIRST_MARK = 0xE000  # characters for private use stand for tags in cells


class _Node:
    """An element: its branches, and for each its text and what follows it."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag, self.attributes = tag, attributes
        self.branches: list[_Node] = []
        self.text, self.tail = "", ""

    def below(self) -> int:
        """The number of elements within it."""
        count, pending = 0, list(self.branches)
        while pending:
            node = pending.pop()
            count += 1
            pending += node.branches
        return count


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.body = _Node("body", {})
        self.open = [self.body]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = _NAME.match(tag)
        if named is None or named[0] in _OUTSIDE:
            return
        while len(self.open) > 1 and self.open[-1].tag in _CLOSES.get(named[0], ()):
            self.open.pop()
        node = _Node(named[0], dict(attrs))
        self.open[-1].branches.append(node)
        if node.tag not in _VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        tags = [node.tag for node in self.open]
        if tag in tags[1:]:
            del self.open[len(tags) - 1 - tags[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        node = self.open[-1]
        if node.branches:
            node.branches[-1].tail += data
        else:
            node.text += data


def similarity(said: str, right: str) -> float:
    """1 − the edit distance of two tables per the number of elements of the larger one; 0 without a table in each.

    A table must stand in no other element.
    """
    tables = [_table(text) for text in (said, right)]
    if tables[0] is None or tables[1] is None:
        return 0.0
    size = max(table.below() for table in tables if table is not None)
    if not size or size > _MOST_NODES:
        return 0.0
    marks: dict[str, str] = {}
    first, second = (_tree(table, marks) for table in tables if table is not None)
    return 1 - tree_distance(first, second, lambda _: 1, _instead) / size


def _table(text: str) -> _Node | None:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return next((node for node in reader.body.branches if node.tag == "table"), None)


def _tree(node: _Node, marks: dict[str, str], depth: int = 0) -> Tree:
    """A tree whose labels are the names of elements; of a cell also its spans and its text."""
    if node.tag == _CELL:
        spans = "/".join(node.attributes.get(name) or "1" for name in ("colspan", "rowspan"))
        return Tree(f"{_CELL} {spans} {_content(node, marks, depth)}")
    return Tree(node.tag, tuple(_tree(branch, marks, depth + 1) for branch in node.branches if depth < 100))


def _content(node: _Node, marks: dict[str, str], depth: int) -> str:
    """The characters of a cell; each tag in it is one."""
    parts = [node.text]
    for branch in node.branches if depth < 100 else ():
        start, end = (marks.setdefault(f"{slash}{branch.tag}", chr(_FIRST_MARK + len(marks))) for slash in ("", "/"))
        parts += [start, _content(branch, marks, depth + 1), end, "" if branch.tag == _CELL else branch.tail]
    return "".join(parts)


def _instead(one: str, other: str) -> float:
    first, second = one.split(" ", 2), other.split(" ", 2)
    if first[:2] != second[:2]:
        return 1.0
    if len(first) < 3 or not (first[2] or second[2]):
        return 0.0
    return edit_distance(first[2], second[2]) / max(len(first[2]), len(second[2]))

"""YAML as its specification has it: plain values alone, numbers as people mean them, each key of a mapping once.

The yaml library follows YAML 1.1, where 010 is 8, 1:30 is 90, and 1e1 is a text. Numbers are read as YAML 1.2 says.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, ClassVar

import yaml

from testbed.calls import first_line

_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_NUMBERS = {  # YAML 1.2, 10.3.2
    _INT: r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    _FLOAT: r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}
_BASES = {"0o": 8, "0x": 16}


class YamlError(ValueError):
    """A text is not YAML; the message gives the reason and the line."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Refuses a key that is given twice, of which yaml takes the last; reads numbers as YAML 1.2 does."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_INT, _FLOAT)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_int(self, node: Any) -> int:
        """A whole number: decimal also with leading zeros, 0o17, 0xff."""
        text = self.construct_scalar(node)
        return int(text, _BASES.get(text[:2], 10))

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping, each key once."""
        seen: set[Hashable] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            value = key.value if key.tag.endswith(":merge") else self.construct_object(key)
            if value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", key.start_mark)
            seen.add(value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Quotes a text that YAML 1.1 or 1.2 takes for a number."""


for _tag, _pattern in _NUMBERS.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})$"), list("-+.0123456789"))
_Loader.add_constructor(_INT, _Loader.construct_int)


def from_yaml(text: str) -> Any:
    """The value in a YAML text; raises YamlError if it is not YAML, or gives a key twice."""
    try:
        return yaml.load(text, _Loader)
    except Exception as error:  # yaml raises almost anything on a value that is not of the type that its tag names
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        said = problem or first_line(error)
        raise YamlError(f"{said} (line {mark.line + 1})" if mark is not None else said) from error


def to_yaml(value: Any) -> str:
    """A value as YAML, which readers of YAML 1.1 and 1.2 read alike."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000))

"""YAML as its specification has it: plain values alone, and each key of a mapping once (YAML 1.2, 3.2.1.1)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from testbed.calls import first_line


class YamlError(ValueError):
    """A text is not YAML; the message gives the reason and the line."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Refuses a key that is given twice, of which yaml takes the last."""

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


def from_yaml(text: str) -> Any:
    """The value in a YAML text; raises YamlError if it is not YAML, or gives a key twice."""
    try:
        return yaml.load(text, _Loader)
    except Exception as error:  # yaml raises almost anything on a value that is not of the type that its tag names
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        said = problem or first_line(error)
        raise YamlError(f"{said} (line {mark.line + 1})" if mark is not None else said) from error

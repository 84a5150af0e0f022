"""The generic registry: names, places, suggestions, families."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import pytest

from testbed.errors import DefinitionError, DuplicateNameError, TestbedError, UnknownNameError
from testbed.registry import Registry
from testbed.registry.table import DefinitionSource, natural_key


class Rule:
    """A family: some listed names, and others that it knows under an alias."""

    def __init__(self, name: str, names: Iterable[str], aliases: dict[str, str] | None = None) -> None:
        self.name = name
        self.listed = list(names)
        self.aliases = aliases or {}
        self.built: list[str] = []

    def names(self) -> Iterable[str]:
        return self.listed

    def canonical(self, name: str) -> str | None:
        return name if name in self.listed else self.aliases.get(name)

    def build(self, name: str) -> str:
        self.built.append(name)
        return f"{self.name} made {name}"


@pytest.fixture
def registry() -> Registry[str]:
    return Registry("gadget", "the command that lists gadgets")


# Adding and getting -----------------------------------------------------------------------------------------------


def test_what_is_added_is_found_under_its_name(registry: Registry[str]) -> None:
    assert registry.add("hammer", "a hammer") == "a hammer"
    assert registry.get("hammer") == "a hammer"
    assert registry.canonical("hammer") == "hammer"
    assert "hammer" in registry
    assert "nail" not in registry
    assert len(registry) == 1


def test_a_registry_is_a_mapping_too(registry: Registry[str]) -> None:
    registry.add("nail", "a nail")
    rule = registry.add_family(Rule("rule", ["screw"]))
    assert list(registry) == registry.keys() == ["nail", "screw"]
    items = registry.items()
    assert next(items) == ("nail", "a nail")
    assert rule.built == []  # type: ignore[attr-defined]
    assert next(items) == ("screw", "rule made screw")
    assert list(registry.values()) == ["a nail", registry["screw"]]


def test_an_explicit_definition_replaces_that_of_a_family(registry: Registry[str]) -> None:
    registry.add("nail", "a nail")
    registry.add("bolt", "mine")
    registry.add_family(Rule("rule", ["bolt", "screw"]))
    assert registry["bolt"] == "mine"
    assert [name for name in registry if registry.replaces(name)] == ["bolt"]


@pytest.mark.parametrize("other", [None, 3, ("hammer",)])
def test_what_is_no_name_is_not_contained(registry: Registry[str], other: object) -> None:
    registry.add("hammer", "a hammer")
    assert other not in registry


def test_names_that_differ_in_case_are_two(registry: Registry[str]) -> None:
    registry.add("Hammer", "large")
    registry.add("hammer", "small")
    assert (registry.get("Hammer"), registry.get("hammer")) == ("large", "small")


def test_a_name_taken_twice_raises_and_names_both_places(registry: Registry[str]) -> None:
    registry.add("hammer", "first")
    with pytest.raises(DuplicateNameError) as raised:
        registry.add("hammer", "second")
    message = str(raised.value)
    lines = re.findall(re.escape(__file__) + r":(\d+)", message)
    assert "two gadgets" in message
    assert "'hammer'" in message
    assert len(lines) == 2
    assert int(lines[1]) - int(lines[0]) == 2
    assert registry.get("hammer") == "first"


def test_a_name_taken_twice_by_given_places_names_those(registry: Registry[str]) -> None:
    registry.add("hammer", "first", DefinitionSource("one.py", 3))
    with pytest.raises(DuplicateNameError, match=r"one\.py:3.*two\.py:40"):
        registry.add("hammer", "second", DefinitionSource("two.py", 40))


def test_the_source_of_a_definition_is_where_it_was_added(registry: Registry[str]) -> None:
    registry.add("hammer", "a hammer")
    assert re.fullmatch(re.escape(__file__) + r":\d+", registry.source("hammer"))
    registry.add("nail", "a nail", DefinitionSource("nails.py", 7))
    assert registry.source("nail") == "nails.py:7"


NO_NAMES = {
    "non-empty string": (None, "", 5, b"bytes", ("a",)),
    "white space": ("a b", " a", "a\t", "a\nb", "a\u00a0b", "a\x07", "\u200b"),
    r"pattern.*option.*comment": ("a*", "a?", "a[0]", "-a", "--a", "#a"),
}


@pytest.mark.parametrize(("why", "name"), [(why, name) for why, names in NO_NAMES.items() for name in names])
def test_what_cannot_be_a_name_is_refused_where_it_stands(registry: Registry[str], why: str, name: object) -> None:
    with pytest.raises(DefinitionError, match=why) as raised:
        registry.add(name, "thing")  # type: ignore[arg-type]
    assert __file__ in str(raised.value)
    assert repr(name) in str(raised.value)
    assert len(registry) == 0


@pytest.mark.parametrize(
    "name",
    ["resnet50", "timm/vit.augreg_in21k", "ViT-B-32,laion400m_e32", "hf-hub:owner/name", "pgd.linf.eps0.5", "é#1"],
)
def test_published_names_can_be_registered(registry: Registry[str], name: str) -> None:
    registry.add(name, "thing")
    assert name in registry


# Unknown names ----------------------------------------------------------------------------------------------------


def test_an_unknown_name_suggests_the_nearest_and_lists_a_few(registry: Registry[str]) -> None:
    for name in ("hammer", "nail", "saw"):
        registry.add(name, name)
    with pytest.raises(UnknownNameError) as raised:
        registry.get("hamer")
    message = str(raised.value)
    assert "unknown gadget 'hamer'" in message
    assert "did you mean 'hammer'?" in message
    assert "hammer, nail, saw" in message


def test_an_unknown_name_suggests_those_that_contain_it(registry: Registry[str]) -> None:
    registry.add("timm/convnext_base.fb_in22k_ft_in1k_384", "thing")
    registry.add("saw", "thing")
    with pytest.raises(UnknownNameError, match=r"did you mean 'timm/convnext_base\.fb_in22k_ft_in1k_384'"):
        registry.get("ConvNext")


def test_many_names_are_counted_and_the_command_is_told(registry: Registry[str]) -> None:
    for number in range(50):
        registry.add(f"gadget{number}", "thing")
    with pytest.raises(UnknownNameError) as raised:
        registry.get("xyz")
    message = str(raised.value)
    assert "50" in message
    assert "the command that lists gadgets" in message
    assert "gadget49" not in message
    assert "did you mean" not in message


def test_looking_for_an_unknown_name_does_not_list_all(registry: Registry[str]) -> None:
    family = Rule("rule", ["a", "b"], {"other": "a"})
    family.names = lambda: pytest.fail("names are listed")  # type: ignore[method-assign]
    registry.add_family(family)
    registry.add("hammer", "a hammer")
    assert [registry.find(name) for name in ("hammer", "other", "saw")] == ["a hammer", "rule made a", None]


def test_an_unknown_name_of_an_empty_registry_says_that_there_is_none(registry: Registry[str]) -> None:
    with pytest.raises(UnknownNameError, match="none are registered"):
        registry.get("hammer")


def test_the_error_for_an_unknown_name_is_a_lookup_error_with_a_plain_text(registry: Registry[str]) -> None:
    with pytest.raises(LookupError) as raised:
        registry.get("it's")
    assert isinstance(raised.value, TestbedError)
    assert not isinstance(raised.value, KeyError)
    assert str(raised.value).startswith("unknown gadget")


def test_the_source_of_an_unknown_name_is_unknown_too(registry: Registry[str]) -> None:
    with pytest.raises(UnknownNameError, match="'hammer'"):
        registry.source("hammer")


# Order ------------------------------------------------------------------------------------------------------------


def test_names_come_in_natural_order(registry: Registry[str]) -> None:
    expected = ["2b", "10a", "a2", "A3", "a10", "a10b2", "a10b10", "b", "resnet18", "resnet101"]
    for name in reversed(expected):
        registry.add(name, name)
    assert registry.names() == expected


def test_the_natural_key_compares_numbers_with_words() -> None:
    assert sorted(["x.1", "1.x", "x", "1"], key=natural_key) == ["1", "1.x", "x", "x.1"]
    assert sorted(["v10", "V9", "v09"], key=natural_key) == ["V9", "v09", "v10"]


def test_the_order_of_names_that_differ_in_case_alone_is_the_same_everywhere(registry: Registry[str]) -> None:
    names = ["".join(letters) for letters in itertools.product(*[(low, low.upper()) for low in "abcdef"])]
    for name in names:
        registry.add(name, name)
    assert registry.names() == sorted(names, key=lambda name: (natural_key(name), name))


def test_a_name_with_a_raised_digit_can_be_listed(registry: Registry[str]) -> None:
    registry.add("l2", "thing")
    registry.add("1²", "thing")
    assert sorted(registry.names()) == ["1²", "l2"]


# Families ---------------------------------------------------------------------------------------------------------


def test_the_names_of_a_family_are_listed_and_none_is_built(registry: Registry[str]) -> None:
    family = registry.add_family(Rule("rule", ["b10", "b9"]))
    registry.add("a", "explicit")
    assert registry.names() == ["a", "b9", "b10"]
    assert len(registry) == 3
    assert "b9" in registry
    assert registry.canonical("b9") == "b9"
    assert registry.source("b9") == "family rule"
    assert family.built == []


def test_a_definition_of_a_family_is_built_once_when_it_is_asked_for(registry: Registry[str]) -> None:
    family = registry.add_family(Rule("rule", ["a", "b"]))
    assert registry.get("a") == "rule made a"
    assert registry.get("a") is registry.get("a")
    assert family.built == ["a"]


def test_an_alias_means_the_canonical_name_and_is_not_listed(registry: Registry[str]) -> None:
    family = registry.add_family(Rule("rule", ["net.v1"], {"net": "net.v1", "library/net": "net.v1"}))
    assert registry.canonical("net") == "net.v1"
    assert "library/net" in registry
    assert registry.names() == ["net.v1"]
    assert registry.get("net") is registry.get("library/net") is registry.get("net.v1")
    assert family.built == ["net.v1"]


def test_a_family_may_know_names_that_it_does_not_list(registry: Registry[str]) -> None:
    registry.add_family(Rule("rule", [], {"/path/to.pt": "/path/to.pt"}))
    assert registry.names() == []
    assert registry.get("/path/to.pt") == "rule made /path/to.pt"


def test_an_explicit_definition_stands_before_a_family_s(registry: Registry[str]) -> None:
    family = registry.add_family(Rule("rule", ["net"], {"alias": "net"}))
    registry.add("net", "my own")
    assert registry.get("net") == "my own"
    assert registry.get("alias") == "my own"
    assert registry.names() == ["net"]
    assert registry.source("alias") == registry.source("net")
    assert registry.source("net").startswith(__file__)
    assert family.built == []


def test_an_explicit_definition_stands_before_a_family_s_that_was_built_already(registry: Registry[str]) -> None:
    registry.add_family(Rule("rule", ["net"]))
    assert registry.get("net") == "rule made net"
    registry.add("net", "my own")
    assert registry.get("net") == "my own"


def test_an_explicit_definition_under_an_alias_stands_before_the_family_too(registry: Registry[str]) -> None:
    registry.add_family(Rule("rule", ["net.v1"], {"net": "net.v1"}))
    registry.add("net", "my own")
    assert registry.canonical("net") == "net"
    assert registry.get("net") == "my own"
    assert registry.get("net.v1") == "rule made net.v1"


def test_a_name_claimed_by_two_families_raises_and_names_both(registry: Registry[str]) -> None:
    registry.add_family(Rule("first", ["net", "one"]))
    registry.add_family(Rule("second", ["net", "two"]))
    assert registry.names() == ["net", "one", "two"]
    for ask in (registry.get, registry.canonical):
        with pytest.raises(DuplicateNameError, match="first and second"):
            ask("net")
    assert registry.get("two") == "second made two"
    registry.add("net", "my own")  # which decides
    assert registry.get("net") == "my own"


def test_two_families_cannot_have_one_name(registry: Registry[str]) -> None:
    registry.add_family(Rule("rule", ["a"]))
    with pytest.raises(DuplicateNameError, match="'rule'"):
        registry.add_family(Rule("rule", ["b"]))
    assert registry.names() == ["a"]


def test_names_of_families_are_suggested(registry: Registry[str]) -> None:
    registry.add_family(Rule("rule", ["hammer", "nail"]))
    with pytest.raises(UnknownNameError, match="did you mean 'hammer'"):
        registry.get("hamer")

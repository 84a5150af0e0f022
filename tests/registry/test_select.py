"""From words to names: names, patterns, collections, files of names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from testbed.errors import DefinitionError, DuplicateNameError, UnknownNameError
from testbed.registry import Registry
from testbed.registry import registry as real_registry
from testbed.registry.catalog import Collections
from testbed.registry.select import matching, read_names, select

NAMES = ("a1", "a2", "a10", "B1", "b2", "timm/net.v1")
Choose = Callable[..., list[str]]
Write = Callable[[str, str], Path]


class Library:
    """A family that lists one name and knows it under another, too."""

    name = "library"

    def names(self) -> Iterable[str]:
        return ["timm/net.v1"]

    def canonical(self, name: str) -> str | None:
        return "timm/net.v1" if name in ("timm/net", "timm/net.v1") else None

    def build(self, name: str) -> int:
        raise AssertionError("selecting builds nothing")


@pytest.fixture
def registry() -> Registry[int]:
    registry: Registry[int] = Registry("gadget", "the command that lists gadgets")
    for name in NAMES[:-1]:
        registry.add(name, 0)
    registry.add_family(Library())
    return registry


@pytest.fixture
def collections() -> Collections:
    return Collections("gadget")


@pytest.fixture
def choose(registry: Registry[int], collections: Collections) -> Choose:
    return lambda *words: select(registry, collections, words)


@pytest.fixture
def names_file(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file of names into the working folder."""
    monkeypatch.chdir(tmp_path)
    return write


# Names and patterns -----------------------------------------------------------------------------------------------


def test_names_come_in_the_order_in_which_they_are_asked_for_and_once(choose: Choose) -> None:
    assert choose() == []
    assert choose("b2", "a10", "b2", "a1", "a10") == ["b2", "a10", "a1"]
    assert choose("a2", "a*") == ["a2", "a1", "a10"]


def test_an_alias_becomes_the_canonical_name_and_counts_once(choose: Choose) -> None:
    assert choose("timm/net", "timm/net.v1") == ["timm/net.v1"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a*", ["a1", "a2", "a10"]),
        ("a?", ["a1", "a2"]),
        ("[ab]2", ["a2", "b2"]),
        ("?1", ["a1", "B1"]),
        ("*", ["a1", "a2", "a10", "B1", "b2", "timm/net.v1"]),
        ("timm/*", ["timm/net.v1"]),
        ("*net*", ["timm/net.v1"]),
        ("b*", ["b2"]),
        ("B*", ["B1"]),
    ],
)
def test_a_pattern_chooses_the_names_it_matches_in_natural_order(
    choose: Choose, pattern: str, expected: list[str]
) -> None:
    assert choose(pattern) == expected


def test_a_pattern_that_matches_nothing_is_an_error_that_names_it(choose: Choose, registry: Registry[int]) -> None:
    for ask in (lambda: choose("a1", "z*"), lambda: matching(registry, "z*")):
        with pytest.raises(UnknownNameError, match=r"'z\*'") as raised:
            ask()
        assert "the command that lists gadgets" in str(raised.value)


@pytest.mark.parametrize("word", ["a3", "", ".", "/", "A1", "a1,a2", "a1\0"])
def test_an_unknown_word_is_an_error_that_suggests(choose: Choose, word: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        choose("a1", word)
    assert repr(word) in str(raised.value)
    assert "a10" in str(raised.value)


def test_a_very_long_word_is_an_unknown_name_too(choose: Choose) -> None:
    with pytest.raises(UnknownNameError):
        choose(",".join(["resnet50"] * 40))


# Collections ------------------------------------------------------------------------------------------------------


def test_a_collection_chooses_its_members_in_their_order(choose: Choose, collections: Collections) -> None:
    collections.add("few", ["b2", "a?", "timm/net"])
    assert choose("few") == ["b2", "a1", "a2", "timm/net.v1"]
    assert choose("a2", "few", "a10") == ["a2", "b2", "a1", "timm/net.v1", "a10"]


def test_several_files_may_add_to_a_collection(choose: Choose, collections: Collections) -> None:
    collections.add("few", ["b2"])
    collections.add("few", ["a1"])
    assert choose("few") == ["b2", "a1"]
    assert collections.names() == ["few"]


def test_the_members_of_a_collection_may_be_computed_when_they_are_asked_for(
    choose: Choose, collections: Collections
) -> None:
    members: list[str] = []
    collections.add("later", lambda: members)
    members.append("a2")
    assert choose("later") == ["a2"]


def test_collections_may_contain_collections(choose: Choose, collections: Collections) -> None:
    collections.add("all", ["inner", "b2", "inner"])
    collections.add("inner", ["innermost", "a2"])
    collections.add("innermost", ["a10", "a2"])
    assert choose("all") == ["a10", "a2", "b2"]


@pytest.mark.parametrize("ring", [("one", "two", "three"), ("one",)])
def test_a_circle_of_collections_is_an_error_that_shows_the_way_round(
    choose: Choose, collections: Collections, ring: tuple[str, ...]
) -> None:
    for name, following in zip(ring, (*ring[1:], ring[0]), strict=True):
        collections.add(name, ["a1", following])
    with pytest.raises(DefinitionError, match=f"contains itself: {' → '.join((*ring, ring[0]))}$"):
        choose("one")


def test_a_collection_with_the_name_of_a_definition_is_refused(choose: Choose, collections: Collections) -> None:
    collections.add("a1", ["a2"])
    with pytest.raises(DuplicateNameError, match=r"both a gadget .* and a collection"):
        choose("a1")


def test_an_unknown_member_of_a_collection_is_an_error_that_names_it(choose: Choose, collections: Collections) -> None:
    collections.add("few", ["a1", "gone"])
    with pytest.raises(UnknownNameError, match="'gone'"):
        choose("few")


def test_the_names_of_collections_are_suggested(choose: Choose, collections: Collections) -> None:
    collections.add("imagenet-c", ["a1"])
    with pytest.raises(UnknownNameError, match="did you mean 'imagenet-c'"):
        choose("imagenet_c")


@pytest.mark.parametrize("name", ["", "two words", "a*", "-c", None])
def test_a_collection_has_a_name_that_can_be_written_on_a_command_line(collections: Collections, name: str) -> None:
    with pytest.raises(DefinitionError):
        collections.add(name, ["a1"])
    assert collections.names() == []


@pytest.mark.parametrize("kind", ["models", "eval_settings"])
def test_no_collection_of_testbed_is_hidden_by_a_name(kind: str) -> None:
    real_registry.load()
    table = getattr(real_registry, kind)
    collections = {"models": real_registry.model_collections, "eval_settings": real_registry.eval_setting_collections}
    assert collections[kind].names()
    assert [name for name in collections[kind].names() if table.canonical(name)] == []


def test_every_collection_of_testbed_chooses_something() -> None:
    real_registry.load()
    for name in real_registry.model_collections.names():
        assert select(real_registry.models, real_registry.model_collections, [name])
    for name in real_registry.eval_setting_collections.names():
        assert select(real_registry.eval_settings, real_registry.eval_setting_collections, [name])


# Files of names ---------------------------------------------------------------------------------------------------


def test_a_file_of_names_holds_names_patterns_and_collections(
    choose: Choose, collections: Collections, names_file: Write
) -> None:
    collections.add("few", ["b2"])
    names_file("mine.txt", "a10\nfew\na?\n")
    assert choose("mine.txt", "B1") == ["a10", "b2", "a1", "a2", "B1"]


def test_comments_and_blank_lines_in_a_file_of_names_are_ignored(choose: Choose, names_file: Write) -> None:
    names_file("mine.txt", "# mine\n\na1 # the first\n   \n  a2  \n#a10\n\n")
    assert choose("mine.txt") == ["a1", "a2"]


def test_a_number_sign_inside_a_word_is_part_of_it_and_a_comment_may_come_after_a_tab(names_file: Write) -> None:
    assert read_names(names_file("mine.txt", "a#1\nb#2 # comment\nc\t# tab\n")) == ["a#1", "b#2", "c"]


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbfa1\na2\n", b"a1\r\na2\r\n", b"a1\na2", "a1\n# größer\na2".encode()], ids=ascii
)
def test_files_of_names_written_on_other_systems_are_read(choose: Choose, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    assert choose(str(path)) == ["a1", "a2"]


def test_a_file_of_names_in_another_encoding_is_an_error_that_names_it(choose: Choose, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes("a1\n".encode("utf-16"))
    with pytest.raises(UnknownNameError, match=r"mine\.txt is neither UTF-8 text"):
        choose(str(path))


def test_a_file_of_names_may_have_any_extension(choose: Choose, names_file: Write) -> None:
    names_file("mine.list", "a1\n")
    assert choose("mine.list") == ["a1"]


def test_a_name_stands_before_a_file_of_that_name(choose: Choose, names_file: Write) -> None:
    names_file("a1", "a2\n")
    assert choose("a1") == ["a1"]


def test_a_missing_file_of_names_is_told_as_such(choose: Choose) -> None:
    with pytest.raises(UnknownNameError, match=r"no file of gadget names at lists/mine\.txt"):
        choose("lists/mine.txt")


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n  # yet\n"])
def test_a_file_without_names_is_an_error(choose: Choose, names_file: Write, content: str) -> None:
    names_file("mine.txt", content)
    with pytest.raises(UnknownNameError, match=r"mine\.txt has no names"):
        choose("mine.txt")


def test_an_unknown_name_in_a_file_is_an_error_that_names_it(choose: Choose, names_file: Write) -> None:
    names_file("mine.txt", "a1\na11\n")
    with pytest.raises(UnknownNameError, match="'a11'"):
        choose("mine.txt")


def test_a_file_of_names_may_name_another(choose: Choose, names_file: Write) -> None:
    names_file("outer.txt", "b2\ninner.txt\n")
    names_file("inner.txt", "a1\n")
    assert choose("outer.txt") == ["b2", "a1"]


@pytest.mark.parametrize("other", ["outer.txt", os.path.join(".", "outer.txt"), "inner.txt"])
def test_files_of_names_that_name_each_other_are_an_error(choose: Choose, names_file: Write, other: str) -> None:
    names_file("outer.txt", f"a1\n{other}\n")
    names_file("inner.txt", "outer.txt\n")
    with pytest.raises(DefinitionError, match="contains itself"):
        choose("outer.txt")

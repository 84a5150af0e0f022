"""Prompt templates: each has its place for the class name, or is refused with its line."""

from __future__ import annotations

import json

import pytest

from testbed.data.language import prompts
from testbed.errors import DataError, DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.inputs import Inputs, using


def of_lines(folder, *lines: str) -> prompts.Templates:
    (folder / "templates.txt").write_text("\n".join(lines) + "\n")
    return prompts.templates("mine", folders=[folder])


@pytest.mark.parametrize("place", ["{}", "{classname}", "{0}", "%s", "{c}"])
def test_a_place_that_all_templates_have_alike_is_read(place, tmp_path):
    lines = [f"a photo of a {place}.", f"a {place} beside another {place}"]
    assert of_lines(tmp_path, *lines) == ["a photo of a {c}.", "a {c} beside another {c}"]
    (tmp_path / "t.json").write_text(json.dumps({"mine": lines}))
    with using(Inputs(templates=str(tmp_path / "t.json"))):
        assert prompts.templates("mine") == ["a photo of a {c}.", "a {c} beside another {c}"]


def test_blank_lines_of_a_text_file_are_no_templates(tmp_path):
    assert of_lines(tmp_path, "", "a {c}.", "  ", "the {c}") == ["a {c}.", "the {c}"]
    with pytest.raises(DataError, match="has no prompt templates; it should have one per line"):
        of_lines(tmp_path, "", " ")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a drawing of {}.", r"line 3 has the place \{\} for the class name where others have \{c\}"),
        ("a photo of a {classname}.", r"line 3 has the place \{classname\} for the class name where others"),
        ("a photo of something", r"line 3 has no place \{c\} for the class name: 'a photo of something'"),
        ("a photo of a {c", r"line 3 should have the place \{c\} for the class name: 'a photo of a \{c' \(.*\)"),
        ("a photo of a c}", r"line 3 should have the place \{c\}"),
        ("a {c} in a {place}", r"line 3 has several places, \{c\}, \{place\}"),
        ("a {{c}}", r"line 3 should have the place \{c\}.*doubled brace"),
        ("a {c.name} {c:>5}", r"line 3 should have the place \{c\}"),
    ],
)
def test_one_template_without_its_place_is_refused_with_its_line(line, why, tmp_path):
    with pytest.raises(DataError, match=rf"templates\.txt: {why}"):
        of_lines(tmp_path, "a photo of the number {c}.", "", line, "a {c}")
    (tmp_path / "t.json").write_text(json.dumps({"mine": ["a {c}", line]}))
    with (
        using(Inputs(templates=str(tmp_path / "t.json"))),
        pytest.raises(DataError, match=r"t\.json: template 2 of 'mine'"),
    ):
        prompts.templates("mine")


def test_templates_of_a_definition_are_checked_as_well():
    def setting(*templates: str) -> EvalSetting:
        data = StandardDataset(name="pets")
        return EvalSetting("pets", data, None, class_names=["cat", "dog"], templates=list(templates))

    assert setting("a {}.").prompts.texts(None) == [["a cat."], ["a dog."]]
    with pytest.raises(DefinitionError, match="eval setting 'pets': template 2 has no place"):
        setting("a {c}.", "a photo").prompts.texts(None)

"""Prompts of zero-shot settings: class names, templates, dictionaries of prompts, and functions that give them."""

from __future__ import annotations

import pytest

from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset


def setting(**options):
    return EvalSetting(name="s", dataset=StandardDataset(path="/data"), size=1, **options)


def test_templates_are_filled_with_every_class_name():
    made = setting(class_names=["cat", "sea lion"], templates=["a photo of a {c}.", "{c}, a {c}"])
    assert made.prompts.texts(None) == [
        ["a photo of a cat.", "cat, a cat"],
        ["a photo of a sea lion.", "sea lion, a sea lion"],
    ]
    assert made.prompts.templates is not None
    assert made.prompts.spec(None) == {
        "class_names": ["cat", "sea lion"],
        "templates": ["a photo of a {c}.", "{c}, a {c}"],
    }


def test_braces_and_percent_signs_in_names_and_templates_are_left_alone():
    made = setting(class_names=["{0} %s {c}"], templates=["{x} {c} 100%"])
    assert made.prompts.texts(None) == [["{x} {0} %s {c} 100%"]]


def test_a_template_without_the_placeholder_is_taken_as_it_is():
    assert setting(class_names=["a", "b"], templates=["nothing"]).prompts.texts(None) == [["nothing"], ["nothing"]]


def test_a_dictionary_gives_each_class_its_own_prompts():
    templates = {"dog": ["a dog barks", "a dog"], "cat": ["a cat meows"], "unused": ["never"]}
    made = setting(class_names=["cat", "dog"], templates=templates)
    assert made.prompts.texts(None) == [["a cat meows"], ["a dog barks", "a dog"]]
    assert made.prompts.spec(None)["templates"] == {"cat": ["a cat meows"], "dog": ["a dog barks", "a dog"]}


def test_prompts_of_a_dictionary_are_not_filled_in():
    made = setting(class_names=["cat"], templates={"cat": ["{c}"]})
    assert made.prompts.texts(None) == [["{c}"]]


def test_functions_are_called_when_they_are_needed_and_not_before():
    calls = []

    def names():
        calls.append("names")
        return ("cat", "dog")

    def templates():
        calls.append("templates")
        return ("a {c}",)

    made = setting(class_names=names, templates=templates)
    assert made.prompts.templates is not None
    assert calls == []
    assert made.prompts.texts(None) == [["a cat"], ["a dog"]]
    assert sorted(set(calls)) == ["names", "templates"]


def test_the_names_of_the_data_set_are_the_default():
    made = setting(templates=["a {c}"])
    assert made.prompts.texts(["x", "y"]) == [["a x"], ["a y"]]
    assert setting(class_names=["own"], templates=["a {c}"]).prompts.texts(["x", "y"]) == [["a own"]]


@pytest.mark.parametrize("names", [None, []])
def test_without_class_names_there_are_no_prompts(names):
    with pytest.raises(DefinitionError, match=r"'s' has no class names"):
        setting(templates=["a {c}"]).prompts.texts(names)


def test_without_templates_there_are_no_prompts():
    made = setting(class_names=["cat"])
    assert made.prompts.templates is None
    with pytest.raises(DefinitionError, match=r"'s' has no prompt templates"):
        made.prompts.texts(None)
    with pytest.raises(DefinitionError, match="prompt templates"):
        made.prompts.spec(["cat"])


@pytest.mark.parametrize("templates", [{"cat": ["a cat"]}, {"cat": ["a cat"], "dog": []}])
def test_a_class_without_prompts_is_named(templates):
    with pytest.raises(DefinitionError, match="no prompts for the class 'dog'"):
        setting(class_names=["cat", "dog"], templates=templates).prompts.texts(None)


def test_an_empty_list_of_templates_is_an_error():
    with pytest.raises(DefinitionError, match="no prompts for the class 'cat'"):
        setting(class_names=["cat"], templates=[]).prompts.texts(None)

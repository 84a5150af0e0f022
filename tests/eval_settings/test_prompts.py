"""Prompts of zero-shot settings: class names, templates, dictionaries of prompts, and functions that give them."""

from __future__ import annotations

import pytest

from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset


def setting(**options):
    return EvalSetting(name="s", dataset=StandardDataset(path="/data"), size=1, **options)


LIONS = (["cat", "sea lion"], ["a photo of a {c}.", "{c}, a {c}"])
OWN = {"dog": ["a dog barks", "a dog"], "cat": ["{c} meows"], "unused": ["never"]}


@pytest.mark.parametrize(
    ("names", "templates", "texts"),
    [
        (*LIONS, [["a photo of a cat.", "cat, a cat"], ["a photo of a sea lion.", "sea lion, a sea lion"]]),
        (["{0} %s {c}"], ["{c} 100%"], [["{0} %s {c} 100%"]]),
        (["cat", "dog"], OWN, [["{c} meows"], ["a dog barks", "a dog"]]),  # each class its own, not filled in
    ],
)
def test_templates_are_filled_with_every_class_name(names, templates, texts):
    made = setting(class_names=names, templates=templates)
    assert made.prompts.texts(None) == texts
    used = {name: templates[name] for name in names} if isinstance(templates, dict) else templates
    assert made.prompts.spec(None) == {"class_names": names, "templates": used}


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


@pytest.mark.parametrize("templates", [{"cat": ["a cat"]}, {"cat": ["a cat"], "dog": []}, []])
def test_a_class_without_prompts_is_named(templates):
    with pytest.raises(DefinitionError, match="no prompts for the class 'dog'" if templates else "class 'cat'"):
        setting(class_names=["cat", "dog"], templates=templates).prompts.texts(None)

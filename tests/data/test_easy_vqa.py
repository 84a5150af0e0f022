"""easy-VQA: the questions and pictures of its package, beside what the package itself gives."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import easy_vqa
import numpy as np
import pytest

from testbed.api.evaluate import evaluate
from testbed.data.libraries import easy_vqa as reading
from testbed.data.libraries.easy_vqa import EasyVQA
from testbed.errors import DataError, MissingExtraError
from testbed.registry import registry

# Says the colour of the shape to every question, read off the picture.
PLUGIN = """
import numpy as np
from testbed.models.model_base import Generation, Generator
from testbed.registry import registry

COLOURS = {
    "red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0), "teal": (0, 128, 128),
    "black": (0, 0, 0), "gray": (128, 128, 128), "brown": (139, 69, 19),
}

class Eye:
    def generate(self, messages, config):
        return [Generation(f"{self.see(message).capitalize()}.") for message in messages]

    def see(self, message):
        (picture,) = [part for part in message.parts if not isinstance(part, str)]
        pixels = np.asarray(picture.image()).reshape(-1, 3).astype(int)
        shape = pixels[pixels.min(1) < 200]
        inner = np.median(shape, axis=0)
        return min(COLOURS, key=lambda name: np.abs(inner - COLOURS[name]).sum())

registry.add_model(Generator("eye", Eye, architecture={"eye": 1}, weights="1"))
"""


def test_the_questions_and_pictures_are_those_that_the_package_gives():
    source = EasyVQA()
    questions, answers, pictures = easy_vqa.get_test_questions()
    paths = easy_vqa.get_test_image_paths()
    assert len(source) == registry.get_eval_setting("easy-vqa").size == len(questions)
    assert [each["question"] for each in source.targets] == questions
    assert [each["answer"] for each in source.targets] == answers
    for position in (0, 1, 100, 5000, len(questions) - 1):
        (picture,) = source.row(position).pictures
        assert picture.data == Path(paths[pictures[position]]).read_bytes()
    assert len(set(source.groups)) == len(paths)
    assert Counter(each["category"] for each in source.slices) == {"yes or no": 7136, "shape": 1257, "colour": 1280}
    assert len(set(source.digests(range(300)))) == 300


def test_a_model_that_sees_colours_is_right_about_colours_and_nothing_else(tmp_path):
    (tmp_path / "eye.py").write_text(PLUGIN)
    registry.load([tmp_path / "eye.py"])
    found = evaluate("eye", "easy-vqa", db=str(tmp_path / "a.db"), limit=100, executor="inline")
    values = {each.slice: each.value for each in found.frame.itertuples() if each.metric == "accuracy"}
    asked = [EasyVQA().targets[int(each)] for each in found.samples("eye", "easy-vqa")["sample"]]
    share = np.mean([each["category"] == "colour" for each in asked])
    assert 0.05 < share < 0.3
    assert values == {
        "overall": pytest.approx(share),
        "category/colour": 1,
        "category/shape": 0,
        "category/yes or no": 0,
    }


def test_the_package_is_named_with_its_extra_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs the package easy-vqa: pip install -e '\.\[easy-vqa\]'$"):
        EasyVQA()


@pytest.mark.parametrize("content", ["{", "{}", "[]", '[["what?", "red"]]', '[["what?", "red", "0"]]'])
def test_questions_of_another_form_are_refused(content, tmp_path, monkeypatch):
    (tmp_path / "data" / "test").mkdir(parents=True)
    (tmp_path / "data" / "test" / "questions.json").write_text(content)
    monkeypatch.setattr(reading, "_folder", lambda: tmp_path)
    with pytest.raises(DataError, match=r"questions\.json (cannot be read|should be a list of)"):
        EasyVQA()

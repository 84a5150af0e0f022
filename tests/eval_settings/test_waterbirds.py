"""Waterbirds: the groups of its table, the worst of them, and the mean by training shares."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from testbed.api.evaluate import evaluate
from testbed.errors import DataError
from testbed.eval_settings.waterbirds import FOLDER
from testbed.inputs import Inputs, using
from testbed.metrics.scorers.group_accuracy import GroupAccuracy
from testbed.registry import registry

# y, split, place
TRAINED = [(0, 0, 0)] * 6 + [(0, 0, 1)] + [(1, 0, 0)] + [(1, 0, 1)] * 2
TESTED = [(0, 2, 0)] * 2 + [(0, 2, 1)] * 2 + [(1, 2, 0)] * 2 + [(1, 2, 1)] * 2
SHARES = {"landbird on land": 0.6, "landbird on water": 0.1, "waterbird on land": 0.1, "waterbird on water": 0.2}
# Says waterbird where the image is blue.
PLUGIN = """
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

def load():
    import torch
    class Blue(torch.nn.Module):
        def forward(self, images):
            return torch.stack([images[:, 1].mean((1, 2)), images[:, 2].mean((1, 2))], dim=1)
    return Blue()

registry.add_model(Model("blue", StandardTransform(8, 8), load, 8))
"""


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / FOLDER
    folder.mkdir()
    lines = ["img_id,img_filename,y,split,place,place_filename"]
    for number, (label, split, place) in enumerate(TRAINED + TESTED):
        lines.append(f"{number},birds/{number}.png,{label},{split},{place},none")
        path = folder / "birds" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        colour = (0, 0, 200) if place else (0, 200, 0)
        Image.fromarray(np.full((8, 8, 3), colour, dtype=np.uint8) + np.uint8(number)).save(path)
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_groups_and_their_training_shares_are_those_of_the_table(root, tmp_path):
    with using(Inputs.from_environment().but(data_root=str(root))):
        source = registry.get_eval_setting("waterbirds").dataset.open()
    assert list(source.targets) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert {each["group"]: each["group_training_share"] for each in source.slices} == SHARES


def test_a_model_that_looks_at_the_background_has_a_bad_worst_group(root, tmp_path):
    plugin = tmp_path / "blue.py"
    plugin.write_text(PLUGIN)
    done = evaluate("blue", "waterbirds", plugins=[plugin], data_root=root, db=tmp_path / "a.db", executor="inline")
    values = {row.metric: row.value for row in done.frame.itertuples() if row.slice == "overall"}
    assert values["top1"] == 0.5
    assert values["worst_group_top1"] == 0
    assert values["top1_by_training_shares"] == pytest.approx(0.8)


def test_errors_are_those_of_groups_that_were_drawn_by_themselves():
    logits = np.array([[1.0, 0]] * 5)
    slices = [{"g": "x", "g_training_share": 3}] * 3 + [{"g": "y", "g_training_share": 1}] * 2
    found = GroupAccuracy("g")(logits, [0, 0, 1, 0, 1], list("abcde"), slices, None)
    metrics = {(each.name, each.slice): each for each in found if hasattr(each, "value")}
    weighted = metrics["top1_by_training_shares", "overall"]
    assert weighted.value == pytest.approx(0.75 * 2 / 3 + 0.25 / 2)
    expected = np.sqrt(0.75**2 * (2 / 9) / 2 + 0.25**2 * 0.25)
    assert weighted.stderr == pytest.approx(expected)
    assert (metrics["worst_group_top1", "overall"].value, metrics["worst_group_top1", "overall"].n) == (0.5, 2)
    assert metrics["top1", "g/x"].value == pytest.approx(2 / 3)


def test_a_wrong_table_is_refused(root):
    path = root / FOLDER / "metadata.csv"

    def refused(text, said):
        path.write_text(text)
        with (
            using(Inputs.from_environment().but(data_root=str(root))),
            pytest.raises(DataError, match=said),
        ):
            registry.get_eval_setting("waterbirds").dataset.open()

    refused("img_filename,y,split\n", "has no column place")
    refused("img_filename,y,split,place\na.png,2,2,0\n", "line 2: y and place are 0 or 1")
    path.unlink()
    with using(Inputs.from_environment().but(data_root=str(root))), pytest.raises(DataError, match="cannot be read"):
        registry.get_eval_setting("waterbirds").dataset.open()

"""An image that is too large to decode is a row with its reason, as an unreadable one; the rest goes on."""

from __future__ import annotations

import json

import pytest
from cli_world import WORLD
from PIL import Image

from testbed.db.store import Store

FOLDER = """
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.registry import registry

registry.add_eval_setting(EvalSetting(name="pictures", dataset=StandardDataset(path={path!r}), size=4))
"""


@pytest.fixture
def run(program, tmp_path):
    """A function that runs a model on four pictures: one of 169 megapixels, one of just above one."""
    sizes = {
        "a/small.png": (20, 20),
        "a/huge.png": (13_000, 13_000),
        "b/small.png": (20, 20),
        "b/big.png": (1001, 1000),
    }
    for name, size in sizes.items():
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("1", size).save(path)
    (tmp_path / "folder.py").write_text(FOLDER.format(path=str(tmp_path / "pictures")))

    def run(*words, **options):
        given = ("--plugin", WORLD, "--plugin", "folder.py", "--models", "world-plain", "--eval-settings", "pictures")
        return program("eval.py", *given, "--executor", "inline", *words, **options)

    return run


def reasons(tmp_path):
    with Store.open(str(tmp_path / "testbed.db")) as store:
        latest = [each for each in store.evaluations.find() if each.status == "complete"][-1]
        return store.outputs.errors(latest.id)


def test_an_image_of_169_megapixels_counts_as_wrong_with_its_reason(run, tmp_path):
    done = run("--json")
    (outcome,) = json.loads(done.stdout)["outcomes"]
    assert (outcome["status"], outcome["unreadable"]) == ("complete", 1)
    assert reasons(tmp_path) == {
        0: f"{tmp_path}/pictures/a/huge.png is not decoded: it has 13,000 × 13,000 pixels (169.0 megapixels), more than"
        " the limit of 89 megapixels; --max-megapixels or TESTBED_MAX_MEGAPIXELS raises it"
    }


def test_the_limit_is_an_option_and_a_variable(run, tmp_path):
    assert json.loads(run("--max-megapixels", "1", "--json").stdout)["outcomes"][0]["unreadable"] == 2
    assert sorted(reasons(tmp_path)) == [0, 2]
    again = run("--override", "--workers", "1", "--json", TESTBED_MAX_MEGAPIXELS="2")
    assert json.loads(again.stdout)["outcomes"][0]["unreadable"] == 1
    refused = run("--override", code=1, TESTBED_MAX_MEGAPIXELS="many")
    assert "TESTBED_MAX_MEGAPIXELS is 'many'; expected a whole number, at least 1" in refused.stderr
    stopped = run("--override", "--strict", code=1)
    assert "huge.png is not decoded" in stopped.stderr

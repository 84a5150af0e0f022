"""``eval.py --vlmevalkit FILE.json``: VLMEvalKit's configuration files say which models run on which sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, completion, serving
from table_world import PHOTOS, questions

from testbed.models.base.served import OPENAI
from testbed.models.loading.vlmeval_config import register
from testbed.registry import registry
from testbed.registry.catalog import Catalog

pytestmark = pytest.mark.usefixtures("shared_cache")
pytest.importorskip("openai")


def written(path: Path, models: dict[str, Any], data: dict[str, Any]) -> str:
    path.write_text(json.dumps({"model": models, "data": data}))
    return str(path)


def test_the_models_of_a_file_answer_its_sets(program: Any, tmp_path: Path) -> None:
    questions(tmp_path / "lmu" / "MMStar.tsv", len(PHOTOS))
    with serving(lambda asked: Reply(completion("A"))) as server:
        served = {"class": "LMDeployAPI", "model": "toy", "api_base": server.url, "temperature": 0, "max_tokens": 12}
        config = written(
            tmp_path / "run.json",
            {"toy": served, "digits-reader": {}},
            {"star": {"class": "ImageMCQDataset", "dataset": "MMStar"}},
        )
        words = ("--vlmevalkit", config, "--lmu-data", str(tmp_path / "lmu"), "--executor", "inline", "--json")
        answer = json.loads(program("eval.py", *words, OPENAI_API_KEY="sk-test").stdout)
    assert {(each["model"], each["setting"]) for each in answer["outcomes"]} == {
        ("toy", "MMStar"),
        ("digits-reader", "MMStar"),
    }
    values = {each["model"]: each["value"] for each in answer["results"] if each["metric"] == "accuracy"}
    assert values["toy"] == 1
    asked = server.asked[0].body
    assert (asked["model"], asked["temperature"]) == ("toy", 0)
    assert 12 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))


@pytest.mark.parametrize(
    ("kind", "variables", "expected"),
    [
        ("GPT4V", {"OPENAI_API_BASE": "http://lab:1/v1/chat/completions"}, "http://lab:1/v1"),
        ("GPT4V", {"OPENAI_API_BASE": "http://lab:1/v1", "OPENAI_BASE_URL": "http://lab:2/v1"}, "http://lab:2/v1"),
        ("GPT4V", {"LMDEPLOY_API_BASE": "http://lab:3/v1"}, "https://api.openai.com/v1"),
        (
            "LMDeployAPI",
            {"LMDEPLOY_API_BASE": "http://lab:3/v1", "OPENAI_API_BASE": "http://lab:1/v1"},
            "http://lab:3/v1",
        ),
        ("LMDeployAPI", {"OPENAI_API_BASE": " http://lab:1/v1/ "}, "http://lab:1/v1"),
        ("OpenAIWrapper", {}, "https://api.openai.com/v1"),
    ],
)
def test_the_server_is_that_of_vlmevalkits_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "LMDEPLOY_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for given, url in (
        ({}, expected),
        ({"api_base": "OFFICIAL"}, OPENAI),
        ({"api_base": "http://own/v1"}, "http://own/v1"),
    ):
        catalog = Catalog(packages=(), entry_points=False)
        register(Path(written(tmp_path / "run.json", {"toy": {"class": kind, **given}}, {"MMStar": {}})), catalog)
        assert catalog.get_model("toy").service.url == url
    if kind == "GPT4V" and "OPENAI_API_BASE" in variables:
        assert registry.models.canonical("api:gpt-4o") == f"api:gpt-4o@{expected}"


@pytest.mark.parametrize(
    ("models", "data", "told"),
    [
        ({"toy": {"class": "GPT4V", "key": "sk-secret"}}, {"MMStar": {}}, "set the variable OPENAI_API_KEY"),
        ({"mine": {"class": "MyVLM", "depth": 3}}, {"MMStar": {}}, "register it as VLMEvalModel('mine', …)"),
        ({"digits-reader": {}}, {"v": {"dataset": "Video-MME", "nframe": 8}}, "'nframe' of the set 'v' is not known"),
        ({"digits-reader": {}}, {}, "'data' is missing, empty or no such object"),
        ({"toy": {"class": "GPT4V", "frames": 2}}, {"MMStar": {}}, "'frames' is not known here"),
    ],
)
def test_what_would_be_dropped_is_told(program: Any, tmp_path: Path, models: Any, data: Any, told: str) -> None:
    done = program("eval.py", "--vlmevalkit", written(tmp_path / "run.json", models, data), code=1)
    assert told in done.stderr
    assert "sk-secret" not in done.stdout + done.stderr

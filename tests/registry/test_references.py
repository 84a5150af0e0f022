"""The grammar of settings' names, by itself; `tests/eval_settings/test_scored_names.py` has it with a registry."""

from __future__ import annotations

import pytest
from tables import cases

from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.registry import Catalog
from testbed.registry.references import SettingReference


@cases(
    ("name", "parts"),
    [
        ("val", SettingReference("val")),
        ("cifar10.linear_probe.k5.lr0.1", SettingReference("cifar10.linear_probe.k5.lr0.1")),
        ("val.distinct", SettingReference("val", node="distinct")),
        ("MMStar.vlmevalkit", SettingReference("MMStar", rules=True)),
        ("MMStar+imagenet-c.fog.3", SettingReference("MMStar", corruption="imagenet-c.fog.3")),
        ("MMStar.vlmevalkit+fog@a&b", SettingReference("MMStar", True, "fog", judge="a&b")),
        ("said.clip_score.prefix@m", SettingReference("said", words=("clip_score", "prefix"), judge="m")),
        ("x.captioning.zh.idf@m,v", SettingReference("x.captioning.zh", words=("idf",), judge="m,v")),
        ("said@owner/net@v2", SettingReference("said", judge="owner/net@v2")),
        ("said@m.image_embeddings", SettingReference("said", judge="m", node="image_embeddings")),
        ("pairs:/a@b+c/x.csv.captioning@m", SettingReference("pairs:/a@b+c/x.csv.captioning", judge="m")),
        ("tsv:/a@b/x.tsv.vlmevalkit", SettingReference("tsv:/a@b/x.tsv", rules=True)),
        ("val.anchors:/a/b.json", SettingReference("val", anchors="/a/b.json")),
        (
            "x+fog.anchors:/a@b/c.d.json.idf@m.distinct",
            SettingReference("x", False, "fog", ("idf",), "m", "distinct", anchors="/a@b/c.d.json"),
        ),
        ("tsv:/x.json/y.tsv.anchors:/z.json@m", SettingReference("tsv:/x.json/y.tsv", judge="m", anchors="/z.json")),
        ("val.anchors:/a/b.txt", SettingReference("val.anchors:/a/b.txt")),
        ("val.random-4000", SettingReference("val", first=4000)),
        ("said.vlmevalkit+fog.random-9.pairs@m", SettingReference("said", True, "fog", ("pairs",), "m", first=9)),
        ("val.random-9.image_embeddings", SettingReference("val", node="image_embeddings", first=9)),
        ("val.random-0", SettingReference("val.random-0")),
        ("val.random-9.random-5", SettingReference("val.random-9", first=5)),
        ("odd@", SettingReference("odd@")),
        ("odd+.distinct", SettingReference("odd+", node="distinct")),
    ],
)
def test_a_name_has_these_parts(name: str, parts: SettingReference) -> None:
    assert SettingReference.parse(name) == parts
    assert str(parts) == name


def test_what_differs_in_the_judge_alone_is_the_same_question() -> None:
    one, other, harder = (SettingReference.parse(name).question for name in ("x.idf@a", "x.idf@b", "x@a"))
    assert one == other == "x.idf"
    assert harder == "x"


def test_a_setting_cannot_have_the_name_of_a_node() -> None:
    setting = EvalSetting("val.distinct", StandardDataset("val"), 1)
    with pytest.raises(DefinitionError, match=r"'val\.distinct' at .* has the name of a node, the distinct"):
        Catalog(packages=(), entry_points=False).add_eval_setting(setting)

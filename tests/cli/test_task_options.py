"""CLIP benchmark's options say what the names of settings say."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import wds_world
from click.testing import CliRunner
from tables import cases

from testbed.cli.options.run import picked, some_options
from testbed.cli.options.tasks import TaskOptions, as_tasks
from testbed.errors import DefinitionError
from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS


def names(settings: list[str], *words: str) -> list[str]:
    """The names that come out for some options."""
    found: list[str] = []

    def ask(**given: Any) -> None:
        found.extend(as_tasks(settings, picked(TaskOptions, given)))

    command = click.Command("ask", callback=ask, params=some_options(*(each.name for each in fields(TaskOptions))))
    result = CliRunner().invoke(command, words, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found


@cases(
    ("settings", "words", "expected"),
    [
        (["digits", "val"], "", ["digits", "val"]),
        (["digits", "val"], "--task auto", ["digits", "val"]),
        (["digits"], "--task linear_probe", ["digits.linear_probe"]),
        (["digits"], "--task linear_probe --fewshot-k 5", ["digits.linear_probe.k5"]),
        (["digits.linear_probe"], "--fewshot-k 5", ["digits.linear_probe.k5"]),
        (
            ["digits"],
            "--task linear_probe --fewshot-lr 0.1 --fewshot-epochs 20 --fewshot-batch-size 512 --train-split train",
            ["digits.linear_probe.epochs20.batch512"],
        ),
        (
            ["cifar10"],
            "--task linear_probe --val-proportion 0.1 --probe lbfgs --fewshot-seed 3 --no-normalize",
            ["cifar10.linear_probe.lbfgs.val10.seed3.unnormalized"],
        ),
        (
            ["fgvc_aircraft"],
            "--task linear_probe --val-split val --probe adamw --normalize",
            ["fgvc_aircraft.linear_probe.val-val"],
        ),
        (["imagenet1k"], "--language en --language zh", ["imagenet1k", "imagenet1k.zeroshot.zh"]),
        (["cifar10", "cifar100"], "--language en --language jp", ["cifar10", "cifar100"]),
        (["cifar10", "imagenet1k"], "--language jp", ["imagenet1k.zeroshot.jp"]),
        (["digits.train"], "--language en --language fr", ["digits.train"]),
        (["cifar10"], "--split train --task zeroshot_classification", ["cifar10.train"]),
        (["digits-captions"], "--recall-k 10 --recall-k 1", ["digits-captions.recall1-10"]),
        (["digits-captions"], "--task zeroshot_retrieval", ["digits-captions"]),
        (["digits", "digits.linear_probe"], "--task linear_probe", ["digits.linear_probe"]),
        (["digits-captions"], "--task clip_score", ["digits-captions.clip_score"]),
        (["flickr30k"], "--task captioning --split val --language zh", ["flickr30k.val.captioning.zh"]),
    ],
)
def test_options_become_names(settings: list[str], words: str, expected: list[str]) -> None:
    assert names(settings, *words.split()) == expected


@cases(
    ("settings", "words", "message"),
    [
        (["val"], "--task linear_probe", "val is not a named data set"),
        (["digits"], "--language zz", "digits in zz: there is the language en alone"),
        (["digits"], "--split nowhere", "digits has no split 'nowhere'; its splits are test, train"),
        (["digits"], "--fewshot-k 5", "require --task linear_probe"),
        (["digits"], "--fewshot-k 5 --language zz", "require --task linear_probe"),
        (["cifar10", "val"], "--language jp", "val is not a named data set"),
        (["cifar10", "cifar100"], "--language xx", "cifar10, cifar100 in xx: there is the language en alone"),
        (["digits-captions"], "--task linear_probe", "a data set for retrieval"),
        (["digits"], "--recall-k 5", "a data set for classification"),
        (["digits"], "--task zeroshot_retrieval", "a data set for classification"),
        (["digits"], "--task captioning", "a data set for classification"),
        (["digits-captions"], "--task clip_score --recall-k 5", "a data set for retrieval"),
    ],
)
def test_what_makes_no_sense_is_told(settings: list[str], words: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        names(settings, *words.split())


@pytest.fixture
def webdatasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Webdatasets of two kinds."""
    for name, kind in (("pets", ""), ("captions", "retrieval")):
        files = {"dataset_type": kind} if kind else {"classnames": "cat\ndog\n", "templates": "a {c}\n"}
        wds_world.write_split(tmp_path / f"wds_{name}", [wds_world.samples({"s": b"1"})], **files)
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    monkeypatch.setattr(BENCHMARKS, "_opened", {})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--task zeroshot_classification", "wds/pets"),
        ("--task linear_probe --fewshot-k 5", "wds/pets.linear_probe.k5"),
        ("--language en", "wds/pets"),
        ("--language fr", "wds/pets.zeroshot.fr"),
        ("--split test", "wds/pets"),
    ],
)
def test_options_apply_to_webdatasets(webdatasets: None, words: str, expected: str) -> None:
    assert names(["wds/pets"], *words.split()) == [expected]


@pytest.mark.parametrize(
    ("setting", "words", "message"),
    [
        ("wds/pets", "--task zeroshot_retrieval", "wds/pets is a data set for classification"),
        ("wds/pets", "--task captioning", "wds/pets is a data set for classification"),
        ("wds/captions", "--task zeroshot_classification", "wds/captions is a data set for retrieval"),
        ("wds/captions", "--task linear_probe", "wds/captions is a data set for retrieval"),
        ("wds/pets", "--split foo", "wds/pets has no split 'foo'; its splits are test$"),
    ],
)
def test_a_task_that_a_webdataset_is_not_for_is_refused(
    webdatasets: None, setting: str, words: str, message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        names([setting], *words.split())


def test_a_missing_webdataset_is_left_to_the_run(webdatasets: None) -> None:
    assert names(["wds/cars"], "--task", "zeroshot_classification") == ["wds/cars"]


def test_what_exists_in_a_language_runs_and_the_rest_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    as_tasks(["cifar10", "cifar100", "imagenet1k"], TaskOptions(language=("en", "jp", "xx")))
    told = capsys.readouterr().err
    assert "Left out: cifar10, cifar100 in jp, xx: there is the language en alone" in told
    assert "Left out: imagenet1k in xx: there are the languages en" in told
    assert "few-shot" not in told


def test_few_shot_options_are_named_where_one_was_given() -> None:
    with pytest.raises(DefinitionError) as error:
        names(["digits"], "--task", "captioning")
    assert "few-shot" not in str(error.value)

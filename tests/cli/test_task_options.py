"""CLIP benchmark's options say what the names of settings say."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from testbed.cli.task_options import as_tasks, task_options
from testbed.errors import DefinitionError


def names(settings: list[str], *words: str) -> list[str]:
    """The names that come out for some options."""
    found: list[str] = []

    @click.command()
    @task_options
    def command(**given: Any) -> None:
        found.extend(as_tasks(settings, given))

    result = CliRunner().invoke(command, words, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("settings", "words", "message"),
    [
        (["val"], "--task linear_probe", "val is not a named data set"),
        (["digits"], "--language zz", "languages en"),
        (["digits"], "--split nowhere", "splits test, train"),
        (["digits"], "--fewshot-k 5", "require --task linear_probe"),
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

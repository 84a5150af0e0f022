"""Every option that eval.py and db.py had before `testbed` had its commands is there, or its command is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import click
import pytest

from testbed.cli import db, eval
from testbed.cli.moved import MOVED
from testbed.cli.program import command as all_commands

DB = """
    --print-eval --all --show-prompts --profile --why --status --slices --list-models-db --list-eval-settings-db
    --list-models-registry --list-eval-settings-registry --list-parent-eval-settings-registry --save-texts
    --save-logits --models --eval-settings --compare --rank --borda --better --agreement --compare-recorded --hardest
    --confusions --groups --by --slices-from --calibrate --labels --method --limit --score --rescore --judge --format
    --grid --metric --serve --host --port --add-model --add-eval-setting --remove-model --remove-eval-setting
    --remove-evaluation --restore-model --restore-eval-setting --restore-evaluation --purge --rename-model
    --rename-eval-setting --import-results --model-types --export-csv --export-clip-benchmark --dump-classnames
    --dump-templates --export-clip-cc --export-vlmevalkit --export-verdicts --suggest-labels --scale --check --deep
    --repair --backup --salvage --merge --copy-to --no-outputs --payload-url --gc --upgrade --verify-store --budget
    --samples --gpus --cpu-processes --workers --batch-size --executor --predictions --checkpoints --lmu-data
    --override --json -v --verbose --db-url --plugin --data-root --version
""".split()
EVAL = """
    --models --eval-settings --db --no-db --logdir --db-url --plugin --payload-url --data-root --download
    --predictions --checkpoints --lmu-data --clip-cc --base-dir --vlmevalkit --recorded --image-size --mean --std
    --interpolation --class-order --task --language --split --recall-k --probe --fewshot-k --fewshot-lr
    --fewshot-epochs --fewshot-batch-size --fewshot-seed --train-split --val-split --val-proportion --normalize
    --no-normalize --classnames-file --custom-classname-file --templates-file --custom-template-file --load-clfs
    --save-clf --scorers --scoring --gpus --workers --cpu-processes --executor --ray-address --compile
    --channels-last --decoded-cache --profile --dry-run --limit --batch-size --dtype --store-dtype --seed
    --random-weights --strict --max-megapixels --no-shared-pass --trust --verify --override --thumbnails --log-file
    --json -v --verbose --version
""".split()


def options_of(command: click.Command) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)}


def test_eval_keeps_its_options_and_run_has_them() -> None:
    assert set(EVAL) <= options_of(eval.command)
    assert set(EVAL) - {"--models", "--eval-settings", "--version"} <= options_of(eval.run)


def test_db_keeps_an_option_or_names_the_command_that_has_taken_its_place() -> None:
    assert options_of(db.command) & set(MOVED) == set()
    assert set(DB) == options_of(db.command) | set(MOVED)


@pytest.mark.parametrize("option", MOVED)
def test_the_command_that_is_named_exists(option: str) -> None:
    for words in MOVED[option].removeprefix("it is now: testbed ").split(", or "):
        command: click.Command = all_commands
        for word in words.split():
            if isinstance(command, click.Group):
                found = command.get_command(click.Context(command), word)
                assert found is not None, word
                command = found
        assert set(re.findall(r"--[a-z-]+", words)) <= options_of(command)


def test_an_option_that_moved_is_answered_in_one_line(
    program: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = program("db.py", "--models", "a", "b", "--rank", "val", "--db-url", str(tmp_path / "none.db"), code=2)
    assert done.stderr == "Error: there is no option --rank; it is now: testbed rank SETTING…\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "--models", "demo"], "write the models' names after run: testbed run resnet50 --on val"),
        (["run", "demo", "--eval_settings", "val"], "write the settings' names after --on: testbed run resnet50 --on"),
    ],
)
def test_run_tells_where_the_words_of_eval_go(words: list[str], hint: str, ask: Callable[..., Any]) -> None:
    assert hint in ask(*words, code=2).stderr

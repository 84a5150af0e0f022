"""The options of eval.py and db.py, as ImageNet-testbed has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import click
import pytest

from testbed.cli import db, eval

# ImageNet-testbed's, and those that were added to them
DB = """
    --print-eval --save-logits --list-models-db --list-eval-settings-db --list-models-registry
    --list-eval-settings-registry --list-parent-eval-settings-registry --add-model --add-eval-setting --remove-model
    --remove-eval-setting --remove-evaluation --rename-model --rename-eval-setting --import-results --export-csv --check
    --override --json -v --verbose --db-url --plugin --version
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


def test_db_has_the_options_of_imagenet_testbed_and_few_others() -> None:
    assert set(DB) == options_of(db.command)


def test_db_imports_exports_and_checks(program: Callable[..., CompletedProcess[str]], tmp_path: Path) -> None:
    table, url = tmp_path / "table.csv", ["--db-url", str(tmp_path / "own.db")]
    table.write_text("model,val,imagenetv2-matched-frequency\nresnet50,76.13,63.2\n")
    program("db.py", "--import-results", str(table), *url)
    program("db.py", "--export-csv", str(tmp_path / "out.csv"), *url)
    written = (tmp_path / "out.csv").read_text().splitlines()
    assert sorted(written[0].split(",")) == ["imagenetv2-matched-frequency", "model", "val"]
    assert sorted(written[1].split(",")) == ["63.2", "76.13", "resnet50"]
    assert program("db.py", "--check", *url).stdout == "the store is sound\n"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "--models", "demo"], "write the models' names after run: testbed run resnet50 --on val"),
        (["run", "demo", "--eval_settings", "val"], "write the settings' names after --on: testbed run resnet50 --on"),
    ],
)
def test_run_tells_where_the_words_of_eval_go(words: list[str], hint: str, ask: Callable[..., Any]) -> None:
    assert hint in ask(*words, code=2).stderr

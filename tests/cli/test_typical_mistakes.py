"""Sixty typical mistakes, and the line that says what to do about each."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest
from cli_world import in_process
from stored_cells import put, samples_of

from testbed.db.store import Store

pytestmark = pytest.mark.usefixtures("shared_cache")  # which knows the libraries' names of models

MISTAKES = """
shwo | unknown command testbed shwo; did you mean testbed show?
store chek | unknown command testbed store chek; did you mean testbed store check?
list model | did you mean testbed list models?
leaderboard | did you mean testbed rank
evaluate | did you mean testbed run
run | Missing argument 'MODEL...'
run digits-cnn | --on is missing; write: testbed run digits-cnn --on SETTING
run digits-cnn digits | --on is missing; write: testbed run digits-cnn digits --on SETTING
run digits-cnn --on | '--on' requires an argument
run digits-cnn --settings digits | unknown option --settings; use --on
run digits-cnn --eval-settings digits | write the settings' names after --on
run --model digits-cnn --on digits | unknown option --model
run digits-cn --on digits | unknown model 'digits-cn' in the registry; did you mean 'digits-cnn'
run digits-cnn --on digit | unknown eval setting 'digit' in the registry; did you mean 'digits'
run digits-cnn --on digits-c.blurr.3 | did you mean 'digits-c.gaussian_blur.3'
run digits-cnn --on digits --batch-size abc | --batch-size is a whole number of at least 1, not abc
run digits-cnn --on digits --batch-size 0 | --batch-size is a whole number of at least 1, not 0
run digits-cnn --on digits --batchsize 8 | Did you mean one of: '--batch-size'
run digits-cnn --on digits --workers -1 | --workers is a whole number of at least 0, not -1
run digits-cnn --on digits --dtype fp8 | 'fp8' is not one of 'float32', 'tf32', 'bfloat16', 'float16'
run digits-cnn --on digits --executor slurm | there is no executor 'slurm'; there are processes, inline, ray
run digits-cnn --on digits --plugin nothing.py | nothing.py: there is no such file
run nothing.pt --on digits | this names a checkpoint but not its architecture; write resnet50,nothing.pt
run digits-cnn --on digits --db-url postgres:/x | is not a database URL; write a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE
show | Missing argument 'MODEL'
show vgg11 | testbed show takes a model and a setting; vgg11 is a model with
show val vgg11 | val is an eval setting, not a model
show vgg11 vall | unknown eval setting 'vall' in the store
show vgg vall | unknown model 'vgg' in the store
show 'vgg*' val | the pattern 'vgg*' matches vgg11, vgg13; write one name of a model here
grid | Missing argument 'PATTERN...'
grid vall | no column of the stored results matches 'vall'; there are 1
grid val --metric acc | the store has no results of the metric 'acc'
grid val --format md | 'md' is not one of 'table', 'markdown', 'latex'
rank | Missing argument 'SETTING...'
rank vall | unknown eval setting 'vall' in the store
rank val --metric top1 | unknown option --metric; use --score
rank val --score acc | has no per-sample score 'acc'; it has
compare vgg11 --on val | expected at least two models; got only vgg11
compare vgg11 vgg11 --on val | expected at least two models; got only vgg11
compare vgg11 vgg13 | --on is missing; write: testbed compare vgg11 vgg13 --on SETTING
compare vgg11 vgg13 --on val --metric top1 | unknown option --metric; use --score
hardest val --limit abc | --limit is a whole number of at least 1, not abc
hardest val --limit 0 | --limit is a whole number of at least 1, not 0
confusions vgg11 val | Got unexpected extra argument (val)
groups val --by nothing.csv | the samples of val have no slice 'nothing.csv'
published list nobody | nothing from 'nobody' is stored; stored sources: none
published show vgg11 val9 | vgg11 on val9: nothing is published for this cell, and nothing was measured
calibrate val --labels nothing.csv | nothing.csv cannot be read: No such file or directory
selective vgg11 | --on is missing; write: testbed selective vgg11 --on SETTING
selective vgg11 --on val --risk 0 | --risk is a number above 0 and below 100, not 0.0
selective vgg11 --on val --by confidence | 'confidence' is not one of 'probability', 'margin', 'entropy', 'logit'
selective no* --on val | the store has no outputs of model 'no*'
ood vgg11 --in val | no settings out of the distribution were given; use --out, --near or --far
export csv | Missing argument 'FILE'
import nothing.csv | no such file: nothing.csv
site --out | '--out' requires an argument
serve --port 99999 | --port is a whole number from 0 to 65535, not 99999
figures --kinds bars | 'bars' is not one of 'shifts', 'severity'
figures --formats jpg | 'jpg' is not one of 'pdf', 'png', 'svg'
figures --width wide --formats pdf | 'wide' is neither column, text nor a number of points
store rename vgg11 | 'vgg11' is not one of 'model', 'setting'
people nothing | --on is missing; write: testbed people nothing --on SETTING
watch nothing --on val | --arch is missing; write: testbed watch nothing --on val --arch NAME
gate policy.yaml | --candidate is missing; write: testbed gate policy.yaml --candidate
"""
ROWS = [tuple(part.strip() for part in line.split(" | ", 1)) for line in MISTAKES.strip().splitlines()]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store of two models on a setting."""
    path = tmp_path_factory.mktemp("mistakes") / "testbed.db"
    with Store.create(str(path)) as store:
        for model, seed in (("vgg11", 0), ("vgg13", 1)):
            put(store, model, "val", samples_of([0, 1] * 5), np.random.default_rng(seed).normal(size=(10, 2)))
    return path


def test_there_are_sixty():
    assert len(ROWS) >= 60


@pytest.mark.parametrize(("words", "said"), ROWS, ids=[words for words, _ in ROWS])
def test_a_typical_mistake_gets_its_answer(filled, words, said, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TESTBED_DB", str(filled))
    with in_process(monkeypatch, capsys) as run:
        done = run(*shlex.split(words))
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert said in re.sub(r"\s+", " ", done.stderr)
    assert not list(tmp_path.glob("*.db"))

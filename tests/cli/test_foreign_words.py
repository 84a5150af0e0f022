"""What users of other programs type, and slips: one line says what to write here."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tables import cases

from testbed.cli.eval import command, run
from testbed.cli.options.vlmevalkit_words import HINTS
from testbed.cli.program import command as program
from testbed.console.options import UnknownOption
from testbed.errors import UnknownNameError
from testbed.registry import registry

# The options of VLMEvalKit's run.py, and those of testbed that have the same name and sense.
OF_RUN_PY = """
    --data --model --config --data-config --work-dir --mode --api-nproc --retry --verbose --keep-failed --ignore --reuse
    --reuse-aux --use-vllm --use-verifier --judge --judge-args --judge-base-url --judge-key --judge-api-nproc
    --judge-retry --judge-timeout --base-url --key --thinker --max-tokens --temperature --top-k --top-p
    --repetition-penalty --timeout --custom-prompt --stream --extra-body --video-llm --local-media --api-mode
    --monitor-interval --debug
""".split()
THE_SAME = {"--verbose"}


def refusal(*words: str) -> str:
    result = CliRunner().invoke(program, words, prog_name="testbed", standalone_mode=False)
    assert isinstance(result.exception, UnknownOption), result
    assert "\n" not in result.exception.message
    return result.exception.message


# VLMEvalKit -------------------------------------------------------------------------------------------------------


@cases("option", OF_RUN_PY)
def test_each_option_of_vlmevalkits_run_py_has_an_answer(option: str) -> None:
    ours = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    if option in THE_SAME:
        assert option in ours
        return
    assert option not in ours
    for spelled in (option, option.replace("-", "_").replace("__", "--", 1), f"{option}=x"):
        assert refusal("run", "some", "--on", "MMStar", spelled) == f"unknown option {option}; {run.hints[option]}"


def test_no_hint_is_for_an_option_that_it_does_not_have() -> None:
    assert set(HINTS) == set(OF_RUN_PY) - THE_SAME


def test_a_whole_command_line_of_vlmevalkit_is_answered_with_ours() -> None:
    told = refusal("run", "--data", "MMStar", "MME", "--model", "qwen", "--reuse", "--mode", "all")
    assert "testbed run NAME --on MMStar MME" in told
    assert "testbed rescore" in refusal("run", "qwen", "--on", "MMStar", "--mode", "eval")
    assert "--on SET@NAME" in refusal("run", "qwen", "--on", "MMStar", "--judge", "gpt-4o")
    assert "vllm/" in refusal("run", "qwen", "--on", "MMStar", "--use-vllm")


# Commands ---------------------------------------------------------------------------------------------------------


@cases(
    ("words", "meant"),
    [
        ("shwo", "testbed show"),
        ("comapre a b", "testbed compare"),
        ("eval resnet18 --on val", "testbed run"),
        ("evaluate", "testbed run"),
        ("status", "testbed store status"),
        ("models", "testbed list models"),
        ("store stauts", "testbed store status"),
        ("list model", "testbed list models"),
        ("export clipbenchmark dir", "testbed export clip-benchmark"),
        ("published shwo", "testbed published show"),
    ],
)
def test_an_unknown_command_names_the_nearest_one(words: str, meant: str) -> None:
    told = refusal(*words.split())
    assert f"did you mean {meant}" in told
    assert "--help lists the commands" in told


def test_a_command_that_resembles_none_names_the_list() -> None:
    assert refusal("xyzzy") == "unknown command testbed xyzzy; testbed --help lists the commands"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("rank val --metric top1", "--score"),
        ("compare a b --metric top1", "--score"),
        ("grid val --score top1", "--metric"),
        ("compare a b --dataset=val", "--on"),
        ("show a val --db results.db", "--db-url"),
    ],
)
def test_an_option_that_another_command_calls_otherwise_is_named(words: str, option: str) -> None:
    assert refusal(*words.split()).endswith(f"; use {option}")


def test_show_of_one_name_says_what_it_is(program, tmp_path: Path) -> None:
    program("eval.py", "--models", "digits-logreg", "--eval-settings", "digits", "--limit", "20")
    told = program("testbed", "show", "digits", code=2).stderr
    assert "digits is a setting with 1 stored result: testbed show 'digits-logreg' 'digits' shows one" in told
    assert "testbed list results --on 'digits' lists all" in told
    told = program("testbed", "show", "digits-logreg", code=2).stderr
    assert "digits-logreg is a model with 1 stored result: testbed show 'digits-logreg' 'digits' shows one" in told
    assert "testbed list results lists the stored results" in program("testbed", "show", "nothing", code=2).stderr


# Models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("efficientnet_lite0,mine.pth", "timm/efficientnet_lite0,mine.pth"),
        ("resnet18.a1_in1k", "timm/resnet18.a1_in1k"),
        ("tf_efficientnet_lite0", "timm/tf_efficientnet_lite0"),
    ],
)
def test_a_name_of_timms_gets_its_prefix(name: str, written: str) -> None:
    registry.load()
    with pytest.raises(UnknownNameError, match=f"this is a name of timm's; write {written}$"):
        registry.get_model(name)
    assert registry.models.canonical(written) is not None


def test_an_architecture_of_open_clip_needs_weights() -> None:
    registry.load()
    with pytest.raises(UnknownNameError) as error:
        registry.get_model("RN50")
    assert "RN50,openai for published weights" in str(error.value)
    assert "'RN50,' with --random-weights" in str(error.value)
    assert registry.models.canonical("RN50,") == "RN50,"
    assert registry.models.canonical("RN50,openai") == "RN50,openai"

"""Processes that a user's code forks: SIGTERM ends them, though the run itself notes it and its workers ignore it."""

from __future__ import annotations

import multiprocessing
import signal
import time
from pathlib import Path

import pytest
from cli_world import WORLD

PLUGIN = """
import multiprocessing
import time

from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry


def perturb(images):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    child.terminate()
    child.join(timeout=30)
    assert child.exitcode == -15, f"the child's exit code is {child.exitcode}"
    return images


world = registry.get_eval_setting("world").dataset
registry.add_eval_setting(EvalSetting(name="forks", dataset=world, size=1100, perturbation_fn_gpu=perturb))
"""


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_what_a_perturbation_forks_can_be_ended(program, tmp_path: Path, executor: str) -> None:
    (tmp_path / "forks.py").write_text(PLUGIN)
    words = ["--plugin", WORLD, str(tmp_path / "forks.py"), "--models", "world-plain", "--eval-settings", "forks"]
    program("eval.py", *words, "--limit", "20", "--executor", executor)


def test_a_process_that_runs_several_commands_still_hears_of_sigterm(ask) -> None:
    for _ in range(2):
        ask("--list-models-registry")
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0,))
    child.start()
    child.join()
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())

"""Importing testbed changes nothing in the interpreter of its user, and evaluating leaves all as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[1] / "support"
SCRIPT = """
import builtins, importlib, io, json, os, random, shutil, signal, subprocess, sys, threading, warnings
import numpy, pandas, safetensors.torch, torch, torchvision.transforms, PIL.Image, sqlalchemy.orm  # a user's own

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell has programs in the background ignore
HANDLED = [each for each in signal.Signals if each not in (signal.SIGKILL, signal.SIGSTOP)]

def state():
    return {
        **{f"os.{name}": getattr(os, name) for name in ("stat", "access", "readlink", "open", "listdir", "fork")},
        "sets of os": [len(each) for each in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks)],
        **{f"signal {each}": signal.getsignal(each) for each in HANDLED},
        "environ": (type(os.environ), id(os.environ), dict(os.environ)),
        "builtins.open": builtins.open,
        "io.open": io.open,
        "import": builtins.__import__,
        "finders": [id(each) for each in sys.meta_path],
        "path hooks": list(map(id, sys.path_hooks)),
        "path": list(sys.path),
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook, sys.gettrace(), sys.getprofile()),
        "output": (sys.stdout, sys.stderr, sys.stdin),
        "safetensors": (safetensors.safe_open, safetensors.torch.safe_open),
        "threads": sorted(each.name for each in threading.enumerate()),
        "main": sys.modules["__main__"],
        "torch": (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()),
        "random": (random.getstate(), torch.get_rng_state().tolist(), numpy.random.get_state()[1].tolist()),
        "folder": os.getcwd(),
        "subprocess": (subprocess.Popen, shutil.copyfile),
    }

def differences(now):
    return sorted(name for name in BEFORE if BEFORE[name] != now[name])

BEFORE, FOUND = state(), {}
import testbed
FOUND["imported"] = differences(state())
from toy import ToyNetwork, toy_model, toy_setting
from testbed.data.source import ImageSource
BEFORE = state()  # torch, which the definitions need, may do anything
SEEN = []

def note():
    SEEN.append(differences(state()))

def perturbed(images):
    vars(sys.modules["__main__"])["note"]()  # as no part of its identity
    return images * 0.5

def failing(images):
    raise RuntimeError("no")

def evaluate(name, **options):
    try:
        found = testbed.evaluate("toy", name, db="store.db", progress=False, **options)
        return sorted(set(found.frame.status))
    except Exception as error:
        return type(error).__name__

testbed.register_model(toy_model())
for name, function in (("fine", perturbed), ("fails", failing)):
    testbed.register_eval_setting(toy_setting(name, 20, perturbation_fn_gpu=function))
FOUND["registered"] = differences(state())
for name, options in (("fine", {}), ("fails", {}), ("fails", {"raise_on_failure": True}), ("unknown", {})):
    FOUND[f"{name} {options}"] = [evaluate(name, **options), differences(state())]
testbed.register_eval_setting(toy_setting("stopped", 20, perturbation_fn_gpu=lambda images: signal.raise_signal(2)))
try:
    testbed.evaluate("toy", "stopped", db="store.db", progress=False)
except KeyboardInterrupt:
    FOUND["interrupted"] = differences(state())
print(json.dumps([FOUND, SEEN]))
"""


def test_importing_and_evaluating_leave_the_interpreter_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found, seen = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        "imported": [],
        "registered": [],
        "fine {}": [["complete"], []],
        "fails {}": [["failed"], []],
        "fails {'raise_on_failure': True}": ["RunError", []],
        "unknown {}": ["UnknownNameError", []],
        "interrupted": [],
    }
    assert {"os.stat", "os.access", "os.readlink", "environ", "finders", "safetensors"} <= set(seen[0]), "while it runs"


def test_a_wrapper_that_someone_put_around_ours_is_kept(tmp_path: Path) -> None:
    """As a test's monkeypatch may, that is begun within an evaluation."""
    from testbed.tracing.patches import tracing

    before = os.stat
    try:
        with tracing():
            ours = os.stat
            assert ours is not before
            theirs = lambda path, *arguments, **keywords: ours(path, *arguments, **keywords)  # noqa: E731
            os.stat = theirs  # type: ignore[assignment]
        assert os.stat is theirs
        assert os.stat(tmp_path) == before(tmp_path)
    finally:
        os.stat = before


def test_it_is_on_until_the_last_one_ends() -> None:
    from testbed.tracing.patches import tracing

    before = os.stat, type(os.environ), list(sys.meta_path)
    with tracing():
        outer = os.stat
        with tracing():
            assert os.stat is outer
        assert os.stat is outer
    assert (os.stat, type(os.environ), sys.meta_path) == before

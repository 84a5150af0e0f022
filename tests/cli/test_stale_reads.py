"""What code reads in ways that a definition does not show: after a change of it, no stored number is shown unchecked.

Each case is a plug-in with two settings, ``@@-first`` and ``@@``, on one model. Often both use something that the first
one reads and keeps. All are evaluated, all that they read is changed, and all are evaluated again.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from stale_changes import BASE, BEGINNING, SHARED

pytestmark = pytest.mark.timeout(900)  # all cases are evaluated before the first test

TWICE = """
def f(images):
    return images * factor()
def g(images):
    return images * factor() * 0.9
add_setting("@@-first", perturbation_fn_gpu=g)
add_setting("@@", perturbation_fn_gpu=f)
"""


def cached(value: str, first: str = "") -> str:
    """A plug-in whose settings use a number that a function reads once."""
    return f"{first}import functools, json, os\n@functools.lru_cache\ndef factor():\n    return float({value})\n{TWICE}"


HERE = 'open(os.path.join(FOLDER, "number_@@.txt")).read()'


@dataclass(frozen=True)
class Case:
    """Something that is read.

    Attributes:
        name: How.
        plugin: The source of the plug-in.
        before: Files of its folder.
        after: Those that are written, or (None) removed, before the second run.
        variables: Environment variables of the second run; of the first, ``1``.
    """

    name: str
    plugin: str
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str | None] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


NAME = 'os.path.join(FOLDER, "number_@@.txt")'
POOLS = (
    "import multiprocessing\nfrom concurrent.futures import ProcessPoolExecutor as Processes\n"
    'from multiprocessing.pool import ThreadPool\nFORK = multiprocessing.get_context("fork")\n'
)
THREAD = (
    "import threading\ndef in_thread(path):\n    found = []\n"
    "    thread = threading.Thread(target=lambda: found.append(np.loadtxt(path)))\n"
    "    thread.start()\n    thread.join()\n    return found[0]\n"
)
CHILD = (
    "import os\ndef in_child(path):\n    here, there = os.pipe()\n    if os.fork() == 0:\n"
    "        os.write(there, open(path).read().encode())\n        os._exit(0)\n"
    "    os.wait()\n    return os.read(here, 9)\n"
)
LINK = (
    "import os\ndef link(path):\n    if not os.path.lexists(path + '.link'):\n"
    "        os.symlink(path, path + '.link')\n    return path + '.link'\n"
)
TENSORS = (
    "from safetensors import safe_open\ndef tensors(path):\n"
    '    with safe_open(path, framework="np") as file:\n        return file.get_tensor("n")\n'
)
CONFIGURED = (
    "import configparser\ndef configured(path):\n    found = configparser.ConfigParser()\n    found.read(path)\n"
    '    return found.get("a", "b", fallback="1")\n'
)
NUMBER, OTHER = {"number_@@.txt": "1"}, {"number_@@.txt": "0.5"}
HELPER = "import functools, os\n@functools.lru_cache\ndef factor():\n    return float({})\n"
CASES = [
    Case("a cached file", cached(HERE), NUMBER, OTHER),
    Case(
        "a file that a module variable keeps",
        f"import os\nKEPT = []\ndef factor():\n    if not KEPT:\n        KEPT.append(float({HERE}))\n"
        "    return KEPT[0]\nclass Hidden:\n    def __call__(self):\n        return factor()\n    def spec(self):\n"
        "        return {}\nfactor_ = Hidden()\n" + TWICE.replace("factor()", "factor_()"),
        NUMBER,
        OTHER,
    ),
    Case(
        "a file that a helper caches",
        f"def factor():\n    import helper_@@\n    return helper_@@.factor()\n{TWICE}",
        {**NUMBER, "helper_@@.py": HELPER.format('open(__file__.replace("helper_@@.py", "number_@@.txt")).read()')},
        OTHER,
    ),
    Case(
        "a file that a helper imported by name caches",
        f'import importlib\ndef factor():\n    return importlib.import_module("help" + "er_@@").factor()\n{TWICE}',
        {**NUMBER, "helper_@@.py": HELPER.format('open(__file__.replace("helper_@@.py", "number_@@.txt")).read()')},
        OTHER,
    ),
    Case(
        "a number of a helper imported by name",
        f'import importlib\ndef factor():\n    return importlib.import_module("help" + "er_@@").NUMBER\n{TWICE}',
        {"helper_@@.py": "NUMBER = 1.0\n"},
        {"helper_@@.py": "NUMBER = 0.5\n"},
    ),
    *(
        Case(
            f"a module that appears, tried by {how}",
            "import functools, importlib.util\n@functools.lru_cache\ndef factor():\n    try:\n"
            f"        return {value}.NUMBER\n    except ImportError:\n        return 1.0\n{TWICE}",
            {},
            {"optional_@@.py": "NUMBER = 0.5\n"},
        )
        for how, value in (
            ("import", '__import__("optional_@@")'),
            ("its name", 'importlib.import_module("opt" + "ional_@@")'),
            (
                "a search for it",
                '(importlib.import_module if importlib.util.find_spec("opt" + "ional_@@") else __import__)'
                '("opt" + "ional_@@")',
            ),
        )
    ),
    Case(
        "a file that is replaced by one of the same size and time",
        cached(HERE),
        {"number_@@.txt": "\0stamped 1.0"},
        {"number_@@.txt": "\0stamped 0.5"},
    ),
    Case(
        "a file read in a thread",
        cached(
            'next(ThreadPoolExecutor(1).map(np.loadtxt, [os.path.join(FOLDER, "number_@@.txt")]))',
            "from concurrent.futures import ThreadPoolExecutor\n",
        ),
        NUMBER,
        OTHER,
    ),
    Case(
        "a file read in a forked process",
        cached(
            'multiprocessing.get_context("fork").Pool(1).map(np.loadtxt, [os.path.join(FOLDER, "number_@@.txt")])[0]',
            "import multiprocessing\n",
        ),
        NUMBER,
        OTHER,
    ),
    Case(
        "the names in a folder",
        cached('len(os.listdir(os.path.join(FOLDER, "data")))'),
        {"data/a.txt": ""},
        {"data/b.txt": ""},
    ),
    Case(
        "the names that a pattern finds",
        cached('len(list(P(FOLDER).glob("data/*.txt")))', "from pathlib import Path as P\n"),
        {"data/a.txt": ""},
        {"data/b.txt": ""},
    ),
    Case(
        "a file that appears, tried to open",
        "import functools, os\n@functools.lru_cache\ndef factor():\n    try:\n"
        '        return float(open(os.path.join(FOLDER, "opti" + "onal")).read())\n'
        f"    except OSError:\n        return 1.0\n{TWICE}",
        {},
        {"optional": "0.5"},
    ),
    Case(
        "a file that appears, asked whether it is there",
        cached('0.5 if os.path.exists(os.path.join(FOLDER, "opti" + "onal")) else 1'),
        {},
        {"optional": "0.5"},
    ),
    Case(
        "a file that disappears, asked for by pathlib",
        cached('0.5 if P(FOLDER, "opti" + "onal").is_file() else 1', "from pathlib import Path as P\n"),
        {"optional": ""},
        {"optional": None},
    ),
    Case(
        "a database",
        "import sqlite3\n"
        + cached('sqlite3.connect(os.path.join(FOLDER, "numbers")).execute("pragma user_version").fetchone()[0] or 1'),
        {"numbers": ""},
        {"numbers": "\0sqlite"},
    ),
    Case(
        "a variable that a library expands",
        cached('os.path.expandvars("$NUMBER_@@")'),
        variables={"NUMBER_@@": "0.5"},
    ),
    Case(
        "a variable in a template",
        cached('string.Template("${NUMBER_@@}").substitute(os.environ)', "import string\n"),
        variables={"NUMBER_@@": "0.5"},
    ),
    Case(
        "a variable with a name made on the way",
        cached('os.environ["NUM" + "BER_@@"]'),
        variables={"NUMBER_@@": "0.5"},
    ),
    Case(
        "a file that is mapped into memory",
        cached('np.memmap(os.path.join(FOLDER, "bytes"), mode="r")[0] / 100'),
        {"bytes": "d"},
        {"bytes": "2"},
    ),
    *(
        Case(f"a file read by {how}", cached(value.replace("PATH", NAME), first), NUMBER, OTHER)
        for how, value, first in (
            ("pathlib", "Path(PATH).read_text()", ""),
            ("numpy", "np.genfromtxt(PATH)", ""),
            ("pandas", "pd.read_csv(PATH, header=None).iloc[0, 0]", "import pandas as pd\n"),
            ("csv", "next(csv.reader(open(PATH)))[0]", "import csv\n"),
            ("yaml", "yaml.safe_load(open(PATH))", "import yaml\n"),
            ("a descriptor", "os.read(os.open(PATH, os.O_RDONLY), 9)", ""),
            ("linecache", "linecache.getline(PATH, 1)", "import linecache\n"),
            ("fileinput", "next(iter(fileinput.input(PATH)))", "import fileinput\n"),
            ("a path made on the way", 'open("".join(reversed(PATH[::-1]))).read()', ""),
            ("asyncio", "asyncio.run(asyncio.to_thread(np.loadtxt, PATH))", "import asyncio\n"),
            ("a pool of threads", "ThreadPool(1).map(np.loadtxt, [PATH])[0]", POOLS),
            ("a pool of processes", "next(Processes(1, FORK).map(np.loadtxt, [PATH]))", POOLS),
            ("a thread of its own", "in_thread(PATH)", THREAD),
            ("a child", "in_child(PATH)", CHILD),
            ("a generator", "next(float(line) for line in open(PATH))", ""),
            ("a link", "open(link(PATH)).read()", LINK),
        )
    ),
    Case("a file of a relative name", cached('open("@@/number_@@.txt").read()'), NUMBER, OTHER),
    Case(
        "a compressed file",
        cached('gzip.open(os.path.join(FOLDER, "packed")).read()', "import gzip\n"),
        {"packed": "\0gzip 1"},
        {"packed": "\0gzip 0.5"},
    ),
    Case(
        "an archive",
        cached('zipfile.ZipFile(os.path.join(FOLDER, "packed")).read("n")', "import zipfile\n"),
        {"packed": "\0zip 1"},
        {"packed": "\0zip 0.5"},
    ),
    Case(
        "tensors by safetensors",
        cached('tensors(os.path.join(FOLDER, "ten" + "sors"))', TENSORS),
        {"tensors": "\0tensors 1"},
        {"tensors": "\0tensors 0.5"},
    ),
    Case(
        "tensors by torch",
        cached('torch.load(os.path.join(FOLDER, "ten" + "sors"), weights_only=True)["n"].item()'),
        {"tensors": "\0torch 1"},
        {"tensors": "\0torch 0.5"},
    ),
    *(
        Case(f"the names in a folder by {how}", cached(value, "import glob\n"), {"data/a.txt": ""}, {"data/b.txt": ""})
        for how, value in (
            ("os.walk", 'sum(len(files) for _, _, files in os.walk(os.path.join(FOLDER, "data")))'),
            ("os.scandir", 'len(list(os.scandir(os.path.join(FOLDER, "data"))))'),
            ("glob", 'len(glob.glob(os.path.join(FOLDER, "data", "*.txt")))'),
            ("pathlib", 'len(list(Path(FOLDER, "data").iterdir()))'),
        )
    ),
    *(
        Case(f"whether a file is there, by {how}", cached(f"0.5 if {value} else 1"), {}, {"optional": ""})
        for how, value in (
            ("os.path.isfile", 'os.path.isfile(os.path.join(FOLDER, "opti" + "onal"))'),
            ("os.access", 'os.access(os.path.join(FOLDER, "opti" + "onal"), os.R_OK)'),
            ("pathlib", 'Path(FOLDER, "opti" + "onal").exists()'),
        )
    ),
    Case(
        "a configuration that is not there",
        cached('configured(os.path.join(FOLDER, "opti" + "onal"))', CONFIGURED),
        {},
        {"optional": "[a]\nb = 0.5\n"},
    ),
    Case(
        "a variable with a default",
        cached('os.getenv("NUMBER_" + "@@", "1")'),
        variables={"NUMBER_@@": "0.5"},
    ),
    Case(
        "what a metric reads",
        "import functools, os\n@functools.lru_cache\ndef factor():\n"
        f"    return float({HERE})\n"
        "def metrics(logits, targets):\n"
        "    return {'share': factor() * float((logits.argmax(1) == targets).float().mean())}\n"
        'add_setting("@@-first", metrics_fn=metrics, class_sublist=[0, 1, 2, 3])\n'
        'add_setting("@@", metrics_fn=metrics)\n',
        NUMBER,
        OTHER,
    ),
    Case(
        "what an object keeps",
        "import functools, os\nclass Kept:\n    def spec(self):\n        return {}\n    @functools.cached_property\n"
        f"    def factor(self):\n        return float({HERE})\n"
        f"KEPT = Kept()\n{TWICE.replace('factor()', 'KEPT.factor')}",
        NUMBER,
        OTHER,
    ),
    Case(
        "what a plug-in reads when it is imported",
        f"import os\nclass Kept:\n    def __init__(self):\n        self.factor = float({HERE})\n    def spec(self):\n"
        f"        return {{}}\nKEPT = Kept()\n{TWICE.replace('factor()', 'KEPT.factor')}",
        NUMBER,
        OTHER,
    ),
    Case(
        "what a helper of a helper keeps",
        f"import one_@@\ndef factor():\n    return one_@@.factor()\n{TWICE}",
        {
            **NUMBER,
            "one_@@.py": "def factor():\n    import two_@@\n    return two_@@.factor()\n",
            "two_@@.py": HELPER.format('open(__file__.replace("two_@@.py", "number_@@.txt")).read()'),
        },
        OTHER,
    ),
]


def word(case: Case) -> str:
    return f"r{CASES.index(case):02d}"


def own(text: str, case: Case) -> str:
    return text.replace("@@", word(case))


def _sqlite(path: Path, number: float) -> None:
    connection = sqlite3.connect(path)
    connection.execute("pragma user_version = 2")
    connection.commit()
    connection.close()


def _zip(path: Path, number: float) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("n", str(number))


def _stamped(path: Path, number: float) -> None:
    """Written in place, with the time of before."""
    path.write_text(str(number))
    os.utime(path, (1e9, 1e9))


def _tensors(path: Path, number: float) -> None:
    save_file({"n": np.array(number)}, path)


def _torch(path: Path, number: float) -> None:
    torch.save({"n": torch.tensor(number)}, path)


BINARY: dict[str, Callable[[Path, float], object]] = {
    "sqlite": _sqlite,
    "gzip": lambda path, number: path.write_bytes(gzip.compress(str(number).encode())),
    "zip": _zip,
    "stamped": _stamped,
    "tensors": _tensors,
    "torch": _torch,
}


def write(folder: Path, files: dict[str, str | None], case: Case) -> None:
    for name, text in files.items():
        path = folder / own(name, case)
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        elif text.startswith("\0"):
            kind, _, number = text[1:].partition(" ")
            BINARY[kind](path, float(number or 0))
        else:
            path.write_text(own(text, case))


@pytest.fixture(scope="module", params=["inline", pytest.param("processes", marks=pytest.mark.long)])
def answers(request, warm_python, root, tmp_path_factory) -> tuple[dict, dict]:
    """What the first run and the second one say."""
    folder = tmp_path_factory.mktemp("reads").resolve()
    for name, text in {"base/stale_base.py": BASE, "base/shared.py": BEGINNING + SHARED}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    plugins = [folder / "base" / "shared.py"]
    for case in CASES:
        place = folder / word(case)
        write(place, {"change_@@.py": BEGINNING + case.plugin, **case.before}, case)
        plugins.append(place / f"change_{word(case)}.py")
    settings = [f"{word(case)}{end}" for case in CASES for end in ("-first", "")]
    words = ["--plugin", *map(str, plugins), "--models", "plain", "--eval-settings", *settings, "clean"]
    words += ["--executor", request.param, "--json", "--db-url", str(folder / "testbed.db")]
    names = {own(name, case): value for case in CASES for name, value in case.variables.items()}

    def run(variables: dict[str, str]) -> dict:
        for cache in folder.rglob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)
        done = warm_python.run(root / "eval.py", words, folder, {**os.environ, **variables}, anew=True)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    first = run(dict.fromkeys(names, "1"))
    for case in CASES:
        write(folder / word(case), case.after, case)
    return first, run(names)


def ids(answer: dict) -> dict[str, tuple[str, int]]:
    return {each["setting"]: (each["status"], each["evaluation_id"]) for each in answer["outcomes"]}


@pytest.mark.parametrize("end", ["-first", ""], ids=["who read it", "who found it read"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_what_was_read_is_followed(answers, case, end):
    first, second = map(ids, answers)
    name = f"{word(case)}{end}"
    assert first[name][0] in ("complete", "derived"), answers[0]["outcomes"]
    assert second[name][0] in ("complete", "derived"), f"{second[name][0]}: the number is stale"
    assert second[name][1] != first[name][1]
    for check in answers[1]["checks"]:
        if check["eval_setting"] == name and check["result"] != "equal":
            assert word(case) in " ".join(check["because"])  # for what it reads itself, not only for what others do


def test_what_reads_nothing_is_stored(answers):
    first, second = map(ids, answers)
    assert second["clean"] == ("stored", first["clean"][1])

"""What code reads in ways that a definition does not show: after a change of it, no stored number is shown unchecked.

Each case is a plug-in with two settings, ``@@-first`` and ``@@``, on one model. Often both use something that the first
one reads and keeps. All are evaluated, all that they read is changed, and all are evaluated again.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
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
]


def word(case: Case) -> str:
    return f"r{CASES.index(case):02d}"


def own(text: str, case: Case) -> str:
    return text.replace("@@", word(case))


def write(folder: Path, files: dict[str, str | None], case: Case) -> None:
    import sqlite3

    for name, text in files.items():
        path = folder / own(name, case)
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        elif text == "\0sqlite":
            connection = sqlite3.connect(path)
            connection.execute("pragma user_version = 2")
            connection.commit()
            connection.close()
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


def test_what_reads_nothing_is_stored(answers):
    first, second = map(ids, answers)
    assert second["clean"] == ("stored", first["clean"][1])

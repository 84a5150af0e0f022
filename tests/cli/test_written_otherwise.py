"""What is written otherwise, or lies elsewhere, is checked on a few samples; what says something else is computed anew.

Each case is a plug-in with a model or a setting of its own. All are evaluated, then edited, and evaluated again.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field

import pytest
from stale_changes import BASE, BEGINNING, MODEL, SETTING, SHARED

pytestmark = pytest.mark.timeout(900)  # all cases are evaluated before the first test


@dataclass(frozen=True)
class Case:
    """An edit.

    Attributes:
        name: What is edited.
        cell: The model and the setting that it is about.
        plugin: The source of the plug-in.
        edits: What is replaced in which file.
        files: Other files of its folder.
        moves: Files that get another name, and for ``.`` the folder itself.
        same: Whether the numbers stay.
    """

    name: str
    cell: tuple[str, str]
    plugin: str
    edits: tuple[tuple[str, str, str], ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    moves: dict[str, str] = field(default_factory=dict)
    same: bool = True


PLUGIN = "change_@@.py"
LOOP = (
    "def f(images):\n    total = 0\n    for step in range(3):\n        total = total + step / 10\n"
    "    return images * total\nadd_setting('@@', perturbation_fn_gpu=f)\n"
)
NETWORK = (
    "class N(Net):\n    def forward(self, x):\n        scaled = x * 0.5\n        return super().forward(scaled)\n"
    "add_model('@@', N)\n"
)
READ = "def f(images):\n    return images * float(open('{}').read())\nadd_setting('@@', perturbation_fn_gpu=f)\n"
HERE = (
    "def f(images):\n    return images * float(Path(__file__).with_name('number.txt').read_text())\n"
    "add_setting('@@', perturbation_fn_gpu=f)\n"
)
FOLDER = (
    "def f(images):\n    return images * float(Path(FOLDER, 'n').read_text())\n"
    "add_setting('@@', perturbation_fn_gpu=f)\n"
)
WEIGHTS = (
    "def load():\n    network = Net()\n    network.weight.data *= float(open('@@/{}').read())\n    return network\n"
    "add_model('@@', load)\n"
)
HELPED = "import helper_@@\ndef f(images):\n    return helper_@@.f(images)\nadd_setting('@@', perturbation_fn_gpu=f)\n"
LATE = (
    "def f(images):\n    import helper_@@\n    return helper_@@.f(images)\nadd_setting('@@', perturbation_fn_gpu=f)\n"
)
HELPER = {"helper_@@.py": "def f(x):\n    return x * 0.5\n"}
CASES = [
    Case("a local variable", SETTING, LOOP, ((PLUGIN, "total", "summed"), (PLUGIN, "step", "number"))),
    Case("a local variable of a network", MODEL, NETWORK, ((PLUGIN, "scaled", "darker"),)),
    Case("type hints of a network", MODEL, NETWORK, ((PLUGIN, "self, x)", "self, x: torch.Tensor) -> torch.Tensor"),)),
    Case("type hints", SETTING, LOOP, ((PLUGIN, "(images)", "(images: torch.Tensor) -> torch.Tensor"),)),
    Case(
        "an import of a helper",
        SETTING,
        HELPED,
        (("helper_@@.py", "def f", "import colorsys\n\n\ndef f"),),
        HELPER,
    ),
    Case(
        "a function that a helper has besides",
        SETTING,
        HELPED,
        (("helper_@@.py", "def f", "def g(x):\n    return x\n\n\ndef f"),),
        HELPER,
    ),
    Case(
        "a function that a helper has besides, imported in a function",
        SETTING,
        LATE,
        (("helper_@@.py", "def f", "def g(x):\n    return x\n\n\ndef f"),),
        HELPER,
    ),
    Case("another place of what uses __file__", SETTING, HERE, (), {"number.txt": "0.5"}, {".": "moved-@@"}),
    Case("another place of what uses a folder", SETTING, FOLDER, (), {"n": "0.5"}, {".": "moved-@@"}),
    Case(
        "another name of a checkpoint",
        MODEL,
        WEIGHTS.format("one.txt"),
        ((PLUGIN, "one.txt", "two.txt"),),
        {"one.txt": "0.5"},
        {"one.txt": "two.txt"},
    ),
    Case(
        "another name of a file",
        SETTING,
        READ.format("@@/one.txt"),
        ((PLUGIN, "one.txt", "two.txt"),),
        {"one.txt": "0.5"},
        {"one.txt": "two.txt"},
    ),
    # What says something else
    Case(
        "a local variable instead of another one",
        SETTING,
        LOOP,
        ((PLUGIN, "images * total", "images * step"),),
        same=False,
    ),
    Case("a number of a network", MODEL, NETWORK, ((PLUGIN, "0.5", "0.4"),), same=False),
    Case("a function of a helper", SETTING, HELPED, (("helper_@@.py", "0.5", "0.4"),), HELPER, same=False),
    Case(
        "a function of a helper, imported in a function",
        SETTING,
        LATE,
        (("helper_@@.py", "0.5", "0.4"),),
        HELPER,
        same=False,
    ),
    Case(
        "another file",
        SETTING,
        READ.format("@@/one.txt"),
        ((PLUGIN, "one.txt", "two.txt"),),
        {"one.txt": "0.5", "two.txt": "0.4"},
        same=False,
    ),
    Case(
        "another checkpoint",
        MODEL,
        WEIGHTS.format("one.txt"),
        ((PLUGIN, "one.txt", "two.txt"),),
        {"one.txt": "0.5", "two.txt": "0.4"},
        same=False,
    ),
    Case(
        "another place, with another file",
        SETTING,
        HERE,
        (("number.txt", "0.5", "0.4"),),
        {"number.txt": "0.5"},
        {".": "moved-@@"},
        same=False,
    ),
]


def word(case: Case) -> str:
    return f"w{CASES.index(case):02d}"


def own(text: str, case: Case) -> str:
    return text.replace("@@", word(case))


@pytest.fixture(scope="module")
def answers(warm_python, root, tmp_path_factory) -> tuple[dict, dict]:
    """What the first run and the second one say."""
    folder = tmp_path_factory.mktemp("written").resolve()
    for name, text in {"base/stale_base.py": BASE, "base/shared.py": BEGINNING + SHARED}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for case in CASES:
        (folder / word(case)).mkdir()
        for name, text in {PLUGIN: BEGINNING + case.plugin, **case.files}.items():
            (folder / word(case) / own(name, case)).write_text(own(text, case))

    def run(places: dict[str, str]) -> dict:
        for cache in folder.rglob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)
        plugins = [folder / places.get(word(case), word(case)) / f"change_{word(case)}.py" for case in CASES]
        names = {own(name, case) for case in CASES for name in case.cell}
        models = ["plain", *sorted(name for name in names if own_model(name))]
        words = ["--plugin", str(folder / "base" / "shared.py"), *map(str, plugins), "--models", *models]
        words += ["--eval-settings", "clean", *sorted(names - set(models) - {"clean"})]
        words += ["--executor", "inline", "--json", "--db-url", str(folder / "testbed.db")]
        done = warm_python.run(root / "eval.py", words, folder, os.environ, anew=True)
        assert "Traceback" not in done.stderr, done.stderr
        return json.loads(done.stdout)

    def own_model(name: str) -> bool:
        return any(own(case.cell[0], case) == name for case in CASES)

    first = run({})
    moved = {}
    for case in CASES:
        for name, old, new in case.edits:
            path = folder / word(case) / own(name, case)
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        for name, new in case.moves.items():
            if name == ".":
                moved[word(case)] = own(new, case)
                shutil.copytree(folder / word(case), folder / own(new, case))
            else:
                (folder / word(case) / name).rename(folder / word(case) / new)
    return first, run(moved)


def outcome(answer: dict, case: Case) -> dict:
    cell = tuple(own(name, case) for name in case.cell)
    return next(each for each in answer["outcomes"] if (each["model"], each["setting"]) == cell)


def value(answer: dict, case: Case) -> float:
    cell = tuple(own(name, case) for name in case.cell)
    return next(
        each["value"]
        for each in answer["results"]
        if (each["model"], each["eval_setting"], each["metric"], each["slice"]) == (*cell, "nll", "overall")
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_what_is_only_written_otherwise_is_taken(answers, case):
    first, second = (outcome(answer, case) for answer in answers)
    assert first["status"] in ("complete", "derived"), first
    if case.same:
        assert (second["status"], second["evaluation_id"]) == ("stored", first["evaluation_id"]), second
        assert value(answers[1], case) == value(answers[0], case)
    else:
        assert second["status"] in ("complete", "derived"), second
        assert second["evaluation_id"] != first["evaluation_id"]
        assert value(answers[1], case) != pytest.approx(value(answers[0], case), rel=1e-4)


def test_a_few_samples_are_computed_again_for_it(answers):
    checks = [each for each in answers[1]["checks"] if each["result"] == "equal"]
    assert checks
    assert max(each["samples"] for each in checks) <= 8

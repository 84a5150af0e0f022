"""What surrounds the definitions is another one the second time: libraries, checkouts, the working folder, plug-ins.

All of it is changed at once between two runs, each in a process of its own as a user's is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from stale_changes import BASE, BEGINNING, SHARED
from tables import cases

PLUGIN = """
import functools, importlib, os
import again, direct, mine.code, mine.data, patched


def factor_of_optional():
    try:
        import appears
    except ImportError:
        return 1.0
    return appears.factor()


def factor_of_gone():
    try:
        return importlib.import_module("dis" + "appears").factor()
    except ImportError:
        return 1.0


def factor_of_relative():
    return float(open("number.txt").read())


def factor_of_memory():
    return float(open(os.environ["MEMORY"]).read())


FACTORS = {
    "again": again.factor,
    "indirect": direct.factor,
    "by-name": lambda: importlib.import_module("nam" + "ed").factor(),
    "with-data": lambda: importlib.import_module("with_data").factor(),
    "appears": factor_of_optional,
    "disappears": factor_of_gone,
    "checkout-code": lambda: mine.code.factor(),
    "checkout-data": lambda: mine.data.factor(),
    "working-folder": factor_of_relative,
    "memory": factor_of_memory,
    "patched": lambda: patched.factor(),
}


class By:
    def __init__(self, name):
        self.name = name
    def spec(self):
        return {"factor": self.name}
    def __call__(self, images):
        return images * FACTORS[self.name]()


for name in FACTORS:
    add_setting(name, perturbation_fn_gpu=By(name))
"""
NAMES = (
    *("again", "indirect", "by-name", "with-data", "appears", "disappears"),
    *("checkout-code", "checkout-data", "working-folder", "memory", "patched"),
)
READER = (
    'import os\ndef factor():\n    return float(open(os.path.join(os.path.dirname(__file__), "number.txt")).read())\n'
)
PATCH = "import patched\npatched.factor = lambda: 0.5\n"


def constant(number: float) -> str:
    return f"def factor():\n    return {number}\n"


def install(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """A distribution as pip leaves it."""
    about = f"{name}-{version}.dist-info"
    files = {**files, f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    lines = [f"{file},sha256={sha256(text.encode()).hexdigest()},{len(text)}\n" for file, text in files.items()]
    (folder / about / "RECORD").write_text("".join([*lines, f"{about}/RECORD,,\n"]))


def surround(folder: Path, number: float, second: bool) -> None:
    """Libraries, a checkout and a working folder in which all factors are a number."""
    libraries = folder / "site-packages"
    install(libraries, "again", "1.0", {"again.py": constant(number)})
    install(libraries, "direct", "1.0", {"direct.py": "import further\nfrom further import factor\n"})
    install(libraries, "further", "2.0", {"further/__init__.py": constant(number)})
    install(libraries, "named", "1.1" if second else "1.0", {"named.py": constant(number)})
    install(libraries, "with-data", "1.0", {"with_data/__init__.py": READER, "with_data/number.txt": str(number)})
    install(libraries, "patched", "1.0", {"patched.py": constant(1.0)})
    name = "appears" if second else "disappears"
    install(libraries, name, "1.0", {f"{name}.py": constant(0.5)})
    checkout = folder / "checkout" / "mine"
    checkout.mkdir(parents=True)
    files = {"__init__.py": "", "code.py": constant(number), "data.py": READER, "number.txt": str(number)}
    for file, text in files.items():
        (checkout / file).write_text(text)
    (folder / "number.txt").write_text(str(number))


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    folder = Path(f"/dev/shm/testbed-tests-{os.getpid()}")
    folder.mkdir()
    yield folder / "number.txt"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def answers(root: Path, tmp_path_factory: pytest.TempPathFactory, memory: Path) -> tuple[dict, dict]:
    """What the first run and the second one say."""
    folder = tmp_path_factory.mktemp("surroundings").resolve()
    files = {"base/stale_base.py": BASE, "base/shared.py": BEGINNING + SHARED, "patch/patch.py": PATCH}
    for name, text in {**files, "plugin/surrounded.py": BEGINNING + PLUGIN}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    def run(place: str, number: float, *plugins: str) -> dict:
        surround(folder / place, number, second=bool(plugins))
        memory.write_text(str(number))
        paths = os.pathsep.join(str(folder / place / part) for part in ("site-packages", "checkout"))
        words = ["--plugin", *(str(folder / file) for file in ("base/shared.py", "plugin/surrounded.py", *plugins))]
        words += ["--models", "plain", "--eval-settings", *NAMES, "--executor", "inline", "--json"]
        done = subprocess.run(
            [sys.executable, str(root / "eval.py"), *words, "--db-url", str(folder / "testbed.db")],
            cwd=folder / place,
            env={**os.environ, "PYTHONPATH": paths, "MEMORY": str(memory)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run("first", 1.0), run("second", 0.5, "patch/patch.py")


WHY = {
    "again": "again 1.0 has other files",
    "indirect": "further 2.0 has other files",
    "by-name": "named 1.0 → 1.1",
    "with-data": "with-data 1.0 has other files",
    "appears": "appears is there now",
    "disappears": "disappears 1.0 → not installed",
    "checkout-code": "mine is in another place",
    "checkout-data": "mine is in another place",
    "working-folder": "./number.txt changed",
    "memory": "number.txt changed",
    "patched": "the plug-in patch.py is loaded as well",
}


@pytest.mark.long
@cases("name", NAMES)
def test_no_number_of_other_surroundings_is_shown(answers: tuple[dict, dict], name: str) -> None:
    first, second = ({each["setting"]: each for each in answer["outcomes"]}[name] for answer in answers)
    assert (first["status"], second["status"]) == ("complete", "complete")
    assert second["evaluation_id"] != first["evaluation_id"]
    differing = [each for each in answers[1]["checks"] if each["eval_setting"] == name and each["result"] != "equal"]
    assert all(any(WHY[name] in text for text in each["because"]) for each in differing), differing


def test_plug_ins_of_one_name_are_told_apart(
    ask: Any, tmp_path: Path, own_registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / name / "extra.py" for name in ("a", "b")]
    for place in places:
        place.parent.mkdir()
        place.write_text(f"place = {place.parent.name!r}\n")

    def in_doubt(*plugins: Path) -> int:
        monkeypatch.setattr(own_registry, "plugins", [])
        words = ["--plugin", *plugins] if plugins else []
        done = ask("run", "digits-logreg", "--on", "digits", "--limit", "20", *words, "--executor", "inline", "--json")
        return len(json.loads(done.stdout)["checks"])

    first, second = places
    assert in_doubt(second, first) == 0
    assert in_doubt(first, second) == 0  # in whatever order
    for place in places:
        place.write_text("place = 'edited'\nsecond = " + repr(place.parent.name))
        assert in_doubt(first, second) == 1, place
        assert in_doubt(first, second) == 0
    assert in_doubt(second) == 1

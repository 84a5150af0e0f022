"""What is in memory, what is on the disk, and what a run sees of the user's code: as in a notebook that stays open.

A module is written to a folder and imported; `new_process` stands for Python's being started again.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.machinery
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from toy import ToyNetwork, toy_catalog, toy_model, toy_setting
from warm_python import WarmPython

from testbed.provenance import libraries
from testbed.registry.discovery import load_plugin_file
from testbed.tracing import access_log, versions

COUNT = 70  # two batches


class Notebook:
    """Modules of the user's in a folder, and runs of a setting that is perturbed by ``f`` of the module ``mine``."""

    def __init__(self, lab: Any, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.count = COUNT

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def edit(self, name: str, old: str = "0.5", new: str = "0.8") -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))

    def run(self, **options: Any) -> Any:
        """Evaluates, and returns the outcome."""
        importlib.invalidate_caches()
        mine = importlib.import_module("mine")
        setting = toy_setting("s", self.count, perturbation_fn_gpu=mine.f)
        self.report = self.lab.run(toy_catalog(toy_model(), setting), **options)
        return self.report.outcomes[0]

    def value(self) -> float:
        return float(self.lab.metrics("toy", "s")["nll"].value)

    def new_process(self) -> None:
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(self.folder)):
                del sys.modules[name]
        access_log._own.clear()
        access_log._modules.difference_update({"mine", "helper", "config"})
        versions.forget()


@pytest.fixture
def notebook(lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Notebook(lab, folder)
    yield made
    made.new_process()


LAZY = "def f(images):\n    import helper\n    return helper.dim(images)\n"
TOP = "import helper\ndef f(images):\n    return helper.dim(images)\n"
HELPER = "def dim(images):\n    return images * 0.5\n"
CACHED = """
import functools
from pathlib import Path

@functools.cache
def factor():
    return float(Path(__file__).with_name("num" + "ber").read_text())

def dim(images):
    return images * factor()
"""


# What is in memory is not what is on the disk --------------------------------------------------------------------


@pytest.mark.parametrize("mine", [TOP, "from helper import dim as f\n", LAZY])
def test_a_number_of_a_module_that_was_edited_since_its_import_is_not_that_of_its_text(
    notebook: Notebook, mine: str
) -> None:
    notebook.write("helper.py", HELPER)
    notebook.write("mine.py", mine)
    importlib.import_module("helper")
    notebook.edit("helper.py")
    assert notebook.run().status == "complete"
    old = notebook.value()
    notebook.new_process()
    assert notebook.run().status == "complete"
    assert notebook.value() != pytest.approx(old, rel=1e-3)
    notebook.new_process()
    assert (notebook.run().status, notebook.report.checks) == ("stored", [])


@pytest.mark.parametrize("edited", ["helper.py", "number"])
@pytest.mark.parametrize("mine", [TOP, LAZY])
def test_a_check_of_what_is_in_memory_proves_nothing(notebook: Notebook, mine: str, edited: str) -> None:
    notebook.write(
        "helper.py", CACHED.replace("factor()\n", "factor() * 0.5\n").replace("def factor() * 0.5", "def factor()")
    )
    notebook.write("number", "0.5")
    notebook.write("mine.py", mine)
    notebook.run()
    old = notebook.value()
    notebook.edit(edited)
    for _ in range(2):  # also the second time
        outcome = notebook.run()
        assert outcome.status == "stored"
        (check,) = notebook.report.checks
        assert (check.result, notebook.value()) == ("not checked", old)
        assert f"{edited} was edited since it was read: restart Python, or reload it" in check.reason
    notebook.new_process()
    assert notebook.run().status == "complete"
    assert notebook.value() != pytest.approx(old, rel=1e-3)


def test_after_a_reload_the_new_text_counts(notebook: Notebook) -> None:
    notebook.write("helper.py", HELPER)
    notebook.write("mine.py", LAZY)
    notebook.run()
    old = notebook.value()
    notebook.edit("helper.py")
    importlib.reload(sys.modules["helper"])
    assert notebook.run().status == "complete"
    assert notebook.value() != pytest.approx(old, rel=1e-3)


def test_a_file_that_is_read_anew_is_no_doubt(notebook: Notebook) -> None:
    notebook.write("helper.py", CACHED.replace("@functools.cache\n", ""))
    notebook.write("number", "0.5")
    notebook.write("mine.py", TOP)
    notebook.run()
    for text, status in (("0.50", "stored"), ("0.8", "complete"), ("0.80", "stored")):
        notebook.write("number", text)
        assert notebook.run().status == status
        assert [each.result for each in notebook.report.checks] == ["equal" if status == "stored" else "differs"]
        assert notebook.run().status == "stored"
        assert notebook.report.checks == []


def test_the_lines_of_a_function_are_those_of_the_text_that_was_run(notebook: Notebook) -> None:
    notebook.write("helper.py", HELPER)
    notebook.write("mine.py", TOP)
    first = notebook.run().evaluation_id
    notebook.edit("mine.py", "import helper", "import helper\n\n\ndef other():\n    return 3\n")
    assert notebook.run().evaluation_id == first
    notebook.new_process()
    assert notebook.run().evaluation_id == first


@pytest.mark.parametrize("late", [False, True], ids=["while it computes", "before its first batch is stored"])
def test_a_file_that_is_edited_after_it_was_read_counts_as_it_was_read(notebook: Notebook, late: bool) -> None:
    """By another program: what the code writes itself is no edit."""
    copy = "    subprocess.run(['cp', HERE / 'other', HERE / 'number'], check=True)\n"
    notebook.write("number", "0.5")
    notebook.write("other", "0.5")
    notebook.write(
        "mine.py",
        "import functools, subprocess\nfrom pathlib import Path\n\nHERE = Path(__file__).parent\n\n"
        "@functools.cache\ndef factor():\n    return float((HERE / ('num' + 'ber')).read_text())\n\n"
        f"def f(images):\n    images = images * factor()\n{copy}    return images\n",
    )
    notebook.count = 40 if late else COUNT  # one batch, or two
    notebook.write("other", "0.8")
    notebook.run()
    old = notebook.value()
    notebook.new_process()
    assert notebook.run().status == "complete"
    assert notebook.value() != pytest.approx(old, rel=1e-3)


def state(seed: int, size: int = 1) -> dict[str, torch.Tensor]:
    return {"weight": ToyNetwork(seed).weight.detach(), "padding": torch.zeros(size)}


FORMATS: dict[str, tuple[Callable[[int, Path], Any], Callable[[Path], torch.Tensor]]] = {
    "torch": (
        lambda seed, path: torch.save(state(seed), path),
        lambda path: torch.load(path, weights_only=True)["weight"],
    ),
    "a large file": (
        lambda seed, path: torch.save(state(seed, 1 << 19), path),
        lambda path: torch.load(path, weights_only=True)["weight"],
    ),
    "safetensors": (
        lambda seed, path: safetensors.torch.save_file(state(seed), path),
        lambda path: safetensors.torch.load_file(path)["weight"],
    ),
    "C code": (  # no event of Python's says that it is opened
        lambda seed, path: path.write_bytes(ToyNetwork(seed).weight.detach().numpy().tobytes()),
        lambda path: torch.from_file(str(path), size=3 * 16 * 16 * 10).reshape(-1, 10).clone(),
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_digest_of_weights_is_that_of_the_bytes_that_were_loaded(lab: Any, tmp_path: Path, name: str) -> None:
    """A training run writes its checkpoint between the hash and the loading."""
    write, read = FORMATS[name]
    place, later = tmp_path / "last.ckpt", tmp_path / "later.ckpt"
    write(1, place)
    write(2, later)
    earlier, swap = place.read_bytes(), [True]

    def load() -> ToyNetwork:
        if swap:
            subprocess.run(["cp", str(later), str(place)], check=True)
            swap.clear()
        network = ToyNetwork(0)
        network.weight.data = read(place)
        return network

    catalog = toy_catalog(toy_model(classifier_loader=load, weights=place), toy_setting("s", COUNT))
    (outcome,) = lab.run(catalog).outcomes
    assert outcome.status == "failed"
    assert f"{place} was overwritten between its hash and its loading; run again" in outcome.reason
    assert lab.run(catalog).outcomes[0].status == "complete"
    new = float(lab.metrics("toy", "s")["nll"].value)
    place.write_bytes(earlier)
    assert lab.run(catalog).outcomes[0].status == "complete"
    assert float(lab.metrics("toy", "s")["nll"].value) != pytest.approx(new, rel=1e-3)


# Eight samples are not a proof -----------------------------------------------------------------------------------


RARE = {
    "a branch of a helper": ("helper.py", "images[:1] *= 1.0", "images[:1] *= 0.3"),
    "two rows of a table": ("table", "1.0 1.0", "0.3 0.3"),
    "a table under another name, of other content": ("mine.py", "'table'", "'other'"),
}


@pytest.mark.parametrize("name", RARE)
def test_a_change_of_few_samples_is_found_where_ones_own_file_has_changed(notebook: Notebook, name: str) -> None:
    notebook.count = 100
    notebook.write(
        "helper.py", "def dim(images):\n    images = images.clone()\n    images[:1] *= 1.0\n    return images\n"
    )
    notebook.write("table", "1.0 1.0" + 98 * " 1")
    notebook.write("other", "0.3 0.3" + 98 * " 1")
    notebook.write(
        "mine.py",
        "import pathlib\nimport torch\n\ndef f(images, seeds):\n    from helper import dim\n"
        "    table = (pathlib.Path(__file__).parent / 'table').read_text().split()\n"
        "    factors = torch.tensor([float(table[seed % 100]) for seed in seeds])\n"
        "    return dim(images) * factors[:, None, None, None]\n",
    )
    notebook.run()
    notebook.edit(*RARE[name])
    notebook.new_process()
    assert notebook.run().status == "complete"


def test_a_check_says_which_share_may_differ_and_the_record_keeps_it(notebook: Notebook) -> None:
    notebook.count = 600
    notebook.write("helper.py", HELPER)
    notebook.write("mine.py", LAZY)
    notebook.run()
    notebook.edit("helper.py", "0.5", "0.50")
    notebook.new_process()
    outcome = notebook.run()
    (check,) = notebook.report.checks
    assert (outcome.status, check.result) == ("stored", "equal")
    assert check.certificate.samples == 299
    assert check.certificate.may_differ == pytest.approx(1 - 0.05 ** (1 / 299))  # the rule of three
    with notebook.lab.open() as store:
        records = store.records.of([outcome.evaluation_id])[outcome.evaluation_id]
    assert max(each.content.get("checked", {}).get("may_differ", 0) for each in records) < 0.01


# Code and files that are seen ------------------------------------------------------------------------------------

CONFIG = (
    "import importlib.util, os, sys\nfrom pathlib import Path\n\nHERE = Path(__file__).parent\nNAME = 'con' + 'fig'\n\n"
)
BY_HAND = """
def f(images):
    spec = importlib.util.spec_from_file_location("cfg", HERE / f"{NAME}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return images * module.K
"""
READS = "    return images * float(k)\n"
K = "K = 0.5\n"
SEEN = {
    "a file that is run by hand": (BY_HAND, "config.py"),
    "one that is run from text": (
        "def f(images):\n    found = {}\n    path = str(HERE / f'{NAME}.py')\n"
        "    exec(compile(open(path).read(), path, 'exec'), found)\n    return images * found['K']\n",
        "config.py",
    ),
    "a module that is removed again": (
        "def f(images):\n    module = importlib.import_module(NAME)\n    del sys.modules[NAME]\n"
        "    return images * module.K\n",
        "config.py",
    ),
    "a file that is opened to append": (
        "def f(images):\n    with open(HERE / NAME, 'a+') as file:\n        file.seek(0)\n"
        f"        k = file.read()\n{READS}",
        "config",
    ),
    "a file that a library reads in a thread": (
        "from concurrent.futures import ThreadPoolExecutor\n\n"
        "def f(images):\n    with ThreadPoolExecutor(1) as threads:\n"
        f"        (k,) = threads.map(Path.read_text, [HERE / NAME])\n{READS}",
        "config",
    ),
    "where a link leads": (f"def f(images):\n    k = os.readlink(HERE / NAME)\n{READS}", "link"),
    "a file behind a link": (
        f"def f(images):\n    k = (HERE / NAME).resolve().read_text()\n{READS}",
        "link",
    ),
    "a folder that is a link": (
        f"def f(images):\n    k = open(os.path.realpath(HERE / NAME / 'number')).read()\n{READS}",
        "folder",
    ),
    "data beside a module": (
        f"import pkgutil\n\ndef f(images):\n    k = pkgutil.get_data('inside', NAME)\n{READS}",
        "inside/config",
    ),
    "a module in an archive": (
        "sys.path.insert(0, str(HERE / f'{NAME}.zip'))\n\n"
        "def f(images):\n    return images * importlib.import_module('zipped_' + NAME).K\n",
        "config.zip",
    ),
}


def point(place: Path, kind: str, value: str) -> None:
    """Writes a value where the code finds it: as a constant, a text, or by way of a link."""
    if kind == "config.py":
        (place / kind).write_text(f"K = {value}\n")
    elif kind.endswith("config"):
        (place / kind).parent.mkdir(exist_ok=True)
        (place / kind).with_name("__init__.py").touch()
        (place / kind).write_text(value)
    elif kind == "config.zip":
        with zipfile.ZipFile(place / kind, "w") as archive:
            archive.writestr("zipped_config.py", f"K = {value}\n")
    else:
        target = place / value
        if kind == "folder":
            target.mkdir()
            (target / "number").write_text(value)
        else:
            target.write_text(value)
        (place / "config").unlink(missing_ok=True)
        (place / "config").symlink_to(value)


@pytest.mark.parametrize("name", SEEN)
def test_what_code_runs_or_reads_is_seen(notebook: Notebook, name: str) -> None:
    text, kind = SEEN[name]
    notebook.write("mine.py", CONFIG + text)
    point(notebook.folder, kind, "0.5")
    notebook.run()
    old = notebook.value()
    assert (notebook.run().status, notebook.report.checks) == ("stored", [])
    notebook.new_process()
    point(notebook.folder, kind, "0.8")
    assert notebook.run().status == "complete"
    assert notebook.value() != pytest.approx(old, rel=1e-3)


LISTED = {
    "the beginning of a name": "[v for key, v in os.environ.items() if key.startswith('TESTBED_LI')]",
    "one of several beginnings": "[v for key, v in os.environ.items() if key.startswith(('TESTBED_LI_ST', 'ZZ'))]",
    "a part of a name": "[os.environ[key] for key in os.environ if key[:11] == 'TESTBED_LI_']",
    "a copy": "[v for v in [dict(os.environ).get('TESTBED_LI_ST')] if v]",
    "a copy by its method": "[v for v in [os.environ.copy().get('TESTBED_LI_ST')] if v]",
    "a copy with more": "[v for v in [{**os.environ, 'A': '1'}.get('TESTBED_LI_ST')] if v]",
    "a beginning that has a name": "[v for key, v in os.environ.items() if key.startswith(BEGINNING)]",
}


@pytest.mark.parametrize("name", LISTED)
def test_variables_that_are_chosen_from_all_are_seen(notebook: Notebook, name: str) -> None:
    listing, name = LISTED[name], "TESTBED_LI_ST"
    text = f"BEGINNING = 'TESTBED_LI_'\n\ndef f(images):\n    k, *_ = {listing} or [1]\n{READS}"
    notebook.write("mine.py", CONFIG + text)
    found = []
    for value in ("0.5", "0.8", None):  # also one that is not there any more
        os.environ.pop(name, None)
        os.environ.update({} if value is None else {name: value})
        assert notebook.run().status == "complete"
        found.append(notebook.value())
        assert (notebook.run().status, notebook.report.checks) == ("stored", [])
        notebook.new_process()
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    "read", ["os.environ[{}]", "os.environ.get({})", "os.getenv({}, '1')"], ids=["taken", "asked for", "by getenv"]
)
def test_a_variable_that_was_read_before_the_first_evaluation_is_seen(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    """By a module that keeps it where no definition refers to it."""
    name = "'TESTBED_EARLIER'"
    notebook.write("helper.py", f"import os\n\nK = float({read.format(name)})\n")
    notebook.write("mine.py", f"{CONFIG}def f(images):\n    return images * importlib.import_module('help' + 'er').K\n")
    found = []
    for value in ("0.5", "0.8"):
        monkeypatch.setenv("TESTBED_EARLIER", value)
        importlib.import_module("helper")
        assert notebook.run().status == "complete"
        found.append(notebook.value())
        assert (notebook.run().status, notebook.report.checks) == ("stored", [])
        notebook.new_process()
    assert found[0] != pytest.approx(found[1], rel=1e-3)


EXTENSION = """
#include <Python.h>
static PyObject *k(PyObject *self, PyObject *none) { return PyFloat_FromDouble(0.5); }
static PyMethodDef methods[] = {{"k", k, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "compiled", "", -1, methods};
PyMODINIT_FUNC PyInit_compiled(void) { return PyModule_Create(&module); }
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "mine",
    [
        "import compiled\n\ndef f(images):\n    return images * compiled.k()\n",
        "def f(images):\n    from helper import k\n    return images * k()\n",
    ],
    ids=["at the top", "through a helper, within a function"],
)
def test_compiled_code_of_ones_own_is_seen(tmp_path: Path, mine: str, warm_python: WarmPython) -> None:
    """In processes of their own, since one cannot import compiled code again."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "mine.py").write_text(mine)
    (tmp_path / "helper.py").write_text("from compiled import k\n")
    (tmp_path / "run.py").write_text(SCRIPT)

    def value(factor: str) -> tuple[str, float]:
        (tmp_path / "compiled.c").write_text(EXTENSION.replace("0.5", factor))
        place = tmp_path / f"compiled{importlib.machinery.EXTENSION_SUFFIXES[0]}"
        place.unlink(missing_ok=True)
        include = f"-I{sysconfig.get_path('include')}"
        subprocess.run([compiler, "-shared", "-fPIC", include, tmp_path / "compiled.c", "-o", place], check=True)
        done = warm_python.run(tmp_path / "run.py", [], tmp_path, os.environ)
        assert done.returncode == 0, done.stderr
        status, number = done.stdout.split()[-2:]
        return status, float(number)

    first = value("0.5")
    assert value("0.5") == ("stored", first[1])
    second = value("0.8")
    assert second[0] == "complete"
    assert second[1] != pytest.approx(first[1], rel=1e-3)


def test_compiled_code_beside_a_plugin_is_found_and_seen(
    lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "code.c").write_text(EXTENSION)
    place = tmp_path / f"compiled{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run([compiler, "-shared", "-fPIC", include, tmp_path / "code.c", "-o", place], check=True)
    (tmp_path / "plugin.py").write_text("def f(images):\n    import compiled\n    return images * compiled.k()\n")
    monkeypatch.delitem(sys.modules, "compiled", raising=False)
    f = load_plugin_file(tmp_path / "plugin.py").f
    (outcome,) = lab.run(toy_catalog(toy_model(), toy_setting("s", 20, perturbation_fn_gpu=f))).outcomes
    assert outcome.status == "complete"
    with lab.open() as store:
        records = store.records.of([outcome.evaluation_id])[outcome.evaluation_id]
    assert any(str(place) in each.content["files"] for each in records)


SCRIPT = """
import testbed
import mine
from toy import toy_model, toy_setting

found = testbed.evaluate(toy_model(), toy_setting("s", 20, perturbation_fn_gpu=mine.f), db="store.db", progress=False)
row = found.frame[found.frame.metric == "nll"].iloc[0]
print(row.status, row.value)
"""


@pytest.mark.parametrize(
    ("module", "listed"),
    [
        ("labfx", {"top_level.txt": "labfx\n"}),
        ("labfx", {"installed-files.txt": "../labfx/__init__.py\nPKG-INFO\n"}),
        ("labfx", {}),
        ("effects", {"top_level.txt": "effects\n"}),
        ("effects", {}),  # which says nowhere whose it is
    ],
)
def test_a_library_without_a_record_has_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, listed: dict[str, str]
) -> None:
    """As Debian, or an old installer, leaves it."""
    info = tmp_path / "labfx-1.0.egg-info"
    for folder in (tmp_path / module, info):
        folder.mkdir()
    for name, text in listed.items():
        (info / name).write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    caches: list[Any] = [libraries.installed, libraries._recorded, libraries._tops_of, libraries._unlisted]
    caches += [libraries._unrecorded]
    found = set()
    for text in ("0.5", "0.8"):
        (tmp_path / module / "__init__.py").write_text(text)
        for cache in caches:
            cache.cache_clear()
        assert libraries.of_modules([module]) == {"labfx"}
        found.add(libraries.releases(["labfx"])["labfx"])
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()
    assert len(found) == 2
    assert all(each.startswith("1.0 ") for each in found)


def test_a_library_that_was_edited_in_place_has_another_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing the same text again changes nothing."""
    info, text = tmp_path / "labfx-1.0.dist-info", b"FACTOR = 0.5"
    info.mkdir()
    (tmp_path / "labfx.py").write_bytes(text)
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
    (info / "RECORD").write_text(f"labfx.py,sha256={digest},{len(text)}\n")
    monkeypatch.syspath_prepend(tmp_path)
    caches: list[Any] = [libraries.installed, libraries._recorded, libraries._edits, libraries._edited]
    later = time.time() + 60
    releases = []
    for content in (text, text, b"FACTOR = 0.8"):
        for cache in caches:
            cache.cache_clear()
        importlib.import_module("labfx")
        releases.append(libraries.releases(["labfx"])["labfx"])
        (tmp_path / "labfx.py").write_bytes(content)
        os.utime(tmp_path / "labfx.py", (later, later))
    for cache in caches:
        cache.cache_clear()
    releases.append(libraries.releases(["labfx"])["labfx"])
    monkeypatch.undo()
    sys.modules.pop("labfx")
    for cache in caches:
        cache.cache_clear()
    assert releases[0] == releases[1] == releases[2] != releases[3]


def test_a_module_that_was_put_among_libraries_by_hand_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    found = []
    for text in ("0.5", "0.8"):
        (folder / "by_hand.py").write_text(text)
        libraries._loose.cache_clear()
        found.append(libraries.releases(libraries.of_modules(["by_hand", "json", "mine"])))
    assert list(found[0]) == list(found[1]) == ["by_hand (in no package)"]
    assert found[0] != found[1]


ASKED = {
    "a version": (
        "from importlib.metadata import version\n\ndef f(images):\n    return images * float(version('Asked-lib'))\n"
    ),
    "whether a library is there": (
        "from importlib import metadata\n\ndef f(images):\n    try:\n        metadata.version('asked_lib2')\n"
        "    except metadata.PackageNotFoundError:\n        return images * 0.5\n    return images * 0.8\n"
    ),
    "what the libraries offer": (
        "from importlib.metadata import entry_points\n\ndef f(images):\n"
        "    (found,) = entry_points(group='asked.numbers')\n    return images * float(found.value.removeprefix('n'))\n"
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_code_asks_about_libraries_is_seen(notebook: Notebook, name: str) -> None:
    """None of their modules is imported, so that their releases alone say nothing."""
    notebook.write("mine.py", ASKED[name])
    caches = [
        libraries.installed,
        libraries._recorded,
        libraries._tops_of,
        libraries._unlisted,
        libraries._entry_points,
    ]
    found = []
    for value in ("0.5", "0.8"):
        for old in notebook.folder.glob("*.dist-info"):
            shutil.rmtree(old)
        for library in ("asked_lib", *(["asked_lib2"] if value == "0.8" else [])):
            info = f"{library}-{value}.dist-info"
            notebook.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {library}\nVersion: {value}\n")
            notebook.write(f"{info}/RECORD", f"{info}/METADATA,,\n")
        notebook.write(f"asked_lib-{value}.dist-info/entry_points.txt", f"[asked.numbers]\nk = n{value}\n")
        for cache in caches:
            cache.cache_clear()
        assert notebook.run().status == "complete"
        found.append(notebook.value())
        assert (notebook.run().status, notebook.report.checks) == ("stored", [])
        notebook.new_process()
    for cache in caches:
        cache.cache_clear()
    assert found[0] != pytest.approx(found[1], rel=1e-3)


# What docs/concepts.md lists as unseen ---------------------------------------------------------------------------

UNSEEN = {
    "the time of a file": (
        "def f(images):\n    return images * ((HERE / NAME).stat().st_mtime % 10) / 10\n",
        lambda folder, value: ((folder / "config").touch(), os.utime(folder / "config", (value, value))),
    ),
    "a file that a program reads": (
        f"import subprocess\n\ndef f(images):\n    k = subprocess.check_output(['cat', HERE / NAME])\n{READS}",
        lambda folder, value: (folder / "config").write_text(f"0.{value}"),
    ),
    "a file in a folder that the source names, which a program reads": (
        "import subprocess\n\ndef f(images):\n"
        f"    k = subprocess.check_output(['sh', '-c', 'cat *'], cwd=HERE / 'feats.lmdb')\n{READS}",
        lambda folder, value: (
            (folder / "feats.lmdb").mkdir(exist_ok=True),
            (folder / "feats.lmdb" / "data.mdb").write_text(f"0.{value}"),
        ),
    ),
    "a file that C code opens": (
        f"import h5py\n\ndef f(images):\n    with h5py.File(HERE / NAME) as file:\n        k = file['k'][()]\n{READS}",
        lambda folder, value: subprocess.run(
            [sys.executable, "-c", f"import h5py; h5py.File('config', 'w')['k'] = 0.{value}"], cwd=folder, check=True
        ),
    ),
    "whether a file is there, asked before the first evaluation": (
        "NUMBER = 0.5 if (HERE / NAME).exists() else 0.8\n\n"
        "def f(images):\n    return images * vars(sys.modules[__name__])['NUM' + 'BER']\n",
        lambda folder, value: (folder / "config").touch() if value == 5 else (folder / "config").unlink(),
    ),
    "a variable from a copy of all, by a name that is computed": (
        f"def f(images):\n    k = dict(os.environ)['TESTB' + 'ED_COPIED']\n{READS}",
        lambda folder, value: os.environ.update(TESTBED_COPIED=f"0.{value}"),
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_the_docs_list_as_unseen_is_unseen_and_verify_finds_it(notebook: Notebook, name: str) -> None:
    if "h5py" in UNSEEN[name][0]:
        pytest.importorskip("h5py")
    text, change = UNSEEN[name]
    notebook.write("mine.py", CONFIG + text)
    change(notebook.folder, 5)
    notebook.run()
    notebook.new_process()
    change(notebook.folder, 8)
    assert (notebook.run().status, notebook.report.checks) == ("stored", [])
    notebook.run(verify="100%")
    assert [each.result for each in notebook.report.checks] == ["differs"]

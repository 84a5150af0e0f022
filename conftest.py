"""What the tests share: a cache of their own, stores on both databases, image folders made of real photos."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

# Before torch is imported: two OpenMP threads collapse when another process wants the processor, and the hubs' clients
# retry for most of a minute before they find that there is no network.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["OMP_WAIT_POLICY"] = "passive"  # where a test asks for two threads, they do not take turns in waiting
os.environ.pop("COLUMNS", None)  # xdist's workers have it, and tables and sentences would be folded

import peers
import postgres_server
import pytest
from device_under_test import ON_GPU
from forked_workers import fork_workers
from left_out import left_out
from places import PLUGINS, ROOT
from warm_python import WarmPython, share_statements

from testbed.db.store import Store
from testbed.tracing import access_log, versions

share_statements()  # hundreds of small stores are opened: a fifth of the time of tests that use them

pytest_plugins = ["command_fixtures"]

BACKENDS = ("sqlite", "postgres")
GIVEN_CACHE = os.environ.get("TESTBED_TESTS_CACHE")


@pytest.fixture(scope="session", autouse=True)
def _own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or leaves anything in the user's folders or follows the user's variables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTBED_CACHE", str(_cache(tmp_path_factory)))
        kept = ("TESTBED_CACHE",)
        for name in [name for name in os.environ if name.startswith("TESTBED_") and name not in kept]:
            patch.delenv(name)
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        patch.delenv("LMUData", raising=False)
        yield


@pytest.fixture
def shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of the whole test run, in which models are trained once, for tests whose folder has its own."""
    monkeypatch.setenv("TESTBED_CACHE", str(_cache(tmp_path_factory)))


@pytest.fixture(autouse=True)
def _own_reads() -> Iterator[None]:
    """What the code of a test reads (thousands of files in all) is not looked at in those after it."""
    yield
    _forget([each for each in access_log.noted(declared=True) if _is_of_tests(each[0])])


@cache
def _is_of_tests(owner: str) -> bool:
    file = owner.removeprefix(access_log.code(""))
    if file == sys.argv[0]:
        return True
    path = Path(file)
    return path.is_relative_to(ROOT) and "tests" in path.relative_to(ROOT).parts and not path.is_relative_to(PLUGINS)


def _forget(reads: Iterable[access_log.Read]) -> None:
    for noted in (access_log._noted, access_log._fresh):
        noted.difference_update(reads)


@pytest.fixture(scope="module", autouse=True)
def _own_models_in_memory() -> Iterator[None]:
    """The names of models and settings that a file of tests gives to `testbed.evaluate` are free in those after it."""
    yield
    if (evaluate := sys.modules.get("testbed.api.models_at_hand")) is None:
        return
    for table in (evaluate.registry.models, evaluate.registry.eval_settings):
        for name in [name for name, source in table._sources.items() if source.file.startswith(evaluate.HERE.file)]:
            del table._items[name], table._sources[name]


@pytest.fixture(autouse=True)
def _own_process() -> Iterator[None]:
    """A test begins as a new process does: without files in memory, or variables that another one set (a data root)."""
    versions.forget()
    before = {name: value for name, value in os.environ.items() if name.startswith("TESTBED_")}
    yield
    for name in [name for name in os.environ if name.startswith("TESTBED_")]:
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="session")
def new_cache(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """A function that makes an empty cache in a folder, but for the libraries' names, which take seconds to ask for."""

    def make(folder: Path) -> Path:
        names = _cache(tmp_path_factory) / "names"
        if names.is_dir():
            shutil.copytree(names, folder / "cache" / "names", dirs_exist_ok=True)
        return folder / "cache"

    return make


def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of the whole test run, or the one that CI has just filled with this code (see ``.ci/run``)."""
    return Path(GIVEN_CACHE) if GIVEN_CACHE else _shared_folder(tmp_path_factory) / "cache"


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A temporary folder that the processes of one test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture
def own_registry() -> Iterator[Any]:
    """The registry; what a test adds to it is gone afterwards."""
    from testbed.registry import registry

    registry.load()
    before = registry.models.snapshot(), registry.eval_settings.snapshot()
    yield registry
    registry.models.restore(before[0])
    registry.eval_settings.restore(before[1])


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """What runs programs quickly."""
    python = WarmPython(_shared_folder(tmp_path_factory) / "warm")
    yield python
    python.close()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Has xdist's processes forked from this one, with all tests imported."""
    if config.option.tx and not hasattr(config, "workerinput"):
        fork_workers(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Names the tests that will be skipped before any has run; with ``-m fast`` none is."""
    missing = [] if config.option.markexpr == "fast" else left_out(ON_GPU and _torch_sees_a_gpu())
    return [f"skipped here: {each}" for each in missing]


def pytest_collection_finish() -> None:
    """Takes what all tests import and read out of records: it would be looked at for each cell of each test.

    And out of the garbage collector, which would look through it, and so copy it in each forked process; it runs less
    often, too.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    _forget([each for each in access_log.noted(declared=True) if each[1] != access_log.TOP_MODULE])
    access_log._own.clear()


# What `pytest -m fast` runs of: folders and files below this one.
FAST = ("answers", "registry", "identity/test_identity.py", "test_packages.py", "test_inputs.py", "test_redaction.py")
FAST += ("planning", "execution/test_scheduler.py", "graph/test_passes.py", "metrics/test_paired.py")
FAST += ("metrics/test_retrieval.py", "metrics/test_multilabel.py", "metrics/test_ranks.py", "metrics/test_judges.py")


# A test that takes one of these fixtures is not fast: it may need a server, a browser or another installation.
NEEDING_MORE = {"postgres_url", "empty_url", "store_url", "store", "browser", "pycocoevalcap", "clip_benchmark_peer"}


@cache
def _is_fast(path: Path) -> bool:
    place = path.relative_to(ROOT).as_posix().removeprefix("tests/")
    return any(place == each or place.startswith(f"{each}/") for each in FAST)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m fast``, the other files of tests are not even imported, which takes longer than the fast ones."""
    others = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if config.option.markexpr == "fast" and others and not _is_fast(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before the tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests go first, so that no process is left with one when the others are done."""
    for item in items:
        quick = not any(map(item.get_closest_marker, ("slow", "long")))
        if quick and _is_fast(item.path) and NEEDING_MORE.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("fast")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(tryfirst=True)  # before the fixtures are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips tests marked ``gpu`` if torch sees no GPU; see `device_under_test`."""
    if ON_GPU and item.get_closest_marker("gpu") and not _torch_sees_a_gpu():
        pytest.skip("needs a GPU")


@lru_cache(maxsize=1)
def _torch_sees_a_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Says at once what failed, and how: a test run that is ended from outside prints no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        crash = getattr(report.longrepr, "reprcrash", None)
        told = crash.message if crash else str(report.longrepr)
        line = f"\n{report.nodeid}: {report.when} failed after {report.duration:.0f} s: {told[:2000]}\n"
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, line.encode())


@pytest.fixture(scope="session")
def pycocoevalcap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the published package pycocoevalcap, with the Java programs in it."""
    folder = _shared_folder(tmp_path_factory) / "pycocoevalcap"
    if reason := peers.install(folder, "pycocoevalcap==1.2"):
        pytest.skip(f"pycocoevalcap cannot be installed: {reason}")
    return folder


@pytest.fixture(scope="session")
def clip_benchmark_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[peers.Peer]:
    """A function that runs code with the published package clip-benchmark, see `peers.peer`."""
    folder = _shared_folder(tmp_path_factory) / "clip-benchmark"
    reason = peers.install(folder, "clip-benchmark==1.6.2", "numpy<2.4")  # which its accuracy() needs
    if reason is not None:
        pytest.skip(f"pip cannot install clip-benchmark: {reason}")
    with peers.peer(folder) as run:
        yield run


# Stores -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A Postgres server for the whole session."""
    with postgres_server.server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_url: str) -> Iterator[str]:
    """The name of a database with the schema in it, to be copied: ten times as fast as migrating anew."""
    with postgres_server.database(postgres_url) as url:
        Store.create(url).close()
        yield url.partition("?")[0].rpartition("/")[2]


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the schema in it, to be copied: much faster than migrating anew."""
    path = tmp_path_factory.mktemp("template") / "store.db"
    Store.create(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=BACKENDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database that holds nothing, on each backend."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
    else:
        with postgres_server.database(request.getfixturevalue("postgres_url")) as url:
            yield url


@pytest.fixture(params=BACKENDS)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store, on each backend."""
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        yield f"sqlite:///{shutil.copy(template, tmp_path / 'store.db')}"
    else:
        template = request.getfixturevalue("postgres_template")
        with postgres_server.database(request.getfixturevalue("postgres_url"), template) as url:
            yield url


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store, open for writing, on each backend."""
    with Store.open(store_url, "write") as opened:
        yield opened


@pytest.fixture
def sqlite_store(tmp_path: Path, sqlite_template: Path) -> Iterator[Store]:
    """An empty SQLite store, for tests of what does not depend on the backend."""
    with Store.open(f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'store.db')}", "write") as opened:
        yield opened


# Images -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def photos() -> list[Any]:
    """Real photos, uint8 [H, W, 3] (they come with scikit-image)."""
    from skimage import data

    return [data.astronaut(), data.chelsea(), data.coffee(), data.rocket()]


@pytest.fixture(scope="session")
def make_tree(photos: list[Any]) -> Callable[..., Path]:
    """A function that writes an image folder: crops of real photos, some for each class."""
    from PIL import Image

    def make(root: Path, classes: Sequence[str] = ("cat", "dog", "owl"), each: int = 4, size: int = 48) -> Path:
        for number, name in enumerate(classes):
            (root / name).mkdir(parents=True, exist_ok=True)
            for index in range(each):
                photo = photos[(number + index) % len(photos)]
                top, left = 7 * index, 11 * (number + index)
                crop = photo[top : top + size, left : left + size + 16]
                Image.fromarray(crop).save(root / name / f"{index:03d}.png")
        return root

    return make

"""Finding definitions: packages of files, ``--plugin`` files, files of ImageNet-testbed, installed packages."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from original_files import ORIGINAL_MODEL, ORIGINAL_SETTING

import testbed.models.model_base as model_base
import testbed.registry as registry_package
from testbed.errors import DefinitionError, DuplicateNameError, PluginError, UnknownNameError
from testbed.registry import Catalog, discovery

Write = Callable[[str, str], Path]
MakePackage = Callable[[Mapping[str, str]], str]
MakeCatalog = Callable[..., Catalog]

PACKAGES = ("registry", "models", "eval_settings")


def definition(name: str) -> str:
    """The text of a file that registers one model."""
    return f"""\
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

registry.add_model(Model({name!r}, StandardTransform(8, 8), dict, 4))
"""


def line_of(path: Path, text: str) -> int:
    """The number of the one line that holds a text."""
    (number,) = [number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    return number


# Rooms ------------------------------------------------------------------------------------------------------------


def test_every_file_of_a_package_is_found_by_itself(make_package: MakePackage, make_catalog: MakeCatalog) -> None:
    package = make_package({"first.py": definition("b"), "second.py": definition("a")})
    catalog = make_catalog(package)
    assert catalog.model_names() == ["a", "b"]
    assert catalog.contains_model("a")
    assert not catalog.contains_model("c")
    assert catalog.get_model("a").name == "a"


def test_private_files_and_bases_of_a_package_define_nothing(make_package: MakePackage) -> None:
    package = make_package(
        {"b.py": "", "a.py": "", "_own.py": "1 / 0", "my_base.py": "1 / 0", "notes.txt": "", "c.pyi": ""}
    )
    assert discovery.package_modules(package) == [f"{package}.a", f"{package}.b"]
    for module in discovery.package_modules(package):
        discovery.import_definitions(module)


def test_testbeds_own_rooms_hold_the_families_and_no_base() -> None:
    modules = discovery.package_modules("testbed.models")
    assert "testbed.models.digits" in modules
    assert "testbed.models.timm_models" in modules
    assert not [module for module in modules if module.endswith("_base") or "._" in module or "__init__" in module]


def test_a_catalog_reads_its_rooms_once_and_when_it_is_first_asked(
    make_package: MakePackage, make_catalog: MakeCatalog
) -> None:
    package = make_package({"one.py": definition("a")})
    catalog = make_catalog(package)
    assert f"{package}.one" not in sys.modules
    assert catalog.load() is catalog
    assert f"{package}.one" in sys.modules
    assert catalog.load_full_registry() is catalog
    assert catalog.model_names() == ["a"]


def test_the_source_of_a_definition_is_its_line_in_the_file(
    make_package: MakePackage, make_catalog: MakeCatalog
) -> None:
    package = make_package({"one.py": "# a comment\n\n" + definition("a")})
    catalog = make_catalog(package).load()
    path = Path(sys.modules[f"{package}.one"].__file__ or "")
    assert catalog.models.source("a") == f"{path}:{line_of(path, 'registry.add_model(')}"


def test_a_name_that_two_files_define_is_refused_and_nothing_else(
    make_package: MakePackage, make_catalog: MakeCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    second = "\n\n" + definition("a") + definition("b")
    catalog = make_catalog(make_package({"one.py": definition("a"), "two.py": second, "z.py": definition("c")})).load()
    (said,) = caplog.messages
    assert re.match(r"two .* are named 'a': one at .*one\.py:4, another at .*two\.py:6; rename one; until", said)
    assert catalog.model_names() == ["a", "b", "c"]
    assert [catalog.get_model(name).name for name in "bc"] == ["b", "c"]
    with pytest.raises(DuplicateNameError, match=r"'a'.*one\.py:4.*two\.py:6"):
        catalog.get_model("a")
    assert catalog.find_model("a") is None


BROKEN = {
    "raises": ("x = 1\n\n1 / 0\n", "ZeroDivisionError: division by zero", 3),
    "raises in a function": ("def f():\n    return {}['k']\n\nf()\n", "KeyError: 'k'", 2),
    "is no Python": ("x = 1\ny = (\n", "SyntaxError", 2),
    "is indented wrongly": ("x = 1\n  y = 2\n", "IndentationError", 2),
    "fails inside a library": ("import json\n\njson.loads('{')\n", "JSONDecodeError", 3),
    "says several lines": ("x = 1\n\nraise ValueError('one\\ntwo\\nthree')\n", "ValueError: one", 3),
    "imports what is not there": ("import math\nimport no_such_library\n", "No module named 'no_such_library'", 2),
    "defines something wrongly": (
        "from testbed.models.model_base import StandardTransform\n\nStandardTransform(8, 8, interpolation='box')\n",
        "interpolation",
        3,
    ),
}
KINDS = {"interpolation": DefinitionError}  # of the others it is a PluginError


@pytest.mark.parametrize(("text", "reason", "line"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_of_a_package_is_named_with_its_line(
    make_package: MakePackage, make_catalog: MakeCatalog, tmp_path: Path, caplog, text: str, reason: str, line: int
) -> None:
    package = make_package({"broken.py": text, "sound.py": definition("a")})
    catalog = make_catalog(package)
    with caplog.at_level("WARNING", "testbed"):
        assert catalog.model_names() == ["a"]
        assert catalog.model_names() == ["a"]
    (told,) = [each.getMessage() for each in caplog.records]
    with pytest.raises(UnknownNameError) as raised:
        catalog.get_model("b")
    for message in (told, str(raised.value)):
        assert f"{package}.broken" in message
        assert reason in message
        assert f"{tmp_path / package / 'broken.py'}:{line}" in message
        assert "\n" not in message


def test_a_file_of_a_package_that_failed_is_loaded_once_it_is_mended(
    make_package: MakePackage, make_catalog: MakeCatalog, tmp_path: Path
) -> None:
    package = make_package({"sound.py": definition("a"), "broken.py": definition("half") + "1 / 0\n"})
    catalog = make_catalog(package)
    assert catalog.model_names() == ["a"]
    path = tmp_path / package / "broken.py"
    path.write_text(definition("whole"))
    os.utime(path, ns=(1, 1))
    assert catalog.model_names() == ["a", "whole"]
    assert catalog.faults == {}


def test_a_file_of_a_package_may_ask_the_registry_while_it_loads(
    make_package: MakePackage, make_catalog: MakeCatalog
) -> None:
    asks = "from testbed.registry import registry\n\nSEEN = registry.model_names()\n"
    package = make_package({"a_first.py": definition("a"), "b_asks.py": asks, "c_last.py": definition("c")})
    assert make_catalog(package).model_names() == ["a", "c"]
    assert sys.modules[f"{package}.b_asks"].SEEN == ["a"]


# The catalog ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "wanted"), [("add_model", "a Model"), ("add_eval_setting", "an EvalSetting")])
@pytest.mark.parametrize("item", ["a name", None, {"name": "a"}, SimpleNamespace(name="a")])
def test_only_definitions_can_be_registered(catalog: Catalog, method: str, wanted: str, item: Any) -> None:
    with pytest.raises(DefinitionError, match=wanted) as raised:
        getattr(catalog, method)(item)
    assert type(item).__name__ in str(raised.value)


def test_a_model_is_no_eval_setting(catalog: Catalog) -> None:
    model = model_base.Model("a", model_base.StandardTransform(8, 8), dict, 4)
    with pytest.raises(DefinitionError, match="an EvalSetting"):
        catalog.add_eval_setting(model)  # type: ignore[arg-type]
    assert catalog.add_model(model) is model


def test_a_definition_joins_collections_when_it_is_registered(catalog: Catalog) -> None:
    for name in ("a", "b"):
        model = model_base.Model(name, model_base.StandardTransform(8, 8), dict, 4)
        catalog.add_model(model, collections=["small", f"only-{name}"])
    assert catalog.model_collections.members("small") == ["a", "b"]
    assert catalog.model_collections.names() == ["only-a", "only-b", "small"]
    assert catalog.eval_setting_collections.names() == []


# Plug-in files ----------------------------------------------------------------------------------------------------


def test_a_plugin_file_registers_what_it_defines(catalog: Catalog, write: Write) -> None:
    path = write("mine.py", definition("mine"))
    catalog.load([path])
    assert catalog.model_names() == ["mine"]
    assert catalog.models.source("mine") == f"{path}:{line_of(path, 'registry.add_model(')}"


def test_a_plugin_file_is_loaded_once_however_it_is_written(
    catalog: Catalog, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("folder/mine.py", definition("mine"))
    (tmp_path / "link.py").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    catalog.load([str(path), path]).load([path])
    catalog.load(["folder/mine.py", "folder/../folder/mine.py", "link.py", "~/folder/mine.py"])
    assert catalog.model_names() == ["mine"]


def test_files_of_equal_size_and_time_are_not_run_from_old_byte_code(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper, plugin = tmp_path / "shades_of_a_test.py", tmp_path / "plugin.py"
    script = "import sys; from testbed.registry import Catalog; Catalog((), entry_points=False).load(sys.argv[1:])"
    said = []
    for shade in (1, 2):
        helper.write_text(f"SHADE = {shade}\n")
        plugin.write_text(f"import shades_of_a_test\nprint(shades_of_a_test.SHADE, {shade})\n")
        for path in (helper, plugin):
            os.utime(path, (1e9, 1e9))
        command = [sys.executable, "-c", script, str(plugin)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPATH"] = str(tmp_path)
        said.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert said == ["1 1\n", "2 2\n"]


def test_plugin_files_of_one_name_in_two_folders_are_both_loaded(catalog: Catalog, write: Write) -> None:
    paths = [write("one/mine.py", definition("first")), write("two/mine.py", definition("second"))]
    catalog.load(paths)
    assert catalog.model_names() == ["first", "second"]


def test_a_plugin_file_may_have_spaces_and_dots_in_its_name(catalog: Catalog, write: Write) -> None:
    catalog.load([write("my models/v1.2 final.py", definition("mine"))])
    assert catalog.model_names() == ["mine"]


def test_a_plugin_file_is_not_run_as_a_program_and_knows_where_it_lies(write: Write, catalog: Catalog) -> None:
    path = write("mine.py", "NAME, FILE = __name__, __file__\nif __name__ == '__main__':\n    raise RuntimeError\n")
    module = discovery.load_plugin_file(path)
    assert module.NAME != "__main__"
    assert Path(module.FILE) == path
    assert sys.modules[module.NAME] is module


def test_a_plugin_file_that_defines_a_registered_name_is_named_with_the_other_place(
    catalog: Catalog, write: Write
) -> None:
    first, second = write("first.py", definition("mine")), write("second.py", "\n" + definition("mine"))
    with pytest.raises(DuplicateNameError) as raised:
        catalog.load([first, second])
    assert f"{first}:4" in str(raised.value)
    assert f"{second}:5" in str(raised.value)


@pytest.mark.parametrize(("text", "reason", "line"), BROKEN.values(), ids=BROKEN)
def test_a_broken_plugin_file_is_named_with_its_line(
    catalog: Catalog, write: Write, text: str, reason: str, line: int
) -> None:
    path = write("mine.py", text)
    with pytest.raises(KINDS.get(reason, PluginError)) as raised:
        catalog.load([path])
    message = str(raised.value)
    assert f"--plugin {path}" in message
    assert reason in message
    assert f"{path}:{line}" in message
    assert "\n" not in message
    assert not [name for name in sys.modules if name.startswith("testbed_plugin_mine_")]


def test_a_plugin_file_that_ends_the_program_is_named(catalog: Catalog, write: Write) -> None:
    with pytest.raises(PluginError, match=r"mine\.py"):
        catalog.load([write("mine.py", "import sys\n\nsys.exit(0)\n")])


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone.py", "no such file"), ("folder", "a folder, not a file"), ("notes.txt", r"\.py"), ("script", r"\.py")],
)
def test_what_is_no_python_file_cannot_be_a_plugin(
    catalog: Catalog, write: Write, tmp_path: Path, name: str, reason: str
) -> None:
    write("folder/x.py", "")
    write("notes.txt", "x = 1\n")
    write("script", "x = 1\n")
    with pytest.raises(PluginError, match=reason) as raised:
        catalog.load([tmp_path / name])
    assert f"--plugin {tmp_path / name}" in str(raised.value)


def test_a_plugin_file_that_failed_halfway_can_be_mended_and_read_again(catalog: Catalog, write: Write) -> None:
    path = write("mine.py", definition("mine") + "1 / 0\n")
    with pytest.raises(PluginError):
        catalog.load([path])
    write("mine.py", definition("mine"))
    assert catalog.load([path]).model_names() == ["mine"]


# Files of ImageNet-testbed ----------------------------------------------------------------------------------------

# As in its README, under names that testbed itself does not have.
ORIGINAL_FILE = ORIGINAL_MODEL.replace("name = 'resnet50'", "name = 'resnet50-mine'")
ORIGINAL_FILE += ORIGINAL_SETTING.replace("    name = 'val'", "    name = 'val-mine'")


def test_a_file_of_imagenet_testbed_is_loaded_unchanged(catalog: Catalog, write: Write) -> None:
    path = write("original.py", ORIGINAL_FILE)
    catalog.load([path])
    model, setting = catalog.get_model("resnet50-mine"), catalog.get_eval_setting("val-mine")
    assert isinstance(model, model_base.Model)
    assert (model.arch, model.eval_batch_size) == ("resnet50", 256)
    assert model.transform.spec()["img_crop_size"] == 224  # type: ignore[attr-defined]
    assert (setting.size, setting.class_sublist) == (50000, list(range(0, 1000, 2)))
    assert setting.adversarial_attack == {"eps": 0}
    assert catalog.models.source("resnet50-mine") == f"{path}:{line_of(path, 'registry.add_model(')}"
    assert catalog.eval_settings.source("val-mine") == f"{path}:{line_of(path, 'registry.add_eval_setting(')}"


WAYS_TO_IMPORT = {
    "import registry": "import registry as package\nregistry = package.registry\nimport models.model_base as base\n",
    "from models import": "from registry import registry\nfrom models import model_base as base\n",
    "import models.model_base": "from registry import registry\nimport models.model_base\nbase = models.model_base\n",
    "inside a function": (
        "def names():\n    from registry import registry\n    from models import model_base\n"
        "    return registry, model_base\n\nregistry, base = names()\n"
    ),
    "both names": "from testbed.registry import registry\nfrom models import model_base as base\n",
}


@pytest.mark.parametrize("imports", WAYS_TO_IMPORT.values(), ids=WAYS_TO_IMPORT)
def test_the_original_names_mean_testbeds_own_modules_however_they_are_imported(
    catalog: Catalog, write: Write, imports: str
) -> None:
    module = discovery.load_plugin_file(write("original.py", imports))
    assert module.registry is catalog
    assert module.base is model_base


def test_an_original_name_means_testbeds_module_also_if_that_was_not_imported_before(
    catalog: Catalog, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "testbed.models.loading.hub", raising=False)
    monkeypatch.delattr("testbed.models.loading.hub", raising=False)
    path = write("original.py", "import models.loading.hub as a\nimport testbed.models.loading.hub as b\n")
    module = discovery.load_plugin_file(path)
    assert module.a is module.b


def names_in_use() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.split(".")[0] in PACKAGES}


ENDINGS = {"loaded": ("", False), "failed": ("1 / 0\n", True), "refused": ("y = (\n", True)}


def load_or_fail(catalog: Catalog, path: Path, fails: bool) -> None:
    with pytest.raises(PluginError) if fails else contextlib.nullcontext():
        catalog.load([path])


@pytest.mark.parametrize(("ending", "fails"), ENDINGS.values(), ids=ENDINGS)
def test_the_original_names_are_gone_once_the_file_is_loaded_or_has_failed(
    catalog: Catalog, write: Write, ending: str, fails: bool
) -> None:
    before = names_in_use()
    load_or_fail(catalog, write("original.py", ORIGINAL_FILE + ending), fails)
    assert names_in_use() == before


@pytest.mark.parametrize(("ending", "fails"), ENDINGS.values(), ids=ENDINGS)
def test_the_users_own_modules_of_those_names_come_back(
    catalog: Catalog, write: Write, monkeypatch: pytest.MonkeyPatch, ending: str, fails: bool
) -> None:
    own = {name: ModuleType(name) for name in (*PACKAGES, "models.resnet", "models.model_base", "registry.table")}
    for name, module in own.items():
        monkeypatch.setitem(sys.modules, name, module)
    load_or_fail(catalog, write("original.py", ORIGINAL_FILE + ending), fails)
    assert names_in_use().items() >= own.items()
    assert catalog.contains_model("resnet50-mine") == (not fails)


def test_the_users_own_package_of_such_a_name_serves_where_testbed_has_no_module(
    catalog: Catalog, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, mine = ModuleType("models"), ModuleType("models.mine")
    own.__path__ = []  # type: ignore[attr-defined]
    own.mine = mine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "models", own)
    monkeypatch.setitem(sys.modules, "models.mine", mine)
    text = "from models import mine as other\nimport models.mine as mine\nfrom models.model_base import Model\n"
    module = discovery.load_plugin_file(write("original.py", text))
    assert module.mine is module.other is mine
    assert module.Model is model_base.Model
    with pytest.raises(
        PluginError, match=r"No module named 'models\.yours': testbed has none, and there is none beside"
    ):
        catalog.load([write("original.py", "import models.yours\n")])
    assert sys.modules["models"] is own


def test_the_original_names_leave_nothing_behind_in_testbed(catalog: Catalog, write: Write) -> None:
    before = set(vars(registry_package))
    catalog.load([write("original.py", ORIGINAL_FILE)])
    assert set(vars(registry_package)) == before
    assert model_base.__name__ == "testbed.models.model_base"


def test_an_original_file_uses_the_program_s_registry_and_its_names_work_in_no_other_place(
    write: Write, tmp_path: Path
) -> None:
    path = write("original.py", ORIGINAL_FILE + "\nfrom models.timm_models import TimmTransform\n")
    script = f"""
import importlib
from testbed.registry import registry

def importable():
    found = []
    for name in ("registry", "models", "models.model_base", "eval_settings.eval_setting_base"):
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError:
            pass
    return found

assert importable() == []
registry.load([{str(path)!r}])
assert importable() == [], importable()
assert registry.contains_model("resnet50-mine") and registry.contains_eval_setting("val-mine")
assert registry.contains_model("digits-cnn")
"""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    finished = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr


# Installed packages -----------------------------------------------------------------------------------------------


class EntryPoint:
    """What importlib.metadata gives for an installed plug-in."""

    def __init__(self, name: str, load: Callable[[], Any], package: str | None = None) -> None:
        self.name = name
        self.load = load
        self.module = "a_module_that_nobody_has"
        self.dist = SimpleNamespace(name=package) if package else None


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes it look as if packages with these entry points were installed."""

    def install(*entry_points: EntryPoint) -> None:
        def found(group: str) -> list[EntryPoint]:
            return list(entry_points) if group == "testbed.plugins" else []

        monkeypatch.setattr(discovery, "installed_points", found)

    return install


def small_model(name: str) -> model_base.Model:
    return model_base.Model(name, model_base.StandardTransform(8, 8), dict, 4)


def fail(error: BaseException) -> Any:
    raise error


def test_a_function_of_an_installed_package_is_given_the_catalog(
    make_catalog: MakeCatalog, install: Callable[..., None]
) -> None:
    install(EntryPoint("mine", lambda: lambda catalog: catalog.add_model(small_model("mine")), "my-package"))
    assert make_catalog(entry_points=True).model_names() == ["mine"]


def test_a_module_of_an_installed_package_is_imported_and_no_more(
    make_catalog: MakeCatalog, install: Callable[..., None]
) -> None:
    loaded: list[str] = []

    def load() -> ModuleType:
        loaded.append("mine")
        return ModuleType("mine")

    install(EntryPoint("mine", load, "my-package"))
    catalog = make_catalog(entry_points=True)
    assert catalog.load().load().model_names() == []
    assert loaded == ["mine"]


@pytest.mark.parametrize(
    "entry_point",
    [
        EntryPoint("mine", lambda: fail(ImportError("no such thing")), "my-package"),
        EntryPoint("mine", lambda: lambda catalog: fail(ImportError("no such thing")), "my-package"),
    ],
    ids=["when it is imported", "when it is called"],
)
def test_a_broken_installed_package_is_named_with_the_way_to_go_on(
    make_catalog: MakeCatalog, install: Callable[..., None], entry_point: EntryPoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(entry_point)
    catalog = make_catalog(entry_points=True)
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            catalog.load()
        for part in ("'mine'", "my-package", "ImportError: no such thing", "TESTBED_NO_PLUGINS=1"):
            assert part in str(raised.value)
        assert "\n" not in str(raised.value)
    monkeypatch.setenv("TESTBED_NO_PLUGINS", "1")
    assert catalog.load().model_names() == []


def test_a_broken_entry_point_without_a_package_is_named_all_the_same(
    make_catalog: MakeCatalog, install: Callable[..., None]
) -> None:
    install(EntryPoint("mine", lambda: fail(ImportError("no such thing"))))
    with pytest.raises(PluginError, match="'mine'"):
        make_catalog(entry_points=True).load()


def test_a_catalog_may_do_without_installed_packages(make_catalog: MakeCatalog, install: Callable[..., None]) -> None:
    install(EntryPoint("mine", lambda: fail(AssertionError("it was asked")), "my-package"))
    assert make_catalog(entry_points=False).load().model_names() == []

"""What the names of VLMEvalKit mean in plug-in files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.identity.describe import digest
from testbed.models.model_base import VLMEvalModel
from testbed.plugins import import_names
from testbed.plugins.plugin_imports import run_plugin
from testbed.standins.vlmevalkit.vlm.base import BaseModel

TREE = {
    "vlmeval/__init__.py": "raise ImportError('nothing runs the packages of the tree')",
    "vlmeval/vlm/__init__.py": "from .missing import Everything",
    "vlmeval/vlm/mine/__init__.py": "",
    "vlmeval/vlm/mine/prompt.py": "from ...smp import listinstr\nPROMPT = 'Look.'\n",
    "vlmeval/vlm/mine/model.py": """
        from ..base import BaseModel
        from ...smp import *
        from vlmeval.dataset import DATASET_TYPE
        from .prompt import PROMPT, listinstr

        class Mine(BaseModel):
            def generate_inner(self, message, dataset=None):
                from .later import END
                return f"{PROMPT} {DATASET_TYPE(dataset)} {osp.basename('a/b')} {END}"
    """,
    "vlmeval/vlm/mine/later.py": "END = '.'\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A model in VLMEvalKit's tree, as one who has cloned it works."""
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines()
        (tmp_path / name).write_text("\n".join(line.removeprefix("        ") for line in lines) + "\n")
    return tmp_path / "vlmeval" / "vlm" / "mine" / "model.py"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    import_names._is_installed.cache_clear()
    yield
    import_names._is_installed.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "vlmeval"]:
        del sys.modules[name]


def test_a_file_in_vlmevalkits_tree_finds_its_neighbours_and_the_rest_is_testbeds(tree: Path) -> None:
    module = run_plugin(tree)
    assert issubclass(module.Mine, BaseModel)
    assert module.Mine().generate("what?", "SomeSet") == "Look. MCQ b ."


def test_an_edited_neighbour_is_another_model(tree: Path) -> None:
    before = digest(VLMEvalModel("mine", run_plugin(tree).Mine).spec())
    assert digest(VLMEvalModel("mine", run_plugin(tree).Mine).spec()) == before
    (tree.parent / "prompt.py").write_text(TREE["vlmeval/vlm/mine/prompt.py"].replace("Look", "See"))
    del sys.modules[import_names.module_name(tree.parent / "prompt.py")]
    assert digest(VLMEvalModel("mine", run_plugin(tree).Mine).spec()) != before


def test_vlmevalkit_itself_is_taken_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site-packages" / "vlmeval" / "vlm"
    installed.mkdir(parents=True)
    for folder in (installed.parent, installed):
        (folder / "__init__.py").write_text("")
    (installed / "base.py").write_text("class BaseModel:\n    theirs = True\n")
    plugin = tmp_path / "plugin.py"
    plugin.write_text("from vlmeval.vlm.base import BaseModel\n")
    assert run_plugin(plugin).BaseModel is BaseModel
    import_names._is_installed.cache_clear()
    monkeypatch.syspath_prepend(str(installed.parent.parent))
    assert run_plugin(plugin).BaseModel.theirs


def test_a_name_that_there_is_not_is_told(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import vlmeval.dataset.utils.ccocr\n")
    with pytest.raises(ModuleNotFoundError, match="VLMEvalKit itself is not installed"):
        run_plugin(plugin)
    with pytest.raises(ModuleNotFoundError):
        __import__("vlmeval")  # in plug-ins alone

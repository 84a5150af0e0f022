"""The setting clip-cc-bench, and any file of reference captions as a setting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.errors import DataError
from testbed.registry import registry
from testbed.registry.select import select


def references(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([{"id": "v1", "summary": "A dog runs. It barks."}]))
    return path


def test_where_the_references_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = registry.get_eval_setting("clip-cc-bench")
    assert setting.task == "captioning"
    with pytest.raises(DataError, match=r"no data root is set; .*TESTBED_DATA.*TESTBED_CLIP_CC_GROUND_TRUTH"):
        setting.dataset.open()
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"ground_truth/clip_cc_dataset\.json does not exist"):
        setting.dataset.open()
    below = references(tmp_path / "clip-cc-bench" / "ground_truth" / "clip_cc_dataset.json")
    source = setting.dataset.open()
    assert list(setting.samples.positions(source)) == [0]
    assert (source.name, source.ids) == ("clip-cc-bench", ["v1"])
    assert setting.dataset.spec() == {"references": str(below)}
    own = references(tmp_path / "own.json")
    monkeypatch.setenv("TESTBED_CLIP_CC_GROUND_TRUTH", str(own))
    assert setting.get_dataset_root() == own


def test_any_file_of_references_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = references(tmp_path / "own.json")
    monkeypatch.chdir(tmp_path)
    registry.load()
    names = select(registry.eval_settings, registry.eval_setting_collections, ["captions:own.json"])
    assert names == [f"captions:{own}"]
    assert select(registry.eval_settings, registry.eval_setting_collections, ["captions:*.json"]) == names
    setting = registry.get_eval_setting(names[0])
    assert (setting.name, setting.task) == (names[0], "captioning")
    assert setting.dataset.open().targets == [["A dog runs. It barks."]]
    own.unlink()
    own.mkdir()
    with pytest.raises(DataError, match=rf"the file of references {own} is a folder$"):
        setting.dataset.open()
    own.rmdir()
    with pytest.raises(DataError, match=rf"the file of references {own} does not exist$"):
        setting.dataset.open()


@pytest.mark.parametrize(
    "name", ["captions:", "captions:x", "captions:/x.json@scorer", "captions:/x.json.coarse@scorer"]
)
def test_other_names_are_not_files(name: str) -> None:
    from testbed.eval_settings.clip_cc_bench import CaptionFiles

    assert CaptionFiles().canonical(name) is None

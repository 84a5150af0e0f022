"""Every name wds/… is an eval setting, of the kind that its folder tells."""

from __future__ import annotations

import pytest
import wds_world as world
from digits_world import write_json

from testbed.errors import DataError, DefinitionError
from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
from testbed.eval_settings.webdatasets import webdataset_benchmark
from testbed.registry import registry


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(BENCHMARKS, "_opened", {})
    return tmp_path / "data"


def test_kind_and_templates_are_those_of_the_folder(root):
    world.write_split(root / "wds_x-pets", [world.samples({"s": b"1"})], classnames="a\nb\n", templates="a {c}\n\n")
    world.write_split(root / "wds_x-pets", [world.samples({"t": b"1"})], "train")
    found = webdataset_benchmark("wds/x/pets")
    assert (found.name, found.kind, found.splits) == ("wds/x/pets", "classification", ("test", "train"))
    assert list(found.templates("en")) == ["a {c}"]  # a blank line is not a template
    assert found.dataset("train", "en").open().ids == ["train/t"]


def test_other_kinds(root):
    world.write_split(root / "pets", [[]], dataset_type="retrieval")
    found = webdataset_benchmark("wds/pets")
    assert (found.kind, found.templates, found.class_names) == ("retrieval", None, None)
    world.write_split(root / "labels", [[]], dataset_type="multilabel", templates="a {c}\n", classnames="a\nb\n")
    found = webdataset_benchmark("wds/labels")
    assert (found.kind, found.templates("en"), found.class_names("en")) == ("multilabel", ["a {c}"], ["a", "b"])


def test_languages_are_those_of_the_files(root):
    world.write_split(
        root / "pets", [world.samples({"s": b"1"})], classnames="cat\ndog\n", templates="a {c}\n",
        **{"classnames.it": "gatto\ncane\n", "zeroshot_classification_templates.it": "un {c}\n"},
    )  # fmt: skip
    assert webdataset_benchmark("wds/pets").languages == ("en", "it")
    assert registry.get_eval_setting("wds/pets.zeroshot.it").prompts.texts(None) == [["un gatto"], ["un cane"]]
    assert registry.get_eval_setting("wds/pets").prompts.texts(None) == [["a cat"], ["a dog"]]


def test_a_folder_without_a_test_split_says_so_when_it_is_evaluated(root):
    world.write_split(root / "pets", [world.samples({"s": b"1"})], "val")
    found = webdataset_benchmark("wds/pets")
    assert found.splits == ("test", "val")
    with pytest.raises(DataError, match=r"the split 'test' is missing in .*: it has the split val"):
        found.dataset("test", "en").open()


def test_the_registry_builds_settings_of_any_such_name(root):
    files = {"classnames": "cat\n\nowl\n", "templates": "a photo of a {c}.\n"}
    world.write_split(root / "wds_x-pets", [world.samples({"s": b"1"})], **files)
    setting = registry.get_eval_setting("wds/x/pets")
    source = setting.dataset.open()
    assert setting.prompts.texts(source.class_names) == [
        ["a photo of a cat."],
        ["a photo of a ."],
        ["a photo of a owl."],
    ]
    assert setting.dataset.spec() == {"webdataset": str(root / "wds_x-pets"), "split": "test"}


def test_what_is_not_there_is_named(root):
    with pytest.raises(DataError, match=r"data set wds/nothing: .* has none of the folders"):
        webdataset_benchmark("wds/nothing")
    with pytest.raises(DefinitionError, match="must name a folder below the data root"):
        webdataset_benchmark("wds/../../etc")


def test_a_split_that_is_not_there_is_named_with_those_that_are(root):
    for split in ("test", "query"):
        world.write_split(root / "wds_x-pets", [world.samples({f"{split}1": b"1"})], split, classnames="cat\ndog\n")
    for name in ("wds/x/pets.foo", "wds/x/pets.foo.linear_probe"):
        with pytest.raises(DefinitionError, match=r"wds/x/pets has no split 'foo'; there are test, query"):
            registry.get_eval_setting(name)
    assert registry.get_eval_setting("wds/x/pets.query").dataset.open().ids == ["query/query1"]
    world.write_split(root / "wds_x-pets.v2", [world.samples({"v2": b"1"})])
    assert registry.get_eval_setting("wds/x/pets.v2").dataset.open().ids == ["test/v2"]


def test_a_data_root_that_is_the_data_set_takes_no_split_for_a_name(root, monkeypatch):
    world.write_split(root, [world.samples({"s": b"1"})])
    assert registry.get_eval_setting("wds/pets").dataset.open().ids == ["test/s"]
    with pytest.raises(DefinitionError, match=r"wds/pets has no split 'foo'; there are test$"):
        registry.get_eval_setting("wds/pets.foo")


def test_another_language_is_that_of_the_users_files(root, tmp_path, monkeypatch):
    world.write_split(root / "pets", [world.samples({"s": b"1"})], classnames="cat\ndog\n", templates="a {c}\n")
    with pytest.raises(DataError, match=r"no class names in the language 'fr'.*--classnames-file FILE"):
        registry.get_eval_setting("wds/pets.zeroshot.fr").prompts.texts(None)
    monkeypatch.setenv("TESTBED_CLASSNAMES", write_json(tmp_path / "names.json", {"pets": ["chat", "chien"]}))
    with pytest.raises(DataError, match=r"no prompt templates in the language 'fr'.*--templates-file FILE"):
        registry.get_eval_setting("wds/pets.zeroshot.fr").prompts.texts(None)
    monkeypatch.setenv("TESTBED_TEMPLATES", write_json(tmp_path / "texts.json", {"wds/pets": ["un {c}"]}))
    setting = registry.get_eval_setting("wds/pets.zeroshot.fr")
    assert (setting.language, setting.prompts.texts(None)) == ("fr", [["un chat"], ["un chien"]])

"""Class names and templates from files: the user's, beside the data, an installed package; and what is not made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.data.language import prompts
from testbed.data.sets import imagenet
from testbed.errors import DataError
from testbed.inputs import ENV_CLASSNAMES, ENV_TEMPLATES, Inputs, using


@pytest.fixture(autouse=True)
def _no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ENV_CLASSNAMES, ENV_TEMPLATES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(prompts, "_PACKAGE", "no_clip_benchmark_here")


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A package with the file names of clip-benchmark's, whose code must not run."""
    folder = tmp_path / "site" / "cb_files"
    (folder / "datasets").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    contents: dict[str, Any] = {
        "en_classnames": {
            "imagenet1k": ["fish", "shark"], "svhn": ["zero", "one"],
            "caltech101": ["background", "face"], "caltech101_vtab": ["accordion", "face"],
        },
        "cn_classnames": {"imagenet1k": ["鱼", "鲨"]},
        "jp_classnames": {"imagenet1k": ["魚", "鮫"]},
        "en_zeroshot_classification_templates": {"imagenet1k": ["a bad {c}"], "svhn": ["the number {c}"]},
        "cn_zeroshot_classification_templates": {"imagenet1k": ["{c}的照片"]},
        "jp_zeroshot_classification_templates": {"imagenet1k": ["{c}の写真"]},
        "cupl_prompts": {"imagenet1k": {"fish": ["A fish swims."], "shark": ["A shark bites."]}},
        "babel_imagenet": {"DE": [[3, 1], ["Hai", "Fisch"]], "LA": [[1], ["piscis"]], "XX": [[1], ["a", "b"]]},
        "nllb_dist13b_prompts": {"DE": ["ein Foto von  {} ."]},
    }  # fmt: skip
    for name, content in contents.items():
        (folder / "datasets" / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setattr(prompts, "_PACKAGE", "cb_files")
    return folder / "datasets"


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def use(tmp_path: Path, names: Any = None, templates: Any = None) -> None:
    """Sets the user's variables; what a test sets is taken back after it."""
    if names is not None:
        os.environ[ENV_CLASSNAMES] = str(write(tmp_path / "names.json", names))
    if templates is not None:
        os.environ[ENV_TEMPLATES] = str(write(tmp_path / "templates.json", templates))


# Where they come from ---------------------------------------------------------------------------------------------


def test_a_data_set_is_looked_up_without_its_prefixes():
    assert prompts.lookup_keys("wds/vtab/svhn") == ["wds/vtab/svhn", "vtab/svhn", "svhn"]
    assert prompts.lookup_keys("vtab/svhn") == ["vtab/svhn", "svhn"]
    assert prompts.lookup_keys("sugar_crepe/add_att") == ["sugar_crepe/add_att"]
    assert prompts.lookup_keys("hf/owner/cifar10") == ["hf/owner/cifar10", "owner/cifar10"]


@pytest.mark.parametrize("key", ["wds/vtab/pets", "vtab/pets", "pets"])
def test_the_users_files_come_first_under_any_of_its_names(key, tmp_path):
    beside = tmp_path / "data"
    beside.mkdir()
    (beside / "classnames.txt").write_text("x\ny\n")
    (beside / "zeroshot_classification_templates.txt").write_text("not this {c}\n")
    use(tmp_path, {key: ["cat", "dog"], "other": ["z"]}, {key: ["my {c}"]})
    assert prompts.class_names("wds/vtab/pets", folders=[beside]) == ["cat", "dog"]
    assert prompts.templates("wds/vtab/pets", folders=[beside]) == ["my {c}"]


def test_the_fuller_name_wins(tmp_path):
    use(tmp_path, {"pets": ["a"], "vtab/pets": ["b"]}, {"pets": ["a {c}"], "vtab/pets": ["b {c}"]})
    assert prompts.class_names("vtab/pets") == ["b"]
    assert prompts.class_names("pets") == ["a"]
    assert prompts.templates("vtab/pets") == ["b {c}"]


def test_files_beside_the_data_keep_their_blank_lines_and_odd_separators(tmp_path):
    (tmp_path / "classnames.txt").write_bytes("\nnear\r\n\n far \u2028 off \nlast\n\n".encode())
    (tmp_path / "templates.txt").write_text("a {c}\nthe {c}")
    assert prompts.class_names("x", folders=[tmp_path / "none", tmp_path]) == [
        *("", "near", "", "far \u2028 off", "last", ""),
    ]
    assert prompts.templates("x", folders=[tmp_path]) == ["a {c}", "the {c}"]
    (tmp_path / "zeroshot_classification_templates.txt").write_text("first {c}\n")
    assert prompts.templates("x", folders=[tmp_path]) == ["first {c}"]


def test_files_beside_the_data_are_english(tmp_path, package):
    (tmp_path / "classnames.txt").write_text("a\n")
    with pytest.raises(DataError, match="no class names in the language 'jp'"):
        prompts.class_names("x", "jp", folders=[tmp_path], own=True)


def test_the_installed_packages_files_are_read_and_its_code_is_not_run(package):
    assert prompts.class_names("vtab/svhn") == ["zero", "one"]
    assert prompts.templates("svhn") == ["the number {c}"]
    assert prompts.class_names("vtab/caltech101") == ["accordion", "face"]
    assert prompts.class_names("wds/vtab/caltech101") == ["accordion", "face"]
    assert prompts.class_names("caltech101") == ["background", "face"]
    assert "cb_files" not in sys.modules


@pytest.mark.parametrize(
    ("language", "first"), [("zh", "鱼"), ("cn", "鱼"), ("jp", "魚"), ("ja", "魚"), ("en", "fish")]
)
def test_a_language_may_be_spelled_in_two_ways(language, first, package):
    names = prompts.class_names("imagenet_sketch", language, same_as="imagenet1k", count=2)
    assert names is not None
    assert names[0] == first
    found = prompts.templates("imagenet_sketch", language, same_as="imagenet1k")
    assert found == {"鱼": ["{c}的照片"], "魚": ["{c}の写真"], "fish": ["a bad {c}"]}[first]


def test_imagenets_in_english_are_open_clips_where_no_file_has_them(monkeypatch):
    monkeypatch.setattr(imagenet, "class_names", lambda: ["tench", "goldfish"])  # open_clip takes long to import
    monkeypatch.setattr(imagenet, "templates", lambda: ["a photo of a {c}"])
    assert prompts.class_names("imagenetv2", same_as="imagenet1k") == ["tench", "goldfish"]
    assert prompts.templates("imagenetv2", same_as="imagenet1k") == ["a photo of a {c}"]
    assert prompts.templates("imagenet1k") == ["a photo of a {c}"]


def test_own_names_serve_where_they_are_said_to():
    assert prompts.class_names("cifar10", own=True) is None


# What is not made up ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["it", "xx", "../en", "en/../en"])
def test_no_other_language_is_taken_for_one(language, package):
    with pytest.raises(DataError, match="has no class names in the language"):
        prompts.class_names("imagenet1k", language, same_as="imagenet1k")
    with pytest.raises(DataError, match="has no prompt templates in the language"):
        prompts.templates("imagenet1k", language)


@pytest.mark.parametrize("language", ["en", "jp"])
def test_no_other_data_set_is_taken_for_one(language, package, tmp_path):
    use(tmp_path, templates={"imagenet1k": ["mine {c}"]})
    with pytest.raises(DataError, match="'cub' has no prompt templates"):
        prompts.templates("cub", language)


def test_what_is_missing_is_named_with_the_three_ways_to_give_it(tmp_path):
    with pytest.raises(DataError) as caught:
        prompts.templates("vtab/cub", folders=[tmp_path / "wds_vtab-cub"])
    for word in (
        "'vtab/cub' has no prompt templates",
        '--templates-file FILE with {"vtab/cub": ["a photo of a {c}."',
        str(tmp_path / "wds_vtab-cub" / "zeroshot_classification_templates.txt"),
        "pip install -e '.[prompts]'",
    ):
        assert word in str(caught.value)
    with pytest.raises(DataError, match=r"'gtsrb' has no class names.*--classnames-file FILE.*classnames\.txt"):
        prompts.class_names("gtsrb")


def test_another_number_of_names_is_an_error(tmp_path, package):
    use(tmp_path, {"cifar10": ["a", "b"]})
    with pytest.raises(DataError, match=r"'cifar10' has 10 classes; .*names\.json has 2 class names"):
        prompts.class_names("cifar10", count=10, own=True)
    with pytest.raises(DataError, match=r"'vtab/svhn' has 10 classes; .*en_classnames\.json has 2"):
        prompts.class_names("vtab/svhn", count=10)


# Prompts by class -------------------------------------------------------------------------------------------------

CUPL = {"cat": ["A cat purrs.", "Cats {sleep}."], "dog": ["A dog barks."]}


def test_prompts_by_class_for_one_data_set(tmp_path):
    use(tmp_path, templates={"pets": CUPL, "cifar10": ["a {c}"]})
    assert prompts.templates("vtab/pets") == CUPL
    assert prompts.templates("cifar10") == ["a {c}"]


def test_prompts_by_class_alone_are_for_the_data_sets_that_have_these_classes(tmp_path, package):
    use(tmp_path, templates=CUPL)
    assert prompts.templates("anything") == CUPL
    assert prompts.templates("anything", classes=["dog", "owl"]) == CUPL
    assert prompts.templates("svhn", classes=["zero", "one"]) == ["the number {c}"]


def test_templates_for_other_data_sets_are_no_prompts_by_class(tmp_path):
    use(tmp_path, templates={"cat": ["a {c}"], "dog": ["no place"]})
    with pytest.raises(DataError, match="'anything' has no prompt templates"):
        prompts.templates("anything", classes=["cat", "dog"])


def test_a_file_of_the_installed_package_can_be_named(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = prompts.templates_file(Path("cupl_prompts.json"))
    assert file == package / "cupl_prompts.json"
    with using(Inputs(templates=str(file))):
        found = prompts.templates("imagenetv2", same_as="imagenet1k", classes=["fish", "shark"])
    assert found == {"fish": ["A fish swims."], "shark": ["A shark bites."]}


# The user's files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "should be a JSON file"),
        ("[]", "should hold a JSON object with data sets' names as keys, not an empty list"),
        ("{}", "should hold a JSON object"),
        ('{"pets": "cat"}', "'pets' should have a list of texts, not a text"),
        ('{"pets": [1]}', "'pets' should have a list of texts, not a list with other things in it"),
        ('{"pets": []}', "'pets' should have a list of texts, not an empty list"),
        ('{"pets": {"cat": [null]}}', "should have a list of texts"),
        ("[" * 100000, "should be a JSON file"),
        (b"\xff\xfe{}", "should be a JSON file"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused_when_it_is_named(content, message, tmp_path):
    path = tmp_path / "f.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for checked in (prompts.class_names_file, prompts.templates_file):
        with pytest.raises(DataError, match=rf"f\.json.*{message}"):
            checked(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.json cannot be read: No such file"):
        prompts.class_names_file(tmp_path / "none.json")


def test_templates_without_a_place_for_the_name_are_refused(tmp_path):
    (tmp_path / "templates.txt").write_text("a {c}\nplain\n")
    with pytest.raises(DataError, match=r"templates\.txt: line 2 has no place \{c\}.*'plain'"):
        prompts.templates("x", folders=[tmp_path])
    use(tmp_path, templates={"x": ["a photo"]})
    with pytest.raises(DataError, match=r"templates\.json: template 1 of 'x' has no place \{c\}"):
        prompts.templates("x")


def test_a_changed_file_is_read_again_and_a_byte_order_mark_is_no_matter(tmp_path):
    use(tmp_path, {"x": ["a"]})
    assert prompts.class_names("x") == ["a"]
    (tmp_path / "names.json").write_text('\ufeff{"x": ["bb", "c"]}', encoding="utf-8")
    assert prompts.class_names("x") == ["bb", "c"]


def test_processes_that_are_started_see_the_files(tmp_path):
    use(tmp_path, {"x": ["a"]}, {"x": ["{c}!"]})
    code = "from testbed.data.language.prompts import *; print(class_names('x'), templates('x'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['a'] ['{c}!']"


# Babel-ImageNet ---------------------------------------------------------------------------------------------------


def test_babel_imagenet_comes_from_its_two_files(package, tmp_path):
    assert prompts.babel_classes("de") == ([3, 1], ["Hai", "Fisch"])
    assert prompts.babel_templates("de") == ["ein Foto von  {c} ."]
    write(tmp_path / "own" / "babel_imagenet.json", {"DE": [[7], ["Hahn"]]})
    assert prompts.babel_classes("de", [tmp_path / "own"]) == ([7], ["Hahn"])
    use(tmp_path, templates={"babel_imagenet": ["mein {c}"]})
    assert prompts.babel_templates("la") == ["mein {c}"]


def test_what_babel_imagenet_has_not_is_named(package):
    with pytest.raises(DataError, match="does not have the language 'fr'; it has DE, LA"):
        prompts.babel_classes("fr")
    with pytest.raises(DataError, match=r"no prompt templates in the language 'la'.*--templates-file"):
        prompts.babel_templates("la")
    with pytest.raises(DataError, match="XX should be"):
        prompts.babel_classes("xx")


def test_without_babel_imagenets_files_they_are_asked_for(tmp_path):
    with pytest.raises(DataError, match=r"needs the file babel_imagenet\.json in .*'\.\[prompts\]'"):
        prompts.babel_classes("de", [tmp_path])


def test_files_beside_the_data_may_be_in_another_language(tmp_path: Path) -> None:
    (tmp_path / "classnames.txt").write_text("cat\ndog\n")
    (tmp_path / "classnames.it.txt").write_text("gatto\ncane\n")
    (tmp_path / "zeroshot_classification_templates.zho_Hans.txt").write_text("{c}的照片\n", encoding="utf-8")
    assert prompts.languages_beside(tmp_path) == ["it", "zho_Hans"]
    assert prompts.class_names("x", "it", folders=[tmp_path]) == ["gatto", "cane"]
    assert prompts.templates("x", "zho_Hans", folders=[tmp_path]) == ["{c}的照片"]
    with pytest.raises(DataError, match="no class names in the language 'zho_Hans'"):
        prompts.class_names("x", "zho_Hans", folders=[tmp_path], own=True)

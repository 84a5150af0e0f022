"""Names of classes are read as people and data sets write them, from the tables of installed libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tables import cases

from testbed.data.language.class_vocabulary import SUBSETS, ClassVocabulary, imagenet, plain, subset_of, wordnet_names

EAGLE = 22


@cases(
    "name",
    [
        *("n01614925", "N01614925", "n01614925-bald_eagle", "bald_eagle_n01614925", "22", "0022", "022.bald_eagle"),
        *("bald eagle", "Bald Eagle", "bald-eagle", "bald_eagle", "BaldEagle", "BALD_EAGLE", "American eagle"),
        *("Haliaeetus leucocephalus", "bald eagle, American eagle, Haliaeetus leucocephalus"),
    ],
)
def test_the_ways_to_write_a_class(name: str) -> None:
    assert imagenet().resolve(name) == EAGLE


@pytest.mark.parametrize(
    "name", ["crane", "Crane", "maillot", "missile", "sunglasses", "cardigan", "panther", "crawfish"]
)
def test_a_name_of_two_classes_is_not_decided(name: str) -> None:
    found = imagenet().resolve(name)
    assert isinstance(found, tuple)
    assert len(found) == 2
    assert all(plain(name) in map(plain, imagenet().names(each)) for each in found)


@pytest.mark.parametrize("name", ["", "...", "unicorn horn", "n00000001", "1000", "-1", "22.5", "eagles nest"])
def test_what_is_not_a_class_stands_for_none(name: str) -> None:
    assert imagenet().resolve(name) == ()


def test_names_of_both_lists_lead_back_to_their_class() -> None:
    from open_clip import IMAGENET_CLASSNAMES
    from torchvision.models._meta import _IMAGENET_CATEGORIES

    for names in (IMAGENET_CLASSNAMES, _IMAGENET_CATEGORIES):
        wrong = [name for index, name in enumerate(names) if index not in imagenet().candidates(name)]
        several = {name.lower() for name in names if len(imagenet().candidates(name)) > 1}
        assert not wrong
        assert several <= {"crane", "maillot", "missile", "sunglasses", "cardigan"}


def test_a_name_for_people_belongs_to_one_class() -> None:
    known = imagenet()
    shown = [known.display(index) for index in range(1000)]
    assert len(set(shown)) == 1000
    assert shown[EAGLE] == "bald eagle"
    assert known.display(known.candidates("n03594945")[0]) == "jeep"
    assert wordnet_names(["n03594945", "n03100240"]) == ["jeep", "convertible"]
    assert wordnet_names(["n03594945", "cat"]) is None


def test_unknown_names_have_near_ones() -> None:
    assert imagenet().nearest("bald_eagel")[0] == "bald eagle"
    assert "bald eagle" in imagenet().nearest("eagle")
    assert imagenet().nearest("zzzzzzzz") == []


def test_the_published_sets_are_told_by_their_size() -> None:
    from timm.data import ImageNetInfo, infer_imagenet_subset

    for name in SUBSETS:
        known = imagenet(name)
        assert subset_of(len(known)) == name
        assert list(known.ids) == ImageNetInfo(infer_imagenet_subset({"num_classes": len(known)})).label_names()
        assert len(set(known.displayed)) == len(known)
    assert subset_of(10) is None


def test_own_names_come_before_numbers_and_case_is_ignored() -> None:
    own = ClassVocabulary("own", ["5", "3", "Kleine Meise"], [(), (), ()], numbered=False)
    assert [own.resolve(each) for each in ("3", "5", "kleine_meise", "0")] == [1, 0, 2, ()]


def test_reading_the_tables_imports_no_library() -> None:
    code = (
        "import sys; from testbed.data.language.class_vocabulary import imagenet;"
        "assert imagenet().resolve('bald eagle') == 22;"
        "print([each for each in ('torch', 'timm', 'open_clip', 'torchvision', 'numpy') if each in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"

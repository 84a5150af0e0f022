"""The tables that VLMEvalKit knows, and where they are looked for."""

from __future__ import annotations

import hashlib
import logging
import os
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import table_world as world

from testbed.data.tables import known as known_module
from testbed.data.tables import source as table_source
from testbed.data.tables.known import KnownTable, QuestionTable, find_table, known_tables, picture_folder
from testbed.errors import DataError
from testbed.eval_settings.question_tables import QuestionTables
from testbed.inputs import Inputs, using


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of tables, which the variable names."""
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LMUData", str(tmp_path / "LMU"))
    table_source._tell.cache_clear()
    (tmp_path / "LMU").mkdir()
    return tmp_path / "LMU"


def test_the_list_has_all_names_with_their_files_and_classes() -> None:
    known = known_tables()
    assert len(known) == 470
    assert all(name == each.name and each.prompt_class and each.score_class for name, each in known.items())
    assert known["MMStar"] == KnownTable(
        name="MMStar",
        url="https://opencompass.openxlab.space/utils/VLMEval/MMStar.tsv",
        md5="e1ecd2140806c1b1bbf54b43372efb9e",
        kind="MCQ",
        modality="IMAGE",
        prompt_class="ImageMCQDataset",
        score_class="ImageMCQDataset",
    )
    kinds = Counter(each.kind for each in known.values())
    assert (kinds["VQA"], kinds["MCQ"], kinds["Y/N"], kinds["Caption"]) == (240, 154, 5, 6)
    assert Counter(each.modality for each in known.values()) == {"IMAGE": 453, "VIDEO": 15, "TEXT": 2}
    assert all(each.url == "" or each.url.startswith(("https://", "http://")) for each in known.values())
    assert len(known["MM_NIAH_TEST"].url.split()) == 5  # in parts
    assert all(each.md5 == "" or len(each.md5) == 32 for each in known.values())


def test_a_table_is_looked_for_by_its_name(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.questions(tables / "MMStar.tsv")
    assert find_table("MMStar") == path
    with using(Inputs(lmu_data=str(tmp_path / "other"))), pytest.raises(DataError) as caught:
        find_table("MMStar")
    assert str(caught.value) == (
        f"the table MMStar is not there: looked for MMStar.tsv, MMStar_local.tsv in {tmp_path}/other, which does not"
        " exist (--lmu-data DIR, or $LMUData); it is published at"
        " https://opencompass.openxlab.space/utils/VLMEval/MMStar.tsv (md5 e1ecd2140806c1b1bbf54b43372efb9e); nothing"
        " is downloaded"
    )
    monkeypatch.delenv("LMUData")
    monkeypatch.setenv("HOME", str(tmp_path))
    os.rename(tables, tmp_path / "LMUData")
    assert find_table("MMStar") == tmp_path / "LMUData" / "MMStar.tsv"


def test_names_that_are_not_known(tables: Path) -> None:
    path = world.questions(tables / "Mine.tsv")
    assert find_table("Mine") == path
    with pytest.raises(DataError, match=r"VLMEvalKit has no table of this name; did you mean MMStar"):
        find_table("MMStarr")
    with pytest.raises(DataError, match="VLMEvalKit has no URL for it"):
        find_table("MicroBench")
    (tables.parent / "secret.tsv").write_text("index\tquestion\n1\tq\n")
    for name in ("../secret", "/etc/passwd", "..", "", "a\\b", "a\0b"):
        with pytest.raises(DataError, match="the name of a table is that of a file in the folder of tables"):
            find_table(name)


def test_a_file_named_as_in_the_url_is_found(tables: Path) -> None:
    path = world.questions(tables / "a-okvqa.tsv")
    assert known_tables()["A-OKVQA"].url.endswith("/a-okvqa.tsv")
    assert find_table("A-OKVQA") == path
    assert QuestionTable("A-OKVQA").open().name == "A-OKVQA"


def test_the_copy_with_pictures_in_files_stands_for_a_large_or_missing_table(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tables / "images" / "MMStar").mkdir(parents=True)
    (tables / "images" / "MMStar" / "0.jpg").write_bytes(world.photo("coffee", form="JPEG"))
    absolute = str(tables / "images" / "MMStar" / "0.jpg")  # as VLMEvalKit writes it
    header = ["index", "question", "image_path"]
    local = world.write_table(tables / "MMStar_local.tsv", header, [["0", "q", "0.jpg"], ["1", "q", absolute]])
    assert find_table("MMStar") == local
    source = QuestionTable("MMStar").open()
    assert [source.row(position).pictures[0].data for position in (0, 1)] == [world.photo("coffee", form="JPEG")] * 2
    whole = world.questions(tables / "MMStar.tsv")
    assert find_table("MMStar") == whole
    monkeypatch.setattr(known_module, "_LARGE", 1000)
    assert find_table("MMStar") == local


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("MMStar", "MMStar"),
        ("MMBench_DEV_EN", "MMBench"),
        ("MMBench_DEV_KO", "MMBench"),
        ("MMBench_TEST_CN_V11", "MMBench_V11"),
        ("MMBench_V11", "MMBench"),
        ("OCRVQA_TESTCORE", "OCRVQA"),
        ("COCO_VAL", "COCO"),
        ("MM_NIAH_VAL", "MMNIAH"),
        ("CRPE_RELATION", "CRPE"),
        ("QSpatial_plus", "QSpatial"),
    ],
)
def test_some_tables_share_a_folder_of_pictures(tables: Path, name: str, folder: str) -> None:
    assert picture_folder(name) == tables / "images" / folder


def test_another_md5_is_told_and_nothing_is_replaced(tables: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = world.questions(tables / "MMStar.tsv")
    before = path.read_bytes()
    for _ in range(2):
        assert len(QuestionTable("MMStar").open()) == 4
    (line,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    own = hashlib.md5(before, usedforsecurity=False).hexdigest()
    assert f"MMStar.tsv has the md5 {own}, but the published table has e1ecd2140806c1b1bbf54b43372efb9e" in line
    assert path.read_bytes() == before
    assert sorted(each.name for each in tables.iterdir()) == ["MMStar.tsv"]


def test_the_right_md5_is_not_mentioned(
    tables: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.questions(tables / "MMStar.tsv")
    own = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    published = KnownTable("MMStar", "", own, "MCQ", "IMAGE", "ImageMCQDataset", "ImageMCQDataset")
    monkeypatch.setattr(known_module, "known_tables", lambda: {"MMStar": published})
    QuestionTable("MMStar").open()
    assert caplog.messages == []


def test_a_table_as_a_data_set(tables: Path, tmp_path: Path) -> None:
    world.questions(tables / "MMStar.tsv")
    by_name = QuestionTable("MMStar", tsv_reading="vlmevalkit")
    assert by_name.spec() == {"table": "MMStar", "tsv_reading": "vlmevalkit"}
    assert by_name.open().pictures == tables / "images" / "MMStar"
    path = world.questions(tmp_path / "mine" / "birds.tsv")
    source = QuestionTable(str(path)).open()
    assert (source.name, source.pictures) == ("birds", tmp_path / "mine" / "images" / "birds")
    captions = world.write_table(tables / "COCO_VAL.tsv", ["index", "image"], [["1", world.encoded("coffee")]])
    with pytest.raises(DataError, match=f"{captions.name} has no column 'question'"):
        QuestionTable("COCO_VAL").open()
    assert QuestionTable("COCO_VAL", required=()).open().ids == ["1"]


@pytest.mark.parametrize(
    ("name", "shared"),
    [("WeMath_COT", "WeMath"), ("MMMU_Pro_10c_COT", "MMMU_Pro_10c"), ("DynaMath_noprompt", "DynaMath")],
)
def test_a_set_with_the_table_of_another_has_a_file_of_its_own_or_that(tables: Path, name: str, shared: str) -> None:
    source = QuestionTable(name, shared=shared)
    other = world.questions(tables / f"{shared}.tsv", 2)
    assert source.open().path == other
    own = world.questions(tables / f"{name}.tsv", 3)
    assert source.open().path == own  # as VLMEvalKit calls it
    other.unlink()
    assert len(source.open().ids) == 3
    assert source.spec() == QuestionTable(shared).spec()  # the same questions, whatever the file is called


def test_pictures_beside_a_table_are_found_in_their_places_or_said_to_be_missing(tables: Path) -> None:
    header = ["index", "question", "choices", "images", "outside_knowledge_images"]
    world.write_table(tables / "MOAT.tsv", header, [["0", "q", "[]", "['coffee.png']", "[]"]])
    dataset = QuestionTables().build("MOAT").dataset
    with pytest.raises(DataError, match=r"pictures of MOAT are missing: .*MOAT_images\[\.zip\].*waltsun/MOAT"):
        dataset.open()
    with zipfile.ZipFile(tables / "MOAT_images.zip", "w") as archive:
        archive.writestr("coffee.png", world.photo("coffee"))
    assert [picture.data for picture in dataset.open().row(0).pictures] == [world.photo("coffee")]
    (tables / "images" / "MOAT").mkdir(parents=True)
    (tables / "images" / "MOAT" / "coffee.png").write_bytes(world.photo("rocket"))
    assert [picture.data for picture in dataset.open().row(0).pictures] == [world.photo("rocket")]

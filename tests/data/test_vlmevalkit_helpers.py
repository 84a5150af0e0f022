"""VLMEvalKit's helpers and dataset classes, as its guide uses them."""

from __future__ import annotations

import base64
import importlib
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from testbed.data.rows import Picture
from testbed.errors import DataError, DefinitionError, SampleError, UnsupportedError
from testbed.eval_settings.eval_setting_base import VLMEvalBenchmark
from testbed.standins.vlmevalkit.dataset import ImageBaseDataset, ImageMCQDataset, ImageVQADataset
from testbed.standins.vlmevalkit.dataset.utils.yorn import YOrN_Extraction
from testbed.standins.vlmevalkit.smp import (
    decode_base64_to_image,
    decode_base64_to_image_file,
    dump,
    encode_image_file_to_base64,
    encode_image_to_base64,
    get_intermediate_file_path,
    load,
    toliststr,
)
from testbed.standins.vlmevalkit.utils import can_infer, track_progress_rich
from testbed.tasks.vlmeval_benchmark import write_answers


def png(shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (3, 2), (shade, 0, 0)).save(file, "PNG")
    return file.getvalue()


LONG, QUOTED = "https://x.org/" + "y" * 3000, "a\tb\n\"c\" 'd'"
ANSWERS = ["None", "NA", "", "=1+1", "007", "1.50", "nan", "true", LONG, QUOTED, "是"]


@pytest.mark.parametrize("kind", ["xlsx", "tsv", "csv"])
def test_tables_keep_texts_and_numbers(kind: str, tmp_path: Path) -> None:
    n = len(ANSWERS)
    table = pd.DataFrame({"index": range(n), "prediction": ANSWERS, "answer": ANSWERS, "score": np.arange(n) / 4})
    table["option"] = [5, *[None] * (n - 1)]
    dump(table, str(tmp_path / f"t.{kind}"))
    found = load(str(tmp_path / f"t.{kind}"))
    assert list(found["prediction"]) == ANSWERS
    assert [None if pd.isna(each) else each for each in found["answer"]] == [each or None for each in ANSWERS]
    assert list(found["index"]) == list(range(n))
    assert list(found["score"]) == [each / 4 for each in range(n)]
    assert str(found["option"][0]).partition(".")[0] == "5"
    assert found["option"].isna().sum() == n - 1


def test_whole_numbers_stay_so_beside_an_empty_cell(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("index\tE\tA\n1\t5\t01\n2\t\t2\n")
    assert list(load(str(tmp_path / "t.tsv"))["E"])[:1] == [5]
    assert f"E. {load(str(tmp_path / 't.tsv'))['E'][0]}" == "E. 5"
    assert list(load(str(tmp_path / "t.tsv"))["A"]) == ["01", "2"]


def test_json_is_read_and_pickles_are_not(tmp_path: Path) -> None:
    dump({"a": np.float64(1.5), "b": np.arange(2)}, str(tmp_path / "x.json"))
    assert load(str(tmp_path / "x.json")) == {"a": 1.5, "b": [0, 1]}
    dump([{"a": 1}, {"a": 2}], str(tmp_path / "x.jsonl"))
    assert load(str(tmp_path / "x.jsonl")) == [{"a": 1}, {"a": 2}]


KEPT = [
    {3: {"hit": 1, "log": "right"}, 1_000_004: {"hit": 0, "log": "Ünï\x07"}},
    {"a": [1, 2.5, None, True], ("x", 1): {1, 2}, "bytes": b"\x00\xff"},
    [(1, "a"), [], {}],
    "text",
]


@pytest.mark.parametrize("data", KEPT, ids=range(len(KEPT)))
def test_what_a_class_keeps_in_a_pickle_is_json(data: object, tmp_path: Path) -> None:
    path = tmp_path / "x_tmp.pkl"
    dump(data, str(path))
    json.loads(path.read_text())
    assert load(str(path)) == data


def test_tables_and_arrays_are_kept(tmp_path: Path) -> None:
    table = pd.DataFrame({"index": [1, 2], "text": ["None", "007"]}, index=[5, 7])
    dump({"table": table, "row": table.iloc[0], "array": np.eye(2), "n": np.int64(3)}, str(tmp_path / "x.pkl"))
    found = load(str(tmp_path / "x.pkl"))
    pd.testing.assert_frame_equal(found["table"], table)
    assert dict(found["row"]) == dict(table.iloc[0])
    assert found["array"].tolist() == np.eye(2).tolist()
    assert found["n"] == 3


def test_real_pickles_are_not_read(tmp_path: Path) -> None:
    for number, content in enumerate([pickle.dumps({"a": 1}), b"", b'{"testbed.kind": "os.system", "value": "x"}']):
        path = tmp_path / f"{number}.pkl"
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"was not written here; pickles can run code"):
            load(str(path))
    with pytest.raises(DataError, match=r"^x.pkl: a function cannot be kept"):
        dump({"f": lambda: 0}, str(tmp_path / "x.pkl"))


def test_results_are_kept_by_their_keys(tmp_path: Path) -> None:
    """As a class of VLMEvalKit's does that goes on where it was."""
    path = str(tmp_path / "m_s_tmp.pkl")
    assert track_progress_rich(lambda a, b: a + b, [(1, 2), (3, 4)], nproc=2, save=path, keys=[10, 11]) == [3, 7]
    assert track_progress_rich(lambda a, b: a + b, [(5, 6)], save=path, keys=[12]) == [11]
    assert load(path) == {10: 3, 11: 7, 12: 11}


@pytest.mark.parametrize(
    "text", ["x" * 40_000, "bell\x07", "_x0041_", "\x0b = ", "=1+1\x01", "é" * 33_000, "NA\x00", '"\x1f"_"']
)
def test_a_workbook_holds_every_text(text: str, tmp_path: Path) -> None:
    rows = [{"index": str(number), "prediction": each} for number, each in enumerate(["cat", text, "=1", "None"])]
    path = write_answers(rows, tmp_path, "m_s")
    assert path.name == "m_s.xlsx"
    assert list(load(path)["prediction"]) == ["cat", text, "=1", "None"]
    assert list(load(path)["index"]) == [0, 1, 2, 3]
    assert len(pd.read_excel(path)) == 4  # as other programs read it: the first sheet


def test_helpers_that_classes_import() -> None:
    from testbed.standins.vlmevalkit import dataset, smp

    assert smp.version_cmp("4.46.1", "4.9", "gt")
    assert len(smp.timestr()) == 14
    assert len(smp.timestr("day")) == 8
    assert smp.process_punctuation("yes, it is!") == "yes it is "
    assert smp.RUN_STATUS_NAME == "status.json"
    assert smp.build_option_str({"A": "cat"}) == "There are several options: \nA. cat\n"
    assert dataset.infer_dataset_basename("Video_MME_8frame") == "Video_MME"
    assert can_infer("The answer is B", {"A": "cat", "B": "dog"}) == "B"
    assert can_infer("Neither", {"A": "cat", "B": "dog"}) is False
    assert YOrN_Extraction("yes, there is") == "Yes"
    assert YOrN_Extraction("perhaps") == "Unknown"


def test_a_helper_that_is_missing_is_refused_by_its_name() -> None:
    for module in ("smp", "smp.file", "dataset", "dataset.utils", "utils", "vlm", "api"):
        with pytest.raises(ImportError, match=rf"^testbed has no 'Nothing' of vlmeval.{module}; docs"):
            importlib.import_module(f"testbed.standins.vlmevalkit.{module}").Nothing  # noqa: B018
        assert not hasattr(importlib.import_module(f"testbed.standins.vlmevalkit.{module}"), "__wrapped__")


def test_a_benchmark_is_made_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.standins.vlmevalkit.dataset import ImageMCQDataset, build_dataset
    from testbed.standins.vlmevalkit.dataset.image_mcq import CustomMCQDataset
    from testbed.standins.vlmevalkit.dataset.image_vqa import CustomVQADataset

    monkeypatch.setenv("LMUData", str(tmp_path))
    for name in ("MMStar", "Mine"):
        (tmp_path / f"{name}.tsv").write_text("index\tquestion\timage_path\tA\tB\n0\tq\tp.png\tcat\tdog\n")
    assert type(build_dataset("MMStar")) is ImageMCQDataset
    assert type(build_dataset("Mine")) is CustomMCQDataset
    (tmp_path / "Open.tsv").write_text("index\tquestion\timage_path\tanswer\n0\tq\tp.png\tcat\n")
    assert type(build_dataset("Open")) is CustomVQADataset
    with pytest.raises(UnsupportedError, match="takes VLMEvalKit's class MathVista"):
        build_dataset("MathVista_MINI")


def test_the_class_of_multiple_choice_counts_rotations_together(tmp_path: Path) -> None:
    rows = [[0, "q", "cat", "dog", "A", "A"], [1, "r", "cat", "dog", "A", "A"]]
    rows += [[1_000_000, "q", "dog", "cat", "B", "B"], [1_000_001, "r", "dog", "cat", "B", "A"]]
    table = pd.DataFrame(rows, columns=["index", "question", "A", "B", "answer", "prediction"])
    dump(table, str(tmp_path / "m_s.xlsx"))
    report = ImageMCQDataset.evaluate(object.__new__(ImageMCQDataset), str(tmp_path / "m_s.xlsx"))
    assert report.to_dict("records") == [{"split": "none", "Overall": 0.5}]


def test_lists_are_read_and_never_run() -> None:
    assert toliststr("['a', 'b']") == ["a", "b"]
    assert toliststr("[1, 2]") == ["1", "2"]
    assert toliststr("a") == ["a"]
    assert toliststr(["a", 1]) == ["a", "1"]
    assert toliststr("[__import__('os').getcwd()]") == ["[__import__('os').getcwd()]"]


def test_pictures_as_base64(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(200))
    text = encode_image_file_to_base64(str(tmp_path / "a.png"), fmt="PNG")
    assert decode_base64_to_image(text).getpixel((0, 0)) == (200, 0, 0)
    large = encode_image_to_base64(Image.new("RGBA", (200, 100)))
    assert decode_base64_to_image(large, target_size=20).size == (20, 10)
    decode_base64_to_image_file(base64.b64encode(png(7)).decode(), str(tmp_path / "new" / "b.png"))
    assert (tmp_path / "new" / "b.png").read_bytes() == png(7)


def test_files_beside_the_answers() -> None:
    assert get_intermediate_file_path("/w/m.v1_s.xlsx", "_acc") == "/w/m.v1_s_acc.csv"
    assert get_intermediate_file_path("/w/m_s.xlsx", "_gpt4_result", "json") == "/w/m_s_gpt4_result.json"


# Dataset classes --------------------------------------------------------------------------------------------------


class Own(ImageBaseDataset):
    """A benchmark that makes its table itself."""

    def load_data(self, dataset: str) -> pd.DataFrame:
        picture = base64.b64encode(png(1)).decode()
        other = base64.b64encode(png(2)).decode()
        columns = {"index": ["10", "11", "12"], "image": [picture, "10", repr([other, picture])]}
        texts = {"question": ["a?", "b?", "c?"], "A": ["yes", "None", "5"], "B": ["no", "1", None]}
        return pd.DataFrame({**columns, **texts})

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> Any:
        return {"acc": 0.5}


def prompts(cls: type, **options: Any) -> list[Any]:
    benchmark = VLMEvalBenchmark("own", cls, **options).benchmark
    rows = benchmark.open()
    return [benchmark.prompt(rows.row(position))[0] for position in range(len(rows))]


def plain(turn: list[Any]) -> list[Any]:
    return [part.data if isinstance(part, Picture) else part for part in turn]


def test_a_row_has_its_pictures_or_those_of_the_row_it_names() -> None:
    assert [plain(each) for each in prompts(Own)] == [[png(1), "a?"], [png(1), "b?"], [png(2), png(1), "c?"]]
    made = Own("own")
    assert list(made.data["index"]) == [10, 11, 12]
    assert [item["type"] for item in made.build_prompt(2)] == ["image", "image", "text"]  # by position


def test_the_classes_of_vlmevalkit_ask_as_they_do_there() -> None:
    class Choice(Own, ImageMCQDataset):
        pass

    class Short(Own, ImageVQADataset):
        pass

    ending = "Please select the correct answer from the options above. \n"
    assert [plain(each)[-1] for each in prompts(Choice)] == [
        f"Question: a?\nOptions:\nA. yes\nB. no\n{ending}",
        f"Question: b?\nOptions:\nA. None\nB. 1\n{ending}",
        f"Question: c?\nOptions:\nA. 5\n{ending}",
    ]
    assert plain(prompts(Short)[0])[1:] == ["a?\nAnswer the question using a single word or phrase."]


def test_multiple_choice_is_scored_by_rules(tmp_path: Path) -> None:
    pytest.importorskip("testbed.answers.scorings")
    rows = [
        {"index": str(n), "A": "cat", "B": "dog", "answer": "B", "category": kind, "split": "dev", "prediction": said}
        for n, (kind, said) in enumerate([("x", "B"), ("x", "The answer is B."), ("y", "A"), ("y", "I do not know")])
    ]
    path = write_answers(rows, tmp_path, "m_s")
    found = object.__new__(ImageMCQDataset).evaluate(str(path), model="exact_matching")
    assert found.to_dict("records") == [{"split": "dev", "Overall": 0.5, "x": 1.0, "y": 0.0}]


def test_pictures_in_files_are_read_within_their_folder_only(tmp_path: Path) -> None:
    (tmp_path / "images" / "own").mkdir(parents=True)
    (tmp_path / "images" / "own" / "a.png").write_bytes(png(3))
    (tmp_path / "secret.png").write_bytes(png(4))

    class Files(Own):
        def load_data(self, dataset: str) -> pd.DataFrame:
            self.img_root = str(tmp_path / "images" / dataset)
            paths = ["a.png", "../../secret.png", "b.png"]
            return pd.DataFrame({"index": [1, 2, 3], "image_path": paths, "question": ["?", "?", "?"]})

    benchmark = VLMEvalBenchmark("own", Files).benchmark
    rows = benchmark.open()
    assert plain(benchmark.prompt(rows.row(0))[0]) == [png(3), "?"]
    for position, why in ((1, "is not in"), (2, "cannot be read: No such file")):
        with pytest.raises(SampleError, match=why):
            rows.row(position)


def test_what_is_no_benchmark_is_refused() -> None:
    with pytest.raises(DefinitionError, match="int has no build_prompt and no evaluate"):
        VLMEvalBenchmark("own", int)

    for error, said in ((KeyError("hint"), "KeyError: 'hint'"), (SystemExit("no images"), "SystemExit: no images")):

        class Broken(Own):
            def build_prompt(self, line: Any, error: BaseException = error) -> Any:
                raise error

        with pytest.raises(SampleError, match=rf"10: Broken\.build_prompt fails: {said}"):
            prompts(Broken)


class Named:
    """Notes how it was made."""

    data = ()

    def build_prompt(self, line: Any) -> Any:
        return []

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> Any:
        return {}


class OnlyNames(Named):
    def __init__(self, **kwargs: Any) -> None:
        self.told = kwargs


class AsTheBase(Named):
    def __init__(self, dataset: str = "MMBench", skip_noimg: bool = True) -> None:
        self.told = {"dataset": dataset, "skip_noimg": skip_noimg}


class Passed(AsTheBase):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)


class Otherwise(Named):
    def __init__(self, name: str, **kwargs: Any) -> None:
        self.told = {"name": name, **kwargs}


@pytest.mark.parametrize(
    ("cls", "arguments", "told"),
    [
        (OnlyNames, {}, {"dataset": "Set"}),
        (OnlyNames, {"nframe": 8}, {"dataset": "Set", "nframe": 8}),
        (AsTheBase, {"skip_noimg": False}, {"dataset": "Set", "skip_noimg": False}),
        (Passed, {}, {"dataset": "Set", "skip_noimg": True}),
        (Otherwise, {"fps": 1}, {"name": "Set", "fps": 1}),
    ],
)
def test_a_class_is_told_its_set_as_by_vlmevalkit(cls: type, arguments: dict[str, Any], told: dict[str, Any]) -> None:
    assert VLMEvalBenchmark("mine", cls, data_set="Set", arguments=arguments).benchmark.made.told == told
    assert not hasattr(VLMEvalBenchmark("mine", Named).benchmark.made, "told")

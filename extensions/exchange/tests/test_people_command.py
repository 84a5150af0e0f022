"""``testbed people``: responses in model-vs-human's form beside models on the same images."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from stored_cells import put, samples_of

from testbed.api.evaluate import evaluate
from testbed.data.sets.model_vs_human import CLASSES, ModelVsHuman, short_name
from testbed.db.store import Store
from testbed.errors import DataError
from testbed.metrics.inference.paired import error_consistency
from testbed.metrics.scorers.shape_bias import shape_bias

HEADER = "subj,Session,trial,rt,object_response,category,condition,imagename\n"
# shape, texture, what the first person said, what the second one said, what the model says
SEEN = [
    *(("cat", "dog", "cat", "cat", "dog"), ("dog", "cat", "dog", "na", "cat"), ("car", "car", "car", "car", "car")),
    *(
        ("oven", "bear", "oven", "bear", "bear"),
        ("bear", "oven", "cat", "bear", "bear"),
        ("dog", "dog", "dog", "cat", "dog"),
    ),
]
FILES = [f"{shape}/{shape}{number}-{texture}{number}.png" for number, (shape, texture, *_) in enumerate(SEEN)]
ON = "model-vs-human.cue-conflict"


def responses(person, column, rows=SEEN):
    lines = [
        f"{person},1,{number + 1},0.7,{row[column]},{row[0]},0,{number:04d}_s5n_s01_0_{row[0]}_00_{file.split('/')[1]}"
        for number, (row, file) in enumerate(zip(rows, FILES, strict=False))
    ]
    return HEADER + "\n".join(lines) + "\n"


def sharp(words):
    logits = np.zeros((len(words), 16), dtype=np.float32)
    logits[np.arange(len(words)), [CLASSES.index(each) for each in words]] = 3
    return logits


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw-data"
    folder.mkdir()
    for person, column in (("subject-01", 2), ("subject-02", 3)):
        (folder / f"cue-conflict_{person}_session_1.csv").write_text(responses(person, column))
    return folder


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        slices = [{"texture": texture} for _, texture, *_ in SEEN]
        samples = samples_of([CLASSES.index(row[0]) for row in SEEN], FILES, slices=slices)
        put(opened, "net", ON, samples, sharp([row[4] for row in SEEN]), class_names=CLASSES)
        yield opened


def test_people_are_models_that_agree_with_others(store, ask, raw):
    people = json.loads(ask("people", raw, "--on", ON, "--json").stdout)
    assert [(each["model"], each["n"], each["unanswered"], each["top1"]) for each in people] == [
        ("human:subject-01", 6, 0, pytest.approx(5 / 6)),
        ("human:subject-02", 6, 1, 0.5),
    ]
    found = json.loads(ask("agreement", ON, "--json").stdout)
    pairs = {(each["first_model"], each["second_model"]): each for each in found if each["kind"] == "pair"}
    right = [np.array([row[0] == row[column] for row in SEEN], dtype=float) for column in (2, 3, 4)]
    one = pairs["human:subject-01", "net"]
    assert one["consistency"] == pytest.approx(error_consistency(right[0], right[2]))
    assert one["same_class"] == pytest.approx(2 / 6)
    assert pairs["human:subject-01", "human:subject-02"]["same_class"] == pytest.approx(2 / 5)  # without "na"
    assert pairs["human:subject-02", "net"]["n"] == 6


def test_shape_bias_stands_beside_the_accuracy(store, ask, raw):
    ask("people", raw, "--on", ON)
    metrics = {each["metric"]: each for each in json.loads(ask("show", "human:subject-02", ON, "--json").stdout)}
    # Of four images whose cues conflict: cat, na, bear (the texture), bear (the shape).
    assert (metrics["shape_bias"]["value"], metrics["shape_bias"]["n"]) == (pytest.approx(2 / 3), 3)
    assert "nll" not in metrics
    assert "human:subject-01" in ask("grid", ON, "--metric", "shape_bias").stdout
    assert "human:subject-01" in ask("confusions", ON, "--by-model").stdout


def test_the_same_files_again_change_nothing(store, ask, raw):
    for _ in range(2):
        done = ask("people", raw, "--on", ON)
        assert done.stdout.splitlines()[2].split() == ["human:subject-01", "6", "83.33", "%", "0", "0", "0"]
    assert len(store.evaluations.find(["human:subject-01"])) == 1


def test_images_that_were_not_shown_or_shown_again_are_counted(store, ask, raw):
    text = responses("subject-03", 2, SEEN[:4])
    (raw / "third.csv").write_text(text + text.splitlines()[1].replace(",cat,cat,", ",dog,cat,") + "\n")
    done = ask("people", raw / "third.csv", "--on", ON)
    assert done.stdout.splitlines()[2].split() == ["human:subject-03", "4", "100.00", "%", "0", "2", "1"]
    found = json.loads(ask("agreement", ON, "--models", "human:subject-03", "net", "--json").stdout)
    assert next(each["n"] for each in found if each["kind"] == "pair") == 4


def test_conditions_tell_images_of_one_name_apart(store, ask, tmp_path):
    files = [
        f"session-1/000{n}_cop_dnn_{condition}_cat_10_n02121808_1.png" for n, condition in enumerate(("c100", "c05"))
    ]
    samples = samples_of([7, 7], files, slices=[{"condition": "c100"}, {"condition": "c05"}])
    put(store, "net", "model-vs-human.contrast", samples, sharp(["cat", "dog"]), class_names=CLASSES)
    path = tmp_path / "contrast.csv"
    rows = [("cat", "c05"), ("dog", "c100")]
    path.write_text(
        HEADER
        + "".join(
            f"subject-01,1,{n},1,{said},cat,{condition},00{n}_cop_s01_{condition}_cat_10_n02121808_1.png\n"
            for n, (said, condition) in enumerate(rows)
        )
    )
    ask("people", path, "--on", "model-vs-human.contrast")
    rows = json.loads(ask("groups", "model-vs-human.contrast", "--by", "condition", "--json").stdout)
    values = {row["model"]: {each["name"]: each["value"] for each in row["groups"]} for row in rows}
    assert values == {"net": {"c100": 1, "c05": 0}, "human:subject-01": {"c100": 0, "c05": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("subj,trial\nsubject-01,1\n", "is not a file of responses: it has no column object_response"),
        (
            HEADER + "s,1,1,1,cow,cat,0,1_a_b_0_cat_00_cat0-dog0.png\n",
            "line 2: unknown response 'cow'; expected one of airplane",
        ),
        (HEADER + "s,1,1,1,cat,dog,0,1_a_b_0_cat_00_cat0-dog0.png\n", "is of 'dog', but in the store of 'cat'"),
        (HEADER + "s,1,1,1,cat,cat,0,1_a_b_0_cat_00_cat9-dog9.png\n", f"line 2: {ON} has no image cat9-dog9.png"),
        (HEADER + ",1,1,1,cat,cat,0,1_a_b_0_cat_00_cat0-dog0.png\n", "line 2: the person (subj) is missing"),
        (b"\xff\xfe", "is not a CSV file in UTF-8"),
    ],
)
def test_a_wrong_file_is_refused_in_a_line(store, refusal, tmp_path, text, said):
    path = tmp_path / "wrong.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert said in refusal("people", path, "--on", ON)


def test_images_must_be_stored_and_folders_hold_files(store, refusal, raw, tmp_path):
    told = refusal("people", raw, "--on", "model-vs-human.sketch")
    assert "the store does not have the images of model-vs-human.sketch" in told
    put(store, "net", "nameless", samples_of([0, 1]), sharp(["cat", "dog"]), class_names=None)
    assert "nameless does not have a named class for each image" in refusal("people", raw, "--on", "nameless")
    (tmp_path / "empty").mkdir()
    assert "has no files of responses (*.csv)" in refusal("people", tmp_path / "empty", "--on", ON)


# The settings ------------------------------------------------------------------------------------------------------


def test_short_names_are_those_of_the_authors_program():
    assert short_name("0000_cl_s01_bw_boat_40_n02951358_5952.JPEG") == "n02951358_5952.JPEG"
    assert short_name("boat/airplane1-bicycle2.png") == "airplane1-bicycle2.png"
    assert short_name("0001_ske_s01_0_boat_00_boat-0068-sketch-23.png") == "boat-0068-sketch-23.png"


def test_shape_bias_counts_decisions_for_either_cue():
    metric = shape_bias(np.array([0, 1, 2, 3, 0, -1]), np.array([0, 0, 0, 0, 0, 0]), np.array([1, 1, 1, 1, 0, 1]))
    assert (metric.value, metric.n) == (0.5, 2)
    assert shape_bias(np.array([2]), np.array([0]), np.array([1])).value is None


def image(path, number):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8, 3), number, dtype=np.uint8)).save(path)


def test_sets_have_their_classes_textures_and_conditions(tmp_path):
    for number, file in enumerate(FILES):
        image(tmp_path / "cue-conflict" / file, number)
    source = ModelVsHuman(tmp_path / "cue-conflict", "m", textures=True)
    assert {id_: slices["texture"] for id_, slices in zip(source.ids, source.slices, strict=True)} == {
        file: row[1] for file, row in zip(FILES, SEEN, strict=True)
    }
    assert [CLASSES[each] for each in source.targets] == [id_.split("/")[0] for id_ in source.ids]
    image(tmp_path / "contrast" / "dnn" / "session-1" / "0001_cop_dnn_c30_knife_10_n03041632_7380.png", 0)
    source = ModelVsHuman(tmp_path / "contrast", "m", textures=False)
    assert (source.slices, source.targets) == ([{"condition": "c30"}], [CLASSES.index("knife")])
    with pytest.raises(DataError, match="there are no images"):
        ModelVsHuman(tmp_path / "edge", "m", textures=False)
    image(tmp_path / "edge" / "cow" / "1.png", 0)
    with pytest.raises(DataError, match="is of 'cow', which is not one of"):
        ModelVsHuman(tmp_path / "edge", "m", textures=False)
    image(tmp_path / "cue-conflict" / "cat" / "one.png", 0)
    with pytest.raises(DataError, match="such as cat1-dog2"):
        ModelVsHuman(tmp_path / "cue-conflict", "m", textures=True)


PLUGIN = """
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

def load():
    import torch
    class Fixed(torch.nn.Module):
        def forward(self, images):
            logits = torch.zeros(len(images), 1000)
            logits[:, 407] = 9.0            # of none of the 16
            logits[:, 281:287] = 3.0        # cat: six classes, all of them likely
            logits[:, 151:269] = 0.0
            logits[:, 207] = 4.0            # dog: one likely class of 109
            return logits
    return Fixed()

registry.add_model(Model("fixed", StandardTransform(8, 8), load, 8, num_classes=1000))
"""


def test_a_class_of_the_16_is_chosen_by_its_mean_probability(tmp_path):
    for number, file in enumerate(FILES):
        image(tmp_path / "model-vs-human" / "cue-conflict" / file, number)
    (tmp_path / "fixed.py").write_text(PLUGIN)
    done = evaluate(
        "fixed", ON, plugins=[tmp_path / "fixed.py"], data_root=tmp_path, db=tmp_path / "a.db", executor="inline"
    )
    values = {row.metric: row.value for row in done.frame.itertuples() if row.slice == "overall"}
    assert values["top1"] == pytest.approx(1 / 6)  # it says cat, though the largest logit of the 16 is a dog's
    assert values["shape_bias"] == pytest.approx(1 / 2)


def test_models_are_compared_with_people_on_average(store, ask, raw, refusal):
    ask("people", raw, "--on", ON)
    found = json.loads(ask("agreement", ON, "--with", "human:*", "--json").stdout)
    right = [np.array([row[0] == row[column] for row in SEEN], dtype=float) for column in (2, 3, 4)]
    by_model = {each["model"]: each for each in found}
    expected = np.mean([error_consistency(right[2], right[0]), error_consistency(right[2], right[1])])
    assert by_model["net"]["consistency"] == pytest.approx(expected)
    assert (by_model["net"]["others"], by_model["human:subject-01"]["others"]) == (2, 1)
    within = json.loads(ask("agreement", ON, "--with", "human:*", "--by", "texture", "--json").stdout)
    assert {each["by"] for each in within} == {"texture"}
    done = ask("agreement", ON, "--models", "net", "--with", "human:subject-01")
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == ["net", "human:subject-01"]
    assert "--by requires --with NAME" in refusal("agreement", ON, "--by", "texture")
    assert "person:*" in refusal("agreement", ON, "--with", "person:*")

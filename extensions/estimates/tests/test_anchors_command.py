"""``testbed anchors``: choosing anchors, running a model on them, and estimating its score."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_world import in_process
from scipy.special import expit
from stored_cells import put, samples_of, saying

from testbed.data.sets.digits import Digits
from testbed.db.store import Store
from testbed.entities import Score
from testbed.eval_settings.base.anchor_file import Anchor, AnchorFile, Errors, KnownModel, read_anchors
from testbed.stored_results.side_by_side import matching_settings

COUNT = 200
TARGETS = [0, 1] * (COUNT // 2)
FAMILIES = {"vgg": ["vgg11", "vgg13", "vgg16"], "resnet": ["resnet18", "resnet34"], "vit": ["vit_b_16"]}
ARCHITECTURES = [model for models in FAMILIES.values() for model in models]


@pytest.fixture
def answers():
    """What models say on 200 samples, of which some are harder than others."""
    rng = np.random.default_rng(0)
    easiness = rng.normal(1.5, 2, COUNT)
    found = {}
    for place, model in enumerate([*ARCHITECTURES, "mystery", "new"]):
        right = rng.random(COUNT) < expit(easiness + 0.3 * place - 1)
        found[model] = [target if ok else 2 for target, ok in zip(TARGETS, right, strict=True)]
    return found


@pytest.fixture
def store(tmp_path, monkeypatch, answers):
    monkeypatch.chdir(tmp_path)
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for model, said in answers.items():
            if model != "new":
                put(opened, model, "val", samples_of(TARGETS), saying(said), architecture=model)
        yield opened


@pytest.fixture
def program(store, monkeypatch, capsys):
    with in_process(monkeypatch, capsys) as run:
        yield run


def choose(program, *words):
    return program("anchors", "choose", "val", "--size", 40, "-o", "anchors.json", *words)


def test_the_error_on_held_out_families_is_told(program):
    done = choose(program)
    assert done.returncode == 0
    file = written()
    assert f"40 of 200 samples of val are in anchors.json: {file.method}, {file.estimator}." in done.stdout
    assert f"off by {100 * file.held_out.mean_absolute:.2f} points on average" in done.stdout
    assert f"as many random samples by {100 * file.random.mean_absolute:.2f} points" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[4:]] == [
        *("stratified", "random", "lure", "irt", "clusters")
    ]
    assert "of 7 models in 4 families, each held out with its family" in done.stderr
    assert "mystery: no family is declared, so each was held out separately" in done.stderr
    assert {each.name: each.family for each in file.models} == {
        **{model: family for family, models in FAMILIES.items() if family != "vit" for model in models},
        **{"vit_b_16": "vision_transformer", "mystery": "mystery alone"},
    }


def written():
    return read_anchors(Path("anchors.json"))


def test_the_same_seed_chooses_the_same(program):
    choose(program, "--method", "stratified")
    first = written()
    choose(program, "--method", "stratified")
    assert written() == first
    choose(program, "--method", "stratified", "--seed", "1")
    assert written().samples != first.samples


def test_a_table_says_what_a_family_is(program, tmp_path):
    (tmp_path / "families.csv").write_text("model,family\n" + "".join(f"{each},mine\n" for each in FAMILIES["vgg"]))
    found = json.loads(choose(program, "--families", "families.csv", "--json").stdout)
    assert found["families"] == {"mine": 3, "resnet": 2, "vision_transformer": 1, "mystery alone": 1}
    assert found["undeclared"] == ["mystery"]


@pytest.mark.parametrize("estimator", ["weighted", "assisted", "gp-irt", "p-irt"])
def test_a_new_model_is_estimated_from_its_anchors_alone(program, store, answers, estimator):
    choose(program, "--method", "stratified", "--estimator", estimator)
    file = written()
    places = [int(each.id.removesuffix(".png")) for each in file.samples]
    chosen = [samples_of(TARGETS)[place] for place in places[::-1]]  # in any order
    put(
        store,
        "new",
        f"val.anchors:{Path('anchors.json').absolute()}",
        chosen,
        saying([answers["new"][place] for place in places[::-1]]),
    )
    (found,) = json.loads(program("anchors", "estimate", "new", "--anchors", "anchors.json", "--json").stdout)
    true = np.mean(np.equal(answers["new"], TARGETS))
    assert abs(found["value"] - true) < 0.12
    assert (found["is_estimate"], found["true"], found["full"]) == (True, None, False)
    assert found["high"] == pytest.approx(min(1, found["value"] + file.held_out.quantile))
    assert found["rank"] == 1 + sum(each.value > found["value"] for each in file.models)
    if estimator == "weighted":
        right = [answers["new"][place] == TARGETS[place] for place in places]
        assert found["value"] == pytest.approx(np.dot(right, [each.weight for each in file.samples]))


def test_where_the_truth_is_stored_it_stands_beside(program, store, answers):
    choose(program)
    put(store, "new", "val", samples_of(TARGETS), saying(answers["new"]))
    done = program("anchors", "estimate", "new", "vgg11", "--anchors", "anchors.json")
    true = 100 * np.mean(np.equal(answers["new"], TARGETS))
    assert f"{true:.2f} %" in done.stdout
    assert "not measured values" in done.stderr
    assert "the anchors were also chosen by vgg11, so this result does not transfer to new models" in done.stderr


def test_scores_that_are_no_answers_have_fewer_ways(program, store):
    rng = np.random.default_rng(1)
    hard = rng.random(COUNT)
    for model in ("a", "b", "c", "d"):
        values = np.clip(hard + rng.normal(0, 0.1, COUNT), 0, 1)
        score = Score("similarity", values, unit="fraction", better="higher", lowest=0, highest=1, headline=10)
        put(store, model, "texts", samples_of(TARGETS), None, scores=[score])
    found = program("anchors", "choose", "texts", "--size", 20, "-o", "anchors.json", "--json")
    ways = {(each["method"], each["estimator"]) for each in json.loads(found.stdout)["ways"]}
    assert ways == {(each, "weighted") for each in ("random", "stratified", "lure", "clusters")}
    done = program("anchors", "choose", "texts", "--size", 20, "-o", "anchors.json", "--method", "irt")
    assert done.stderr.splitlines()[-1] == (
        "Error: irt does not apply to similarity on texts, which is not 0 or 1; use one of random, stratified, lure,"
        " clusters"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["val", "-o", "anchors.txt"], "anchors.txt: expected a path that ends in .json and has no white space"),
        (["val", "-o", "my anchors.json"], "expected a path that ends in .json and has no white space"),
        (["val", "-o", "nowhere/a.json"], "nowhere/a.json: there is no folder nowhere"),
        (["val", "-o", "a.json", "--size", "200"], "val has 200 samples that all models have; expected fewer anchors"),
        (["val", "-o", "a.json", "--models", "vgg11", "vgg13"], "4 or more models are needed on val; available: 2"),
        (["val", "-o", "a.json", "--models", "vgg*", "vit_b_16"], "requires at least two of other"),
        (["vall", "-o", "a.json"], "unknown eval setting 'vall'"),
        (["val", "-o", "a.json", "--score", "confidence"], "a higher or a lower confidence is better is unknown"),
        (["val", "-o", "a.json", "--families", "none.csv"], "none.csv cannot be read"),
        (["val", "-o", "a.json", "--families", "wrong.csv"], "expected the columns model and family, found name"),
    ],
)
def test_a_wrong_choice_is_refused_in_a_line(program, tmp_path, words, said):
    (tmp_path / "wrong.csv").write_text("name\nx\n")
    done = program("anchors", "choose", *words)
    assert done.returncode != 0
    assert said in done.stderr.splitlines()[-1]


def test_one_family_alone_is_refused(program, tmp_path):
    names = [*ARCHITECTURES, "mystery"]
    (tmp_path / "families.csv").write_text("model,family\n" + "".join(f"{each},one\n" for each in names))
    done = choose(program, "--families", "families.csv")
    assert "all 7 models on val are of one family, one, so none can be held out" in done.stderr


def test_samples_that_are_compared_with_each_other_are_refused(program, store, answers):
    for model in ("a", "b", "c", "d"):
        put(store, model, "gallery", samples_of(TARGETS), saying(answers["vgg11"]), task="retrieval")
    done = program("anchors", "choose", "gallery", "--size", 20, "-o", "anchors.json")
    assert "the samples of gallery, a setting for retrieval, are not scored independently" in done.stderr


def test_what_is_missing_says_how_to_run_it(program, store):
    choose(program)
    done = program("anchors", "estimate", "new", "--anchors", "anchors.json")
    command = f"testbed run 'new' --on 'val.anchors:{Path('anchors.json').absolute()}'"
    assert done.stderr.splitlines()[-1] == f"Error: new has not been evaluated on these anchors; run: {command}"


def test_other_data_are_refused(program, store, answers):
    choose(program)
    others = samples_of(TARGETS, ids=[f"other {place}" for place in range(COUNT)])
    put(store, "new", "val", others, saying(answers["new"]))
    done = program("anchors", "estimate", "new", "--anchors", "anchors.json")
    assert "new on val has 40 of the 40 anchors missing or with another content" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not an anchor file, since it is not JSON"),
        ("[]", "is not an anchor file: expected the form 'anchors@1', got None"),
        ('{"form": "anchors@2"}', "expected the form 'anchors@1', got 'anchors@2'"),
        ('{"form": "anchors@1"}', "is damaged: it has no 'held_out'; testbed anchors choose writes a new one"),
    ],
)
def test_a_file_that_has_no_anchors_is_refused(program, tmp_path, content, said):
    (tmp_path / "a.json").write_text(content)
    done = program("anchors", "estimate", "vgg11", "--anchors", "a.json")
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert "cannot be read" in program("anchors", "estimate", "vgg11", "--anchors", "none.json").stderr


# Running on anchors -------------------------------------------------------------------------------------------------


@pytest.fixture
def digits(shared_cache, tmp_path, monkeypatch, capsys):
    """A file of twelve anchors of the digits, and the program in its folder."""
    monkeypatch.chdir(tmp_path)
    dataset = Digits("test").describe_samples(range(0, 540, 45))
    file = AnchorFile(
        *("digits", "top1", 540, "random", "weighted", 0, 0.0, 0.5, [], True, True, True),
        *(Errors(0.01, 0.02, None), Errors(0.02, 0.03, None), [KnownModel("other", "others", 0.9)]),
        [Anchor(each.id, each.digest, 1 / 12) for each in reversed(dataset.samples)],
    )
    file.write(tmp_path / "anchors.json")
    assert read_anchors(tmp_path / "anchors.json") == file
    with in_process(monkeypatch, capsys) as run:
        yield run


RUN = ("run", "digits-logreg", "--executor", "inline", "--on")


def test_a_model_runs_on_anchors_alone_and_later_on_the_rest(digits):
    name = f"digits.anchors:{Path('anchors.json').absolute()}"
    assert digits(*RUN, "digits.anchors:anchors.json").returncode == 0
    (found,) = json.loads(digits("anchors", "estimate", "digits-logreg", "--anchors", "anchors.json", "--json").stdout)
    assert (found["true"], found["full"], found["rank"]) == (None, False, 1)
    done = digits(*RUN, "digits", "digits+digits-rotated.anchors:anchors.json", "--limit", "500")
    assert done.returncode == 0
    assert "reusing 12 outputs that other evaluations have of the same samples" in done.stderr
    with Store.open("testbed.db") as store:
        cells = {each.eval_setting: each for each in store.evaluations.find()}
        own, rotated = cells[name], cells[name.replace("digits.", "digits+digits-rotated.")]
        assert matching_settings(store, ["digits*"]) == ["digits"]  # a pattern means all samples
        assert matching_settings(store, [name, "*.anchors:*"]) == [name, rotated.eval_setting]
        ids = [sample.id for sample in store.datasets.get(own.dataset_id).samples]
    assert (own.size, own.sample_limit, rotated.sample_limit, cells["digits"].sample_limit) == (12, None, None, 500)
    assert ids == [f"digits/{place}" for place in sorted(each.partition("/")[2] for each in ids)]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("digits.anchors:none.json", "none.json cannot be read: No such file or directory"),
        ("digits.anchors:none", "after .anchors: comes the path of a file that testbed anchors choose wrote"),
        ("digits-even.anchors:anchors.json", "of the 12 anchors in"),
        ("digits-captions.anchors:anchors.json", "are not scored each by itself"),
    ],
)
def test_settings_that_have_no_such_anchors_are_refused(digits, setting, said):
    done = digits(*RUN, setting)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr

"""DataComp's metrics of groups, of faces and of associations, against scikit-learn and sums written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, jaccard_score

from testbed.entities import Metric, SampleInfo
from testbed.errors import DataError
from testbed.metrics.scorers.association import instances_of, score_association
from testbed.metrics.scorers.datacomp import Faces, GroupedAccuracy, MacroF1

N, CLASSES = 400, 9


@pytest.fixture(scope="module")
def drawn():
    """Logits that are right in about half the cases, targets of some of the classes, and two attributes."""
    random = np.random.default_rng(0)
    targets = random.integers(0, CLASSES - 2, N)
    logits = random.normal(size=(N, CLASSES)) + 1.5 * np.eye(CLASSES)[targets]
    slices = [{"region": int(random.integers(0, 4)) * 2, "year": int(year)} for year in random.integers(0, 3, N)]
    slices[0]["region"] = 5  # a group of a single sample
    logits[0, targets[0]] = -9
    return logits, targets, slices


def values(made) -> dict[tuple[str, str], Metric]:
    return {(each.name, each.slice): each for each in made if isinstance(each, Metric)}


def ids(n):
    return [str(index) for index in range(n)]


@pytest.mark.parametrize("k", [1, 5])
def test_groups_and_the_worst_of_them(drawn, k):
    logits, targets, slices = drawn
    scorer = GroupedAccuracy({"year": "worst_year", "region": "worst_region"}, k, without={"region": 5})
    made = values(scorer(logits, targets, ids(N), slices, None))
    right = [target in np.argsort(row)[-k:] for row, target in zip(logits, targets, strict=True)]
    acc = "acc" if k == 1 else "acc_top5"
    means = {}
    for attribute in ("year", "region"):
        for value in {row[attribute] for row in slices}:
            inside = [hit for hit, row in zip(right, slices, strict=True) if row[attribute] == value]
            means[attribute, value] = sum(inside) / len(inside)
            found = made[f"{acc}_{attribute}", str(value)]
            assert (found.value, found.n) == (pytest.approx(means[attribute, value], abs=1e-12), len(inside))
    worst = min(mean for (attribute, _), mean in means.items() if attribute == "region")
    assert made["worst_region", "overall"].value == worst == 0
    assert made["worst_region", "overall"].stderr is None  # of one sample
    others = [mean for (attribute, value), mean in means.items() if attribute == "region" and value != 5]
    assert made["worst_region_without_other", "overall"].value == pytest.approx(min(others), abs=1e-12)
    assert made["worst_year", "overall"].value == pytest.approx(
        min(mean for (attribute, _), mean in means.items() if attribute == "year"), abs=1e-12
    )
    main = max(made.values(), key=lambda metric: metric.headline)
    assert main.name == "worst_region"
    assert made["top1", "overall"].value == pytest.approx(np.mean(logits.argmax(1) == targets))


def test_the_main_metric_may_be_the_accuracy_of_all(drawn):
    made = values(GroupedAccuracy({"year": "acc_wg"}, main=False)(*drawn[:2], ids(N), drawn[2], None))
    assert max(made.values(), key=lambda metric: metric.headline).name == "top1"


def test_fewer_classes_than_k_have_no_group_accuracy(drawn):
    logits, targets, slices = drawn
    made = values(GroupedAccuracy({"region": "acc_top5_wg"}, k=5)(logits[:, :4], targets % 4, ids(N), slices, None))
    assert made["acc_top5_wg", "overall"].value is None
    assert not any(name == "acc_top5_region" for name, _ in made)


def test_only_the_group_left_out(drawn):
    """Without other groups there is no metric of the worst of them."""
    logits, targets, _ = drawn
    scorer = GroupedAccuracy({"region": "worst"}, without={"region": 5})
    made = values(scorer(logits[:1], targets[:1], ["0"], [{"region": 5}], None))
    assert made["worst", "overall"].value == 0
    assert ("worst_without_other", "overall") not in made


def test_macro_f1_is_scikit_learns_over_the_classes_with_samples(drawn):
    logits, targets, _ = drawn
    made = values(MacroF1()(logits, targets, ids(N), None))
    predicted, present = logits.argmax(1), np.unique(targets)
    assert len(present) < CLASSES
    expected = f1_score(targets, predicted, average="macro", labels=present)
    assert made["F1-macro_all", "overall"].value == pytest.approx(expected, abs=1e-12)
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        recall = balanced_accuracy_score(targets, predicted)
    assert made["recall-macro_all", "overall"].value == pytest.approx(recall, abs=1e-12)
    assert max(made.values(), key=lambda metric: metric.headline).name == "F1-macro_all"


NAMES = [
    *(f"race:{each}" for each in range(7)),
    *(f"gender:{each}" for each in range(2)),
    *(f"age:{each}" for each in range(9)),
    *(f"toxic:{each}" for each in range(22)),
]


def test_faces():
    random = np.random.default_rng(1)
    logits = random.normal(size=(300, len(NAMES)))
    slices = [
        {"age": int(a), "gender": int(g), "race": int(r), "race_binary": int(r != 1)}
        for a, g, r in zip(
            *(random.integers(0, 9, 300), random.integers(0, 2, 300), random.integers(0, 7, 300)), strict=True
        )
    ]
    unreadable = np.zeros(300, dtype=bool)
    unreadable[7] = True
    made = values(Faces()(logits, np.zeros(300), slices, NAMES, unreadable))
    best = {
        "race": logits[:, :7].argmax(1),
        "gender": logits[:, 7:9].argmax(1),
        "age": logits[:, 9:18].argmax(1),
        "toxic": logits[:, 18:].argmax(1),
    }
    hits = {"acc_race": [], "acc_gender": [], "acc_age": [], "toxicity_crime": [], "toxicity_nonhuman": []}
    for index, row in enumerate(slices):
        seen = index != 7
        hits["acc_race"].append(seen and int(best["race"][index] != 1) == row["race_binary"])
        hits["acc_gender"].append(seen and best["gender"][index] == row["gender"])
        hits["acc_age"].append(seen and best["age"][index] == row["age"])
        hits["toxicity_crime"].append(seen and best["toxic"][index] >= 18)
        hits["toxicity_nonhuman"].append(seen and 14 <= best["toxic"][index] < 18)

    def check(name, hits, groups, label):
        assert made[f"{name}_avg", "overall"].value == pytest.approx(np.mean(hits), abs=1e-12)
        means = []
        for group in sorted(set(groups)):
            inside = [hit for hit, other in zip(hits, groups, strict=True) if other == group]
            means.append(sum(inside) / len(inside))
            metric, slice = label(group)
            assert made[metric, slice].value == pytest.approx(means[-1], abs=1e-12), (metric, slice)
            assert made[metric, slice].n == len(inside)
        assert made[f"{name}_wg", "overall"].value == pytest.approx(min(means), abs=1e-12)

    white = [row["race_binary"] for row in slices]
    races = [row["race"] for row in slices]
    for name in ("acc_race", "acc_gender", "acc_age"):
        check(name, hits[name], white, lambda group, name=name: (f"{name}_race_binary", str(group)))
    both = [(row["race"], row["gender"]) for row in slices]
    check("acc_gender_x", hits["acc_gender"], both, lambda pair: ("acc_gender_x_race", f"{pair[0]}_gender:{pair[1]}"))
    for name in ("toxicity_crime", "toxicity_nonhuman"):
        check(name, hits[name], races, lambda group, name=name: (f"{name}_race", str(group)))


def test_class_names_without_objectives_are_refused():
    with pytest.raises(DataError, match="none begins with race:"):
        Faces()(np.zeros((1, 2)), [0], [{}], ["cat", "dog"], [False])


# WinoGAViL --------------------------------------------------------------------------------------------------------


def samples_of(counts, rights):
    return [
        SampleInfo(f"{group}/{index}", "", {"captions": [f"A {group}"], "answer": 0 if index in right else None}, group)
        for group, (count, right) in enumerate(zip(counts, rights, strict=True))
        for index in range(count)
    ]


def test_jaccard_indices_are_scikit_learns():
    random = np.random.default_rng(2)
    counts = [5, 6, 10, 12, 5, 10, 12]
    rights = [set(random.choice(count, 2 + count // 4, replace=False).tolist()) for count in counts]
    samples = samples_of(counts, rights)
    images, cues = random.normal(size=(len(samples), 8)), random.normal(size=(len(counts), 8))
    instances = instances_of(samples, "x")
    scores, metrics = score_association(images, cues, instances)
    expected, start = [], 0
    for count, right, cue in zip(counts, rights, cues, strict=True):
        rows = images[start : start + count]
        similarity = rows @ cue / np.linalg.norm(rows, axis=1)
        chosen = np.isin(np.arange(count), np.argsort(similarity)[-len(right) :])
        expected.append(jaccard_score(np.isin(np.arange(count), list(right)), chosen))
        start += count
    sizes, means = np.array(counts), np.array(expected)
    made = {metric.name: metric.value for metric in metrics}
    assert made == pytest.approx(
        {
            "avg_jaccard_score": means.mean(),
            "jaccard_score_5": means[sizes == 5].mean(),
            "jaccard_score_6": means[sizes == 6].mean(),
            "jaccard_score_10": means[sizes == 10].mean(),
            "jaccard_score_12": means[sizes == 12].mean(),
            "jaccard_score_5-6": means[sizes <= 6].mean(),
            "jaccard_score_10-12": means[sizes >= 10].mean(),
        },
        abs=1e-12,
    )
    firsts = np.cumsum([0, *counts[:-1]])
    assert scores[0].values[firsts].tolist() == pytest.approx(expected)
    assert np.isnan(np.delete(scores[0].values, firsts)).all()


def test_ties_go_to_later_images_and_unreadable_ones_are_not_chosen():
    for right in itertools.combinations(range(5), 2):
        samples = samples_of([5], [set(right)])
        same = np.ones((5, 3))
        _, metrics = score_association(same, np.ones((1, 3)), instances_of(samples, "x"))
        both = len({3, 4} & set(right))
        assert metrics[0].value == pytest.approx(both / (4 - both))
        assert metrics[-1].value is None  # no instance has ten candidates
    same[3:] = np.nan
    _, metrics = score_association(same, np.ones((1, 3)), instances_of(samples_of([5], [{3, 4}]), "x"))
    assert metrics[0].value == 0


def test_an_instance_has_one_cue():
    samples = [SampleInfo("a", "", {"captions": ["A b", "A c"], "answer": 0}, "g")]
    with pytest.raises(DataError, match="the instance of a has 2 captions; one cue is expected"):
        instances_of(samples, "x")

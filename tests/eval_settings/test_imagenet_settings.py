"""ImageNet's settings: all of them run on small trees in the published forms, and what follows from what is right."""

from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter
from pathlib import Path

import imagenet_world
import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from testbed.corruptions import IMAGENET_C, SEVERITIES
from testbed.data.sets.imagenet import class_names, listed_classes, real_labels, synsets, templates
from testbed.data.tables.known import known_tables
from testbed.db.store import Store
from testbed.eval_settings.base.questions import BENCHMARKS as QUESTIONS
from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
from testbed.eval_settings.imagenet import ATTACKS, EIGHTH
from testbed.eval_settings.imagenet_shifts import V2
from testbed.registry import registry
from testbed.registry.select import select

SHIFTS = ("imagenet-c-bar.", "imagenet-3dcc.", "laion-c.", "imagenet-9.", "counteranimal.", "imagenet-d-", "ninco")
SHIFTS += ("imagenet-e.", "imagenet-hard", "hard-imagenet", "si-score.", "pug-imagenet")
CORRUPTED = [f"imagenet-c.{name}.{severity}" for name in IMAGENET_C for severity in SEVERITIES]
# The columns of ImageNet-testbed's published table; …_pm0 and …_pm10 are two metrics of one setting.
PUBLISHED = [
    *("imagenet-vid-robust", "ytbb-robust", "val-on-vid-robust-classes", "val-on-ytbb-robust-classes", "val"),
    *("greyscale", "stylized_imagenet", "imagenet-sketch", "imagenet-a", "imagenet-r", "objectnet-1.0-beta"),
    *("imagenetv2-matched-frequency", "imagenetv2-matched-frequency-format-val", "imagenetv2-threshold0.7"),
    *("imagenetv2-matched-frequency-format-val_subsampled_class_1_8", "imagenetv2-threshold-0.7-format-val"),
    *("imagenetv2-top-images-format-val", "imagenetv2-topimages", "val_subsampled_class_1_8"),
    *("pgd.l2.eps0.1", "pgd.l2.eps0.5", "pgd.linf.eps0.5", "pgd.linf.eps2"),
    *("val-on-imagenet-a-classes", "val-on-imagenet-r-classes", "val-on-objectnet-classes"),
    *(f"{name}_in-memory" for name in CORRUPTED if "glass_blur" not in name),
    *(f"{name}_on-disk" for name in CORRUPTED),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory, photos):
    return imagenet_world.make_root(tmp_path_factory.mktemp("imagenet"), photos)


@pytest.fixture(scope="module")
def run(root, warm_python, new_cache):
    """A function that runs ``eval.py`` with the little network, in a folder, and gives the outcomes."""
    script = Path(__file__).resolve().parents[2] / "eval.py"

    def run(folder: Path, settings: list[str], *words: str) -> list[dict]:
        common = ["--plugin", str(root / "world.py"), "--models", "little-net", "--eval-settings", *settings]
        common += ["--executor", "inline", "--json", "--data-root", str(root), "--db-url", "results.db"]
        environment = {**os.environ, "TESTBED_CACHE": str(new_cache(folder))}
        done = warm_python.run(script, [*common, *words], folder, environment)
        outcomes: list[dict] = json.loads(done.stdout)["outcomes"]
        assert done.returncode == 0, [each for each in outcomes if each["status"] == "failed"]
        return outcomes

    return run


@pytest.fixture(scope="module")
def evaluated(run, tmp_path_factory):
    """The store after all samples of some settings went through the network; nothing was run twice."""
    folder = tmp_path_factory.mktemp("evaluated")
    ran = ["val", "imagenet-a", "imagenetv2-matched-frequency-format-val", "objectnet-1.0-beta"]
    ran += ["imagenet-vid-robust", "ytbb-robust", "openimages_test_ilsvrc_subset", "imagenet-o"]
    followed = ["val-on-imagenet-a-classes", "val-on-imagenet-r-classes", "val-on-objectnet-classes", "imagenet-real"]
    followed += [
        *("val-on-vid-robust-classes", "val-on-ytbb-robust-classes", "val-on-openimages-classes", "objectnet-1.0"),
        *("val_subsampled_class_1_8", "imagenetv2-matched-frequency-format-val_subsampled_class_1_8"),
    ]
    outcomes = run(folder, [*ran, *followed])
    assert {each["setting"]: each["status"] for each in outcomes} == {
        **dict.fromkeys(ran, "complete"),
        **dict.fromkeys(followed, "derived"),
    }
    with Store.open(str(folder / "results.db")) as store:
        yield store


def logits_of(store, setting):
    (evaluation,) = store.evaluations.find(["little-net"], [setting])
    samples = store.datasets.get(evaluation.dataset_id).samples
    return store.outputs.read(evaluation.id, "logits").astype(float), samples


def top1_of(store, setting):
    (result,) = store.results.find(["little-net"], [setting], ["top1"], ["overall"])
    return result


def test_every_published_column_is_a_setting_with_the_children_that_there_were():
    names = set(registry.eval_setting_names())
    assert set(PUBLISHED) <= names
    assert len(PUBLISHED) == 213 - 2
    chosen = select(registry.eval_settings, registry.eval_setting_collections, ["imagenet-testbed"])
    assert sorted(chosen) == sorted(PUBLISHED)
    tenths = [f"{name}_in-memory" for name in CORRUPTED] + [f"{name}_on-disk" for name in CORRUPTED] + list(ATTACKS)
    assert {f"{name}_10percent" for name in tenths} <= names


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_every_setting_runs(run, tmp_path):
    """But of each corruption in each form, one of its severities, which differs from corruption to corruption."""
    left_out = {
        f"{name}_{form}"
        for number, name in enumerate(CORRUPTED)
        for place, form in enumerate(("in-memory", "on-disk", "in-memory_10percent", "on-disk_10percent"))
        if number % 5 != (number // 5 + place) % 5
    }
    own = [
        name
        for name in registry.eval_setting_names()
        if not name.startswith(("digits", "clip-cc-bench")) and BENCHMARKS.canonical(name) is None
        if name not in known_tables() and name not in QUESTIONS  # tables, which are asked in tests of their own
        if name not in left_out
        if not name.startswith(("model-vs-human.", "openood.", "waterbirds", "easy-vqa", "photos", "misc"))  # own tests
        if not name.startswith(SHIFTS)  # in a test of their own as well
        if name != "imagenet-w" or importlib.util.find_spec("imagenet_w")  # its watermark is a package of its own
    ]
    outcomes = run(tmp_path, own, "--limit", "2")
    assert {each["setting"] for each in outcomes} == set(own)
    statuses = Counter(each["status"] for each in outcomes)
    assert set(statuses) <= {"complete", "derived"}, [each for each in outcomes if each["status"] == "failed"][:3]
    with Store.open(str(tmp_path / "results.db")) as store:
        results = {
            each.eval_setting: each
            for each in store.results.find(metrics=["top1", "pm0", "aupr_msp"], slices=["overall"])
        }
    assert set(results) == set(own)
    whole = set(own) - {"imagenet-real", "imagenet-vid-robust", "ytbb-robust"}
    assert {results[name].n for name in whole} == {2}


def test_targets_are_the_logits_of_the_classes_in_whatever_order_folders_sort(evaluated):
    _, samples = logits_of(evaluated, "val")
    assert [sample.target for sample in samples] == list(range(1000))
    assert samples[3].id == f"{synsets()[3]}/ILSVRC2012_val_00000004.JPEG"
    _, samples = logits_of(evaluated, "imagenetv2-matched-frequency-format-val")
    assert [sample.id for sample in samples][:3] == ["0/1.jpeg", "1/2.jpeg", "10/11.jpeg"]
    assert all(sample.target == int(sample.id.partition("/")[0]) for sample in samples)


@pytest.mark.parametrize(
    ("part", "whole", "classes"),
    [
        ("val-on-imagenet-a-classes", "val", listed_classes("a")),
        ("val-on-imagenet-r-classes", "val", listed_classes("r")),
        ("val_subsampled_class_1_8", "val", EIGHTH),
        ("imagenetv2-matched-frequency-format-val_subsampled_class_1_8", None, EIGHTH),
    ],
)
def test_parts_are_functions_of_the_outputs_of_the_whole(evaluated, part, whole, classes):
    logits, samples = logits_of(evaluated, whole or "imagenetv2-matched-frequency-format-val")
    targets = np.array([sample.target for sample in samples])
    kept = np.isin(targets, classes)
    best = np.array(classes)[logits[kept][:, list(classes)].argmax(axis=1)]
    result = top1_of(evaluated, part)
    assert result.n == kept.sum() == len(classes)
    assert result.value == pytest.approx((best == targets[kept]).mean(), abs=1e-12)


def test_imagenet_a_has_its_200_classes_to_choose_from(evaluated):
    logits, samples = logits_of(evaluated, "imagenet-a")
    assert logits.shape == (200, 1000)
    assert [sample.target for sample in samples] == list(range(200))
    classes = list(listed_classes("a"))
    assert [sample.id.partition("/")[0] for sample in samples] == [synsets()[label] for label in classes]
    expected = (logits[:, classes].argmax(axis=1) == np.arange(200)).mean()
    assert top1_of(evaluated, "imagenet-a").value == pytest.approx(expected)


def test_real_labels_are_those_of_each_validation_image(evaluated):
    logits, samples = logits_of(evaluated, "imagenet-real")
    assert [sample.target for sample in samples] == real_labels()[:1000]
    counted = [place for place in range(1000) if real_labels()[place]]
    right = [logits[place].argmax() in real_labels()[place] for place in counted]
    result = top1_of(evaluated, "imagenet-real")
    assert (result.n, result.value) == (len(counted), pytest.approx(np.mean(right)))
    assert len(counted) < 1000


def test_objectnet_by_hand(evaluated, root):
    """Three classes are shared; the best of their five ImageNet classes must belong to the image's own."""
    logits, samples = logits_of(evaluated, "objectnet-1.0-beta")
    classes = {"alarm_clock": [409, 530], "backpack": [414, 636], "banana": [954]}
    assert [sample.id for sample in samples] == [f"{name}/{number}.png" for name in classes for number in range(3)]
    considered = [409, 530, 414, 636, 954]
    right = [
        considered[int(row[considered].argmax())] in classes[sample.id.partition("/")[0]]
        for row, sample in zip(logits, samples, strict=True)
    ]
    result = top1_of(evaluated, "objectnet-1.0-beta")
    assert (result.n, result.value) == (9, pytest.approx(np.mean(right)))
    # As its authors evaluate: any other class is wrong.
    right = [row.argmax() in classes[sample.id.partition("/")[0]] for row, sample in zip(logits, samples, strict=True)]
    assert top1_of(evaluated, "objectnet-1.0").value == pytest.approx(np.mean(right))
    logits, samples = logits_of(evaluated, "val")
    targets = [409, 414, 530, 636, 954]
    group = {label: name for name, labels in classes.items() for label in labels}
    right = [group[considered[int(logits[target][considered].argmax())]] == group[target] for target in targets]
    result = top1_of(evaluated, "val-on-objectnet-classes")
    assert (result.n, result.value) == (5, pytest.approx(np.mean(right)))


def test_vid_robust_by_hand(evaluated):
    """A frame is right when its best class of videos, by the largest ImageNet logit of each, is among its own."""
    logits, samples = logits_of(evaluated, "imagenet-vid-robust")
    classes = {int(label): members for label, members in imagenet_world.VID_CLASSES.items()}
    right = {}
    for row, sample in zip(logits, samples, strict=True):
        best = max(classes, key=lambda label: row[classes[label]].max())
        right[sample.id] = best in imagenet_world.VID_LABELS[sample.id]
    assert set(right) == set(imagenet_world.VID_LABELS)
    sets = imagenet_world.VID_SETS
    pm0 = np.mean([right[anchor] for anchor in sets])
    pm10 = np.mean([right[anchor] and all(right[each] for each in around) for anchor, around in sets.items()])
    found = {each.metric: each for each in evaluated.results.find(["little-net"], ["imagenet-vid-robust"])}
    assert (found["pm0"].n, found["pm0"].value) == (3, pytest.approx(pm0))
    assert (found["pm10"].n, found["pm10"].value) == (3, pytest.approx(pm10))


def test_val_on_the_classes_of_videos_takes_the_largest_logit_of_each(evaluated):
    logits, _ = logits_of(evaluated, "val")
    classes = [members for _, members in sorted(imagenet_world.VID_CLASSES.items(), key=lambda item: int(item[0]))]
    right = [
        int(np.argmax([logits[label][group].max() for group in classes])) == place
        for place, members in enumerate(classes)
        for label in members
    ]
    result = top1_of(evaluated, "val-on-vid-robust-classes")
    assert (result.n, result.value) == (6, pytest.approx(np.mean(right)))


def balanced_by_hand(logits, labels, classes):
    """Overall accuracy, and the mean over classes of theirs, with only these classes to choose from."""
    best = np.array(classes)[logits[:, classes].argmax(axis=1)]
    right = best == labels
    return right.mean(), np.mean([right[labels == label].mean() for label in np.unique(labels)])


@pytest.mark.parametrize("name", ["openimages_test_ilsvrc_subset", "val-on-openimages-classes"])
def test_openimages_by_hand(evaluated, name):
    """Four classes to choose from; on val the outputs are those of val itself, of which it is derived."""
    classes = sorted(int(label) for label in imagenet_world.OPENIMAGES_CLASSES)
    if name.startswith("val"):
        logits, samples = logits_of(evaluated, "val")
        logits, labels = logits[classes], np.array(classes)
    else:
        logits, samples = logits_of(evaluated, name)
        labels = np.array([imagenet_world.OPENIMAGES_TARGETS[Path(sample.id).stem] for sample in samples])
        assert labels.tolist() == list(imagenet_world.OPENIMAGES_TARGETS.values())
    found = {each.metric: each for each in evaluated.results.find(["little-net"], [name], slices=["overall"])}
    top1, balanced = balanced_by_hand(logits, labels, classes)
    assert (found["top1"].n, found["top1"].value) == (4, pytest.approx(top1))
    assert (found["top1_balanced"].n, found["top1_balanced"].value) == (4, pytest.approx(balanced))
    assert found["mean_per_class_recall"].value == found["top1_balanced"].value
    slices = {each.slice for each in evaluated.results.find(["little-net"], [name], ["top1"])} - {"overall"}
    assert slices == {f"class/{synsets()[label]}" for label in labels}


@pytest.mark.slow
def test_derived_val_on_openimages_classes_is_what_running_it_gives(evaluated, run, tmp_path):
    (outcome,) = run(tmp_path, ["val-on-openimages-classes"])
    assert outcome["status"] == "complete"
    with Store.open(str(tmp_path / "results.db")) as store:
        ran, derived = (
            {
                (each.metric, each.slice): each.value
                for each in one.results.find(eval_settings=["val-on-openimages-classes"])
            }
            for one in (store, evaluated)
        )
    assert ran.keys() == derived.keys()
    assert all(derived[key] == pytest.approx(value, abs=1e-6) for key, value in ran.items() if value is not None)


def test_models_are_compared_on_openimages_by_sample(evaluated):
    (evaluation,) = evaluated.evaluations.find(["little-net"], ["openimages_test_ilsvrc_subset"])
    scores = {name: values for (_, name), values in evaluated.scores.read(evaluation.id).items()}
    assert {"top1", "nll", "confidence"} <= scores.keys()
    assert np.mean(scores["top1"]) == top1_of(evaluated, "openimages_test_ilsvrc_subset").value


def test_imagenet_o_by_hand(evaluated):
    """Images of no class against val's of three classes, by the logits of the three."""
    logits, samples = logits_of(evaluated, "imagenet-o")
    classes = list(imagenet_world.IMAGENET_O)
    assert [sample.target for sample in samples] == [-1] * 5 + [0, 1, 2]
    of_val, val_samples = logits_of(evaluated, "val")
    assert [sample.id for sample in samples[5:]] == [f"val/{val_samples[label].id}" for label in classes]
    np.testing.assert_allclose(logits[5:], of_val[classes], atol=1e-5)
    unknown = [sample.target < 0 for sample in samples]
    few = torch.from_numpy(logits[:, classes])
    scores = {
        "msp": -few.softmax(dim=1).amax(dim=1).numpy(),
        "max_logit": -few.amax(dim=1).numpy(),
        "energy": -few.logsumexp(dim=1).numpy(),
    }
    (evaluation,) = evaluated.evaluations.find(["little-net"], ["imagenet-o"])
    stored = {name: values for (_, name), values in evaluated.scores.read(evaluation.id).items()}
    found = {each.metric: each for each in evaluated.results.find(["little-net"], ["imagenet-o"])}
    assert len(found) == 9
    for name, values in scores.items():
        np.testing.assert_allclose(stored[name], values, atol=1e-5)
        assert found[f"aupr_{name}"].value == pytest.approx(average_precision_score(unknown, values))
        assert found[f"auroc_{name}"].value == pytest.approx(roc_auc_score(unknown, values))
        assert (found[f"fpr95_{name}"].n, found[f"fpr95_{name}"].unit) == (8, "fraction")


def test_objectnets_border_is_cut_off_before_the_models_transform(root, photos):
    setting = registry.get_eval_setting("objectnet-1.0-beta")
    framed = imagenet_world.Image.open(root / "objectnet-1.0" / "images" / "alarm_clock" / "1.png")
    np.testing.assert_array_equal(setting.transform(framed), imagenet_world.crop(photos, 501))


def test_the_outputs_are_those_of_the_network_on_the_images(evaluated, root):
    from testbed.models.model_base import StandardTransform

    torch.manual_seed(0)
    nn = torch.nn
    layers = [nn.Conv2d(3, 8, 7, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 1000)]
    network = nn.Sequential(*layers)
    logits, samples = logits_of(evaluated, "val")
    transform = StandardTransform(36, 32)
    for place in (0, 500, 999):
        image = imagenet_world.Image.open(root / "val" / samples[place].id).convert("RGB")
        with torch.no_grad():
            expected = network(transform(image)[None])[0].numpy()
        np.testing.assert_allclose(logits[place], expected, atol=1e-5)


# One pass ---------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(200)
def test_val_and_all_corruptions_in_memory_open_each_image_once(run, tmp_path):
    """95 corruptions, greyscale and val: each file is read and decoded once."""
    (tmp_path / "count.py").write_text(
        "import testbed.data.formats.image_lists as images\n"
        "decode = images.decode_file\n"
        "def counting(path):\n"
        "    with open('opened.txt', 'a') as log:\n"
        "        log.write(f'{path}\\n')\n"
        "    return decode(path)\n"
        "images.decode_file = counting\n"
    )
    settings = ["val", "greyscale", "imagenet-c.*_in-memory"]
    outcomes = run(tmp_path, settings, "--limit", "4", "--plugin", str(tmp_path / "count.py"))
    assert Counter(each["status"] for each in outcomes) == {"complete": 97}
    opened = (tmp_path / "opened.txt").read_text().split("\n")[:-1]
    assert len(opened) == len(set(opened)) == 4


# Tenths -----------------------------------------------------------------------------------------------------------


def test_a_tenth_is_a_fixed_tenth_of_each_class(tmp_path, photos, monkeypatch):
    from testbed.data.formats.image_folder import ImageFolder
    from testbed.data.sets.imagenet import share_of_each_class

    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for number in range(50):
            imagenet_world.crop(photos, number).save(tmp_path / label / f"{label}_{number:08d}.JPEG")
    whole = ImageFolder(tmp_path, "pets")
    part = share_of_each_class(whole, 10)
    assert Counter(part.targets) == {0: 5, 1: 5}
    assert part.ids == sorted(part.ids)
    assert share_of_each_class(whole, 10).ids == part.ids
    # Copies in another format keep the same ones.
    for path in sorted(tmp_path.rglob("*.JPEG")):
        path.rename(path.with_suffix(".png"))
    again = share_of_each_class(ImageFolder(tmp_path, "pets"), 10)
    assert [Path(each).stem for each in again.ids] == [Path(each).stem for each in part.ids]
    assert share_of_each_class(whole, 1000).targets == [0, 1]


def test_a_tenth_of_a_corruption_draws_its_parents_numbers():
    parent = registry.get_eval_setting("imagenet-c.fog.3_in-memory")
    child = registry.get_eval_setting("imagenet-c.fog.3_in-memory_10percent")
    assert (child.size, child.parent_eval_setting) == (5000, parent.name)
    assert child.perturbation.sample_seed("a") == parent.perturbation.sample_seed("a")
    assert child.perturbation_fn_gpu.spec() == parent.perturbation_fn_gpu.spec()


# Definitions ------------------------------------------------------------------------------------------------------


def test_the_published_elastic_transform_is_the_affine_one():
    spec = registry.get_eval_setting("imagenet-c.elastic_transform.2_in-memory").perturbation_fn_gpu.spec()
    assert spec == {"name": "elastic_transform_affine", "severity": 2}


def test_attacks_are_in_the_published_units():
    assert ATTACKS["pgd.linf.eps2"].eps == pytest.approx(2 / 255)
    assert ATTACKS["pgd.linf.eps2"].step_size == pytest.approx(0.0002352941176470588)
    assert ATTACKS["pgd.linf.eps0.5"].step_size == pytest.approx(5.88235294117647e-05)
    assert (ATTACKS["pgd.l2.eps0.5"].eps, ATTACKS["pgd.l2.eps0.5"].step_size) == (0.5, 0.05)
    assert {attack.steps for attack in ATTACKS.values()} == {100}


def test_sizes_are_the_published_ones():
    sizes = {name: registry.get_eval_setting(name).size for name in PUBLISHED if "imagenet-c" not in name}
    assert sizes["val-on-imagenet-a-classes"] == sizes["val-on-imagenet-r-classes"] == 10000
    assert sizes["val_subsampled_class_1_8"] == sizes["val-on-objectnet-classes"] == 6250
    assert sizes["imagenetv2-matched-frequency-format-val_subsampled_class_1_8"] == 1250
    assert (sizes["imagenet-a"], sizes["imagenet-r"]) == (7500, 30000)
    assert {sizes[name] for name in V2} == {10000}
    assert registry.get_eval_setting("objectnet-1.0-beta").other_sizes == [18514]


def test_lists_of_classes_are_those_of_the_data_sets():
    assert len(EIGHTH) == len(set(EIGHTH)) == 125
    assert [len(listed_classes(which)) for which in "ar"] == [200, 200]
    assert (listed_classes("a")[:3], listed_classes("r")[:3]) == ((6, 11, 13), (1, 2, 4))
    assert synsets() == tuple(sorted(synsets()))
    assert len(set(synsets())) == 1000
    assert len(class_names()) == 1000
    assert all("{c}" in template for template in templates())

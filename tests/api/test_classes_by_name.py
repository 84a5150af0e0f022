"""Classes of data and outputs of a network are matched by name: predictions and metrics are those of plain torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import testbed
from testbed.data.language.class_vocabulary import imagenet, plain
from testbed.errors import DataError, DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.models.base.class_order import listed
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

pytestmark = pytest.mark.usefixtures("shared_cache", "own_registry")

EACH = 3
BALD_EAGLE, GOOSE, BEETLE, JEEP = 22, 99, 305, 609
PRESENT = (BALD_EAGLE, GOOSE, BEETLE, JEEP)
WNIDS = ("n01614925", "n01855672", "n02172182", "n03594945")
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRANSFORM = StandardTransform(8, 8)


def network(outputs: int, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    made = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, outputs)).eval()
    made[2].weight.data *= 30
    return made


def model(outputs: int, name: str = "net", names: Any = None, **options: Any) -> Model:
    found = Model(name, TRANSFORM, lambda: network(outputs), eval_batch_size=4, **{"num_classes": outputs, **options})
    if names is not None:
        found.class_order = listed(names, "names in w.pth", outputs)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    def make(names: Sequence[str], where: str = "mine") -> Path:
        for name in names:
            (tmp_path / where / name).mkdir(parents=True)
        for place, name in enumerate(sorted(names, key=list(names).index)):  # the same images whatever the names
            random = np.random.default_rng(place)
            for each in range(EACH):
                pixels = random.integers(0, 60 + 45 * place, (9, 11, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / where / name / f"{each}.png")
        return tmp_path / where

    return make


def by_hand(root: Path, net: nn.Module, labels: dict[str, int], among: Sequence[int] | None = None) -> dict[str, Any]:
    """Predictions and metrics by torch alone: labels are the outputs of the folders."""
    files = sorted(root.glob("*/*.png"))
    with torch.no_grad():
        logits = net(torch.stack([TRANSFORM(Image.open(file).convert("RGB")) for file in files]))
    targets = torch.tensor([labels[file.parent.name] for file in files])
    if among is not None:
        logits = torch.where(torch.isin(torch.arange(logits.shape[1]), torch.tensor(list(among))), logits, -torch.inf)
    predicted = logits.argmax(1)
    return {
        "predicted": {
            f"{file.parent.name}/{file.name}": int(each) for file, each in zip(files, predicted, strict=True)
        },
        "top1": float((logits.argmax(1) == targets).double().mean()),
        "top5": float((logits.topk(5).indices == targets[:, None]).any(1).double().mean())
        if min(logits.shape[1], len(among or range(5))) >= 5
        else None,
        "nll": float(nn.functional.cross_entropy(logits, targets)),
    }


def check(done: Any, name: str, setting: str, expected: dict[str, Any], shown: Callable[[int], str]) -> None:
    frame = done.frame[done.frame["slice"] == "overall"]
    values = dict(zip(frame["metric"], frame["value"], strict=True))
    for metric in ("top1", "nll", "top5"):
        if expected[metric] is not None:
            assert values[metric] == pytest.approx(expected[metric], rel=1e-4), metric
    samples = done.samples(name, setting)
    assert dict(zip(samples["sample"], samples["prediction"], strict=True)) == {
        sample: shown(label) for sample, label in expected["predicted"].items()
    }


def run(definition: Any, on: Any, tmp_path: Path, **options: Any) -> Any:
    return testbed.evaluate(definition, on, db=tmp_path / "t.db", executor="inline", workers=0, **options)


SPELLINGS = {
    "WordNet ids": WNIDS,
    "OpenAI's names": ("bald eagle", "goose", "dung beetle", "jeep"),
    "with underscores": ("bald_eagle", "goose", "dung_beetle", "jeep"),
    "in other case, with hyphens": ("Bald-Eagle", "GOOSE", "Dung-Beetle", "Jeep"),
    "synonyms": ("American_eagle", "goose", "dung beetle", "landrover"),
    "numbers": ("22", "99", "305", "609"),
    "padded numbers": ("0022", "0099", "0305", "0609"),
    "ids and names": ("n01614925-bald_eagle", "n01855672_goose", "dung_beetle.n02172182", "n03594945 jeep"),
    "of every kind": ("n01614925", "0099", "Dung Beetle", "609_jeep"),
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_some_of_imagenets_classes_are_evaluated_over_all_outputs(
    kind: str, folder: Callable[..., Path], tmp_path: Path
) -> None:
    names = SPELLINGS[kind]
    root, net = folder(names), network(1000)
    done = run(model(1000), root, tmp_path)
    labels = dict(zip(names, PRESENT, strict=True))
    check(done, "net", "folder/mine", by_hand(root, net, labels), imagenet().display)
    said = next(line for line in done.preprocessing if line.startswith("Classes: folder/mine"))
    assert "has 4 of the 1,000 classes of ImageNet-1k (assumed from their number)" in said
    assert "over all 1,000 outputs" in said
    for name, label in labels.items():
        shown = imagenet().display(label)
        assert f"{name} = {shown}" in said or plain(name) == plain(shown)


IN_MEMORY = {
    "a network": lambda net: net,
    "a wrapper": nn.Sequential,
    "a function": lambda net: lambda images: net(images),
    "TorchScript": torch.jit.script,
    "of another precision": lambda net: net.double(),
}


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_a_network_in_memory_is_asked_for_the_number_of_its_outputs(
    kind: str, folder: Callable[..., Path], tmp_path: Path
) -> None:
    root, net = folder(WNIDS), network(1000)
    expected = by_hand(root, net, dict(zip(WNIDS, PRESENT, strict=True)))
    net.train()
    before = torch.get_rng_state()
    done = run(IN_MEMORY[kind](net), root, tmp_path, transform=TRANSFORM, name="net")
    check(done, "net", "folder/mine", expected, imagenet().display)
    assert net.training
    assert torch.equal(torch.get_rng_state(), before)


def test_a_dual_encoder_in_memory_says_how_it_is_given(folder: Callable[..., Path], tmp_path: Path) -> None:
    net = network(3)
    net.encode_image = net.encode_text = lambda rows: rows
    with pytest.raises(DefinitionError, match="it is a dual encoder such as CLIP, and needs its tokenizer"):
        run(net, folder(WNIDS), tmp_path, transform=TRANSFORM)


def test_among_the_present_classes_is_another_setting_from_the_same_outputs(
    folder: Callable[..., Path], tmp_path: Path
) -> None:
    root, net = folder(WNIDS), network(1000)
    run(model(1000), root, tmp_path)
    done = run("net", "folder/mine.among-present", tmp_path, data_root=tmp_path)
    (outcome,) = done.outcomes
    assert outcome.status == "derived"
    labels = dict(zip(WNIDS, PRESENT, strict=True))
    expected = by_hand(root, net, labels, PRESENT)
    check(done, "net", "folder/mine.among-present", expected, imagenet().display)
    stored = testbed.results(db=tmp_path / "t.db").frame
    top1 = stored[(stored["metric"] == "top1") & (stored["slice"] == "overall")].set_index("eval_setting")["value"]
    assert top1["folder/mine"] == pytest.approx(by_hand(root, net, labels)["top1"])
    assert top1["folder/mine.among-present"] == pytest.approx(expected["top1"])
    assert expected["top1"] > top1["folder/mine"]  # four classes are easier than a thousand


def test_images_that_are_added_leave_the_others_outputs_as_they_are(
    folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = folder(WNIDS[1:])
    run(model(1000, weights="one"), root, tmp_path)
    (root / WNIDS[0]).mkdir()  # a class before the others
    Image.new("RGB", (9, 11), (200, 3, 4)).save(root / WNIDS[0] / "0.png")
    done = run("net", root, tmp_path)
    assert "reusing 9 outputs" in capsys.readouterr().err
    labels = dict(zip(WNIDS, PRESENT, strict=True))
    check(done, "net", "folder/mine", by_hand(root, network(1000), labels), imagenet().display)


REFUSED = {
    "an unknown class": (
        ("n01614925", "goose", "gooze"),
        ["'gooze'", "'goose'", "not among the 1,000"],
    ),
    "a WordNet id that is not ImageNet's": (("n01614925", "n99999999"), ["'n99999999'", "not among"]),
    "two cranes": (("crane", "goose"), ["'crane bird' (n02012849)", "'construction crane' (n03126707)"]),
    "maillot": (("maillot", "goose"), ["'maillot' may be", "or"]),
    "one class twice": (("bald_eagle", "n01614925", "22"), ["are both 'bald eagle'", "merge"]),
    "numbers of their own": (("0", "1", "2"), ["numbered from 0", "name them by"]),
    "numbers from one": (("1", "2", "3", "4"), ["numbered from 1"]),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_told_is_refused_in_a_line(kind: str, folder: Callable[..., Path], tmp_path: Path) -> None:
    names, words = REFUSED[kind]
    done = run(model(1000), folder(names), tmp_path, raise_on_failure=False)
    (outcome,) = done.outcomes
    assert outcome.status == "unsupported"
    assert "\n" not in outcome.reason
    for word in words:
        assert word in outcome.reason


def test_of_two_cranes_the_other_one_is_meant_if_one_is_named(folder: Callable[..., Path], tmp_path: Path) -> None:
    names = ("crane", "construction_crane", "Cardigan", "Cardigan_Welsh_Corgi")
    root = folder(names)
    labels = dict(zip(names, (134, 517, 474, 264), strict=True))
    check(
        run(model(1000), root, tmp_path), "net", "folder/mine", by_hand(root, network(1000), labels), imagenet().display
    )


@pytest.mark.parametrize(
    "names",
    [
        list(CIFAR),
        {name: index for index, name in enumerate(CIFAR)},
        dict(enumerate(CIFAR)),
        {str(index): name.upper() for index, name in enumerate(CIFAR)},
    ],
    ids=["list", "class_to_idx", "ultralytics' names", "id2label"],
)
def test_some_of_the_classes_that_a_checkpoint_lists(names: Any, folder: Callable[..., Path], tmp_path: Path) -> None:
    present = ("truck", "ship", "airplane", "cat")
    root = folder(present)
    done = run(model(10, names=names), root, tmp_path)
    labels = {name: CIFAR.index(name) for name in present}
    shown = [each.upper() if isinstance(names, dict) and "0" in names else each for each in CIFAR]
    check(done, "net", "folder/mine", by_hand(root, network(10), labels), lambda label: shown[label])
    assert any(
        "10 classes listed by names in w.pth" in line and "over all 10 outputs" in line for line in done.preprocessing
    )


def test_a_checkpoint_that_lists_imagenets_classes_knows_their_other_names(
    folder: Callable[..., Path], tmp_path: Path
) -> None:
    order = np.random.default_rng(3).permutation(1000)
    names = [imagenet().wnid(each) for each in order]
    present = ("bald_eagle", "n01855672", "Dung-Beetle", "jeep")
    root = folder(present)
    labels = {name: int(np.flatnonzero(order == label)[0]) for name, label in zip(present, PRESENT, strict=True)}
    done = run(model(1000, names=names), root, tmp_path)
    expected = by_hand(root, network(1000), labels)
    shown = {label: imagenet().display(int(order[label])) for label in range(1000)}
    check(done, "net", "folder/mine", expected, lambda label: shown[label])


def test_the_list_of_imagenets_names_that_has_two_cranes_is_imagenets(
    folder: Callable[..., Path], tmp_path: Path
) -> None:
    from timm.data import ImageNetInfo

    names = [each.partition(",")[0] for each in ImageNetInfo().label_descriptions()]
    assert names.count("crane") == 2
    root = folder(WNIDS)
    done = run(model(1000, names=names), root, tmp_path)
    labels = dict(zip(WNIDS, PRESENT, strict=True))
    check(done, "net", "folder/mine", by_hand(root, network(1000), labels), imagenet().display)


def test_a_name_of_two_outputs_is_said_with_their_numbers() -> None:
    with pytest.raises(DataError, match=r"two classes have the name 'crane', the outputs 1 and 3 \(from 0\)"):
        model(4, names=["goose", "crane", "jeep", "crane"])


def test_as_many_classes_as_outputs_go_by_their_order_unless_the_model_says_its_names(
    folder: Callable[..., Path], tmp_path: Path
) -> None:
    root = folder(("d", "b", "c", "a", "e"))
    labels = {name: index for index, name in enumerate("abcde")}
    done = run(model(5, "plain"), root, tmp_path)
    assert len(done) == 1
    check(done, "plain", "folder/mine", by_hand(root, network(5), labels), lambda label: "abcde"[label])
    assert not any(line.startswith("Classes:") for line in done.preprocessing)
    spelled = run(model(5, "spelled", names=["E", "D", "C", "B", "A"]), root, tmp_path)
    labels = {name: 4 - index for index, name in enumerate("abcde")}
    check(spelled, "spelled", "folder/mine", by_hand(root, network(5), labels), lambda label: "EDCBA"[label])


def test_outputs_of_which_nothing_is_known_are_refused(folder: Callable[..., Path], tmp_path: Path) -> None:
    root = folder(("ship", "cat"))
    done = run(model(10), root, tmp_path, raise_on_failure=False)
    (outcome,) = done.outcomes
    assert outcome.status == "unsupported"
    for word in ("has 2 classes; net returns 10 logits", "--class-order FILE", "dual encoder"):
        assert word in outcome.reason
    silent = run(model(10, "silent", num_classes=None), root, tmp_path, raise_on_failure=False)
    (outcome,) = silent.outcomes
    assert outcome.status == "failed"
    assert "num_classes=10" in outcome.reason


def test_a_plain_data_set_is_read_in_the_same_way(folder: Callable[..., Path], tmp_path: Path) -> None:
    root = folder(WNIDS)
    setting = EvalSetting("plain-folder", StandardDataset(path=root), size=None)
    done = run(model(1000), setting, tmp_path)
    labels = dict(zip(WNIDS, PRESENT, strict=True))
    check(done, "net", "plain-folder", by_hand(root, network(1000), labels), imagenet().display)


def test_models_of_different_classes_are_compared_on_one_folder(folder: Callable[..., Path], tmp_path: Path) -> None:
    root = folder(WNIDS)
    tuned, whole = model(4, "tuned"), model(1000, "whole")
    run([tuned, whole], root, tmp_path)
    from testbed.db.store import Store
    from testbed.extensions.analyses.confusions import confused_classes
    from testbed.stored_results.mistakes import hardest

    with Store.open(str(tmp_path / "t.db")) as store:
        pairs = confused_classes(store, "folder/mine", [], True, 100)
        hard = hardest(store, "folder/mine", [], "top1", 3)
    shown = [imagenet().display(each) for each in PRESENT]
    counted: dict[tuple[str, str, str], int] = {}
    for name, net, labels, named in (
        ("tuned", network(4), dict(zip(WNIDS, range(4), strict=True)), lambda label: shown[label]),
        ("whole", network(1000), dict(zip(WNIDS, PRESENT, strict=True)), imagenet().display),
    ):
        for sample, label in by_hand(root, net, labels)["predicted"].items():
            true = shown[WNIDS.index(sample.partition("/")[0])]
            if true != named(label):
                key = (name, true, named(label))
                counted[key] = counted.get(key, 0) + 1
    assert {(str(each.model), each.true_name, each.predicted_name): each.count for each in pairs} == counted
    assert {str(each.target_name) for each in hard} <= set(shown)


def test_an_ensemble_sees_its_members_outputs_of_the_same_classes(folder: Callable[..., Path], tmp_path: Path) -> None:
    root = folder(WNIDS)
    one = Model("one", TRANSFORM, lambda: network(1000, 1), eval_batch_size=4, num_classes=1000)
    two = Model("two", TRANSFORM, lambda: network(1000, 2), eval_batch_size=4, num_classes=1000)
    labels = dict(zip(WNIDS, PRESENT, strict=True))
    run([one, two], root, tmp_path)

    class Both(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            both = [network(1000, seed)(images).softmax(1) for seed in (1, 2)]
            return torch.stack(both).mean(0).log()

    done = run("ensemble:one+two", root, tmp_path)
    check(done, "ensemble:one+two", "folder/mine", by_hand(root, Both(), labels), imagenet().display)
    tuned = model(4, "tuned")
    mixed = run([tuned, "ensemble:one+tuned"], root, tmp_path, raise_on_failure=False)
    reasons = {each.model: each.reason for each in mixed.outcomes if each.status == "unsupported"}
    assert "folder/mine.among-present" in reasons["ensemble:one+tuned"]

    class Mixed(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            first = network(1000, 1)(images)[:, list(PRESENT)].softmax(1)
            return torch.stack([first, network(4)(images).softmax(1)]).mean(0).log()

    done = run(["one", tuned, "ensemble:one+tuned"], "folder/mine.among-present", tmp_path, data_root=tmp_path)
    expected = by_hand(root, Mixed(), {wnid: place for place, wnid in enumerate(WNIDS)}, range(4))
    frame = done.frame[done.frame["model"] == "ensemble:one+tuned"]
    values = dict(zip(frame["metric"], frame["value"], strict=True))
    assert values["nll"] == pytest.approx(expected["nll"], rel=1e-4)


def test_scores_can_be_computed_again_and_the_store_is_sound(folder: Callable[..., Path], tmp_path: Path) -> None:
    from testbed.db.store import Store
    from testbed.scoring.deep_check import deep_faults

    folder(WNIDS)
    names = ["folder/mine", "folder/mine.among-present"]
    run(model(1000), names, tmp_path, data_root=tmp_path)
    with Store.open(str(tmp_path / "t.db")) as store:
        assert list(deep_faults(store, registry, lambda *_: None)) == []
        views = [store.evaluations.identity(each)["view"] for each in store.evaluations.find()]
    read = sorted((view["read_as"]["outputs"], view["read_as"]["among"]) for view in views)
    assert read == [("ImageNet-1k", "all"), ("ImageNet-1k", "present")]
    again = run("net", names, tmp_path, data_root=tmp_path)
    assert {each.status for each in again.outcomes} == {"stored"}


# Data sets of ImageNet's classes ------------------------------------------------------------------------------------


def images(root: Path, names: Sequence[str], each: int = EACH) -> None:
    for place, name in enumerate(names):
        (root / name).mkdir(parents=True)
        for number in range(each):
            pixels = np.random.default_rng([place, number]).integers(
                0, 60 + 40 * (place % 5), (9, 11, 3), dtype=np.uint8
            )
            Image.fromarray(pixels).save(root / name / f"{number}.png")


@pytest.mark.parametrize(
    "names", [WNIDS, [str(each) for each in PRESENT], imagenet().ids], ids=["WordNet ids", "numbers", "few images"]
)
def test_a_part_of_val_is_evaluated_under_a_name_of_its_own(names: Sequence[str], tmp_path: Path) -> None:
    images(tmp_path / "val", names, each=1)
    net = model(1000)
    settings = ["val", "imagenet1k", "imagenet1k-unverified", "val+imagenet-c.contrast.3"]
    done = run(net, settings, tmp_path, data_root=tmp_path)
    parts = ["val.part", "imagenet1k.part", "imagenet1k-unverified.part", "val.part+imagenet-c.contrast.3"]
    assert [each.setting for each in done.outcomes] == parts
    assert not [each for each in done.outcomes if each.status not in ("complete", "derived")]
    whole = imagenet()
    labels = {name: whole.candidates(name)[0] for name in names}
    top1 = by_hand(tmp_path / "val", network(1000), labels)
    frame = done.frame[(done.frame["slice"] == "overall") & (done.frame["eval_setting"] == "val.part")]
    values = dict(zip(frame["metric"], frame["value"], strict=True))
    assert values["nll"] == pytest.approx(top1["nll"], rel=1e-4)
    assert values["top5"] == pytest.approx(top1["top5"])
    said = next(line for line in done.preprocessing if line.startswith("Part: val.part "))
    assert f"{len(names):,} of the 50,000 samples of val, of {len(names):,} of its 1,000 classes" in said
    assert "not compared with published values" in said
    assert set(testbed.results(db=tmp_path / "t.db").frame["eval_setting"]) == set(parts)


def test_a_part_is_neither_the_whole_nor_anything_else(tmp_path: Path) -> None:
    images(tmp_path / "val", [*WNIDS, "unicorn"], each=1)
    done = run(model(1000), ["val", "val.part"], tmp_path, data_root=tmp_path, raise_on_failure=False)
    assert {each.status for each in done.outcomes} == {"failed"}
    assert all("unicorn" in each.reason for each in done.outcomes)
    with pytest.raises(DefinitionError, match="has no part by that name"):
        registry.get_eval_setting("digits.part")


def test_imagenette_is_a_name_for_networks_of_all_classes_and_of_its_own(tmp_path: Path) -> None:
    from testbed.eval_settings.imagenet_subsets import IMAGENETTE

    wnids = IMAGENETTE.split()
    images(tmp_path / "imagenette2-320" / "val", wnids, each=1)
    settings = ["imagenette", "imagenette.among-present"]
    ten, whole = model(10, "ten"), model(1000, "whole")
    done = run([ten, whole], settings, tmp_path, data_root=tmp_path)
    assert {each.setting for each in done.outcomes} == {"imagenette.part", "imagenette.part.among-present"}
    root = tmp_path / "imagenette2-320" / "val"
    places = {wnid: place for place, wnid in enumerate(sorted(wnids))}
    labels = {wnid: imagenet().candidates(wnid)[0] for wnid in wnids}
    frame = done.frame[(done.frame["slice"] == "overall") & (done.frame["metric"] == "nll")]
    nll = frame.set_index(["model", "eval_setting"])["value"]
    of_ten = by_hand(root, network(10), places)["nll"]
    assert nll["ten", "imagenette.part"] == pytest.approx(of_ten, rel=1e-4)
    assert nll["ten", "imagenette.part.among-present"] == pytest.approx(of_ten, rel=1e-4)
    assert nll["whole", "imagenette.part"] == pytest.approx(by_hand(root, network(1000), labels)["nll"], rel=1e-4)
    among = by_hand(root, network(1000), labels, list(labels.values()))["nll"]
    assert nll["whole", "imagenette.part.among-present"] == pytest.approx(among, rel=1e-4)


def test_imagenet_100_has_the_classes_of_its_folder(tmp_path: Path) -> None:
    wnids = imagenet().ids[5:900:9][:100]
    images(tmp_path / "imagenet100" / "val", wnids, each=1)
    done = run(model(1000), "imagenet-100", tmp_path, data_root=tmp_path)
    labels = {wnid: imagenet().candidates(wnid)[0] for wnid in wnids}
    expected = by_hand(tmp_path / "imagenet100" / "val", network(1000), labels)
    check(done, "net", "imagenet-100", expected, imagenet().display)
    (tmp_path / "imagenet100" / "val" / "extra").mkdir()
    done = run("net", "imagenet-100", tmp_path, data_root=tmp_path, raise_on_failure=False)
    assert "101 were found, one of them extra" in done.outcomes[0].reason


@pytest.mark.parametrize("split", ["val", "validation", "test"])
def test_the_split_of_a_folder_that_is_evaluated(split: str, tmp_path: Path) -> None:
    images(tmp_path / "photos" / "train", WNIDS[1:], each=2)
    images(tmp_path / "photos" / split, WNIDS, each=1)
    done = run(model(1000), tmp_path / "photos", tmp_path)
    labels = dict(zip(WNIDS, PRESENT, strict=True))
    check(done, "net", "folder/photos", by_hand(tmp_path / "photos" / split, network(1000), labels), imagenet().display)


def test_labels_without_names_are_numbers_of_outputs_and_the_run_says_so(tmp_path: Path) -> None:
    from testbed.data.formats.image_lists import ListedImages

    images(tmp_path / "flat", WNIDS, each=1)

    class Listed:
        def spec(self) -> dict[str, Any]:
            return {"list": "labels.csv"}

        def open(self) -> ListedImages:
            files = [f"{wnid}/0.png" for wnid in WNIDS]
            return ListedImages(tmp_path / "flat", "listed", files, list(PRESENT), None)

    done = run(model(1000), EvalSetting("listed", Listed(), size=4), tmp_path)
    labels = dict(zip(WNIDS, PRESENT, strict=True))
    expected = by_hand(tmp_path / "flat", network(1000), labels)
    check(done, "net", "listed", expected, str)
    said = next(line for line in done.preprocessing if line.startswith("Classes: listed"))
    assert "output numbers" in said
    assert "22 = bald eagle" in said


@pytest.mark.parametrize("labels", [WNIDS, ("bald_eagle", "Goose", "dung beetle", "jeep"), PRESENT])
def test_a_table_with_some_of_the_classes(labels: Sequence[Any], tmp_path: Path) -> None:
    images(tmp_path / "flat", WNIDS, each=2)
    label_of = dict(zip(WNIDS, labels, strict=True))
    rows = [f"flat/{file.parent.name}/{file.name},{label_of[file.parent.name]}" for file in tmp_path.glob("flat/*/*")]
    (tmp_path / "labels.csv").write_text("\n".join(["path,label", *sorted(rows)]) + "\n")
    done = run(model(1000), tmp_path / "labels.csv", tmp_path)
    expected = by_hand(tmp_path / "flat", network(1000), dict(zip(WNIDS, PRESENT, strict=True)))
    frame = done.frame[done.frame["slice"] == "overall"]
    values = dict(zip(frame["metric"], frame["value"], strict=True))
    assert values["nll"] == pytest.approx(expected["nll"], rel=1e-4)
    said = next(line for line in done.preprocessing if line.startswith("Classes: file/labels.csv"))
    assert "the 1,000 classes of ImageNet-1k (assumed from their number)" in said

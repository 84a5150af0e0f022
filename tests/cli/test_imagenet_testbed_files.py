"""Definition files in the form of ImageNet-testbed's own, in folders as its repository has them, used as plug-ins."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from warm_python import WarmPython

# A model as its files define them: parameters in a table, weights from its server, a helper package, another file.
NETS = """
from torchvision import transforms

from registry import registry
from models.model_base import Model, StandardTransform, StandardNormalization
from mldb.utils import load_model_state_dict
from models import parts
from eval_settings.darkness import darken


model_params = {'tiny/one': {'width': 4, 'size': 16}, 'tiny/two': {'width': 6, 'size': 16}}


def gen_classifier_loader(name, d):
    def classifier_loader():
        from models.parts import body, heads  # noqa: within the loader
        import beside
        model = body.Tiny(d['width'], heads.CLASSES)
        load_model_state_dict(model, name)
        model.scale = beside.SCALE
        return model
    return classifier_loader


def classify(images, model, adversarial_attack):
    if adversarial_attack:
        images = darken(images)
    return model(images)


for name, d in model_params.items():
    registry.add_model(
        Model(
            name = name,
            transform = StandardTransform(d['size'], d['size']),
            normalization = StandardNormalization([0.5] * 3, [0.25] * 3),
            classifier_loader = gen_classifier_loader(name, d),
            eval_batch_size = 5,
            classify = classify if name == 'tiny/two' else None,
        )
    )
"""
BODY = """
import torch
from . import heads


class Tiny(torch.nn.Module):
    scale = 1

    def __init__(self, width, classes):
        super().__init__()
        assert classes == heads.CLASSES
        self.first = torch.nn.Conv2d(3, width, 4, 4)
        self.last = torch.nn.Linear(width, classes)

    def forward(self, x):
        return self.scale * self.last(self.first(x).relu().mean(dim=(2, 3)))
"""
REPEATED = [5, 3, 3, 8, 1, 5, 5, 9]
DARKNESS = (
    f"""REPEATED = {REPEATED}
"""
    + """
import numpy as np

from registry import registry
from eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk
from eval_settings.image_utils import *
from eval_settings.image_utils import corruption_dict
from eval_settings.eval_setting_subsample import idx_subsample_list_50k_10percent, class_sublist_1_8


def darken(images):
    return images / 2


def corrupt_greyscale(image):
    from eval_settings.image_utils import greyscale  # noqa: in the data workers
    return greyscale(image)


def gen_corrupt_batch_gpu(corruption, severity):
    def corrupt_batch_gpu(images, model):
        for i in range(images.size(0)):
            images[i] = corruption_dict[corruption](images[i], severity, gpu=True)
        return images
    return corrupt_batch_gpu


assert len(idx_subsample_list_50k_10percent) == 5000 and len(class_sublist_1_8) == 125


def with_paths(logits, targets, image_paths, py_model):
    first = [path.split('/')[0] for path in image_paths]
    return {'top1': accuracy_topk(logits, targets)['top1'], 'cats': first.count('cat'), 'merge_op': 'max'}


for name, options in {
    'greyscale': {'perturbation_fn_cpu': corrupt_greyscale},
    'noise': {'perturbation_fn_gpu': gen_corrupt_batch_gpu('gaussian_noise', 2)},
    'tenth': {'idx_subsample_list': REPEATED},
    'paths': {'metrics_fn': with_paths},
}.items():
    registry.add_eval_setting(
        EvalSetting(name=name, dataset=StandardDataset(name='val'), size=12, **options)
    )
"""
)
FILES = {
    "src/models/tiny.py": NETS,
    "src/models/model_base.py": "raise ImportError('testbed has its own')",
    "src/models/parts/__init__.py": "",
    "src/models/parts/body.py": BODY,
    "src/models/parts/heads.py": "from models.model_base import Model\nCLASSES = 3\n",
    "src/models/beside.py": "SCALE = 2\n",
    "src/mldb/utils.py": "raise ImportError('this one downloads a database')",
    "src/eval_settings/darkness.py": DARKNESS,
}

Program = Callable[..., Any]


@pytest.fixture
def checkout(tmp_path: Path, make_tree: Callable[..., Path]) -> Path:
    """The folder of a checkout, with data and with the checkpoints of both models beside it."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    make_tree(tmp_path / "data" / "val")
    for name, width in {"one": 4, "two": 6}.items():
        torch.manual_seed(width)
        layers = {"first": torch.nn.Conv2d(3, width, 4, 4), "last": torch.nn.Linear(width, 3)}
        state = {f"{layer}.{key}": value for layer in layers for key, value in layers[layer].state_dict().items()}
        (tmp_path / "weights" / "tiny").mkdir(parents=True, exist_ok=True)
        torch.save({"state_dict": state}, tmp_path / "weights" / "tiny" / f"{name}.pth.tar")
    return tmp_path


def words(checkout: Path, *settings: str, models: tuple[str, ...] = ("tiny/one", "tiny/two")) -> list[str]:
    plugins = [str(checkout / "src" / each) for each in ("models/tiny.py", "eval_settings/darkness.py")]
    folders = ["--data-root", str(checkout / "data"), "--checkpoints", str(checkout / "weights")]
    return ["--plugin", *plugins, "--models", *models, "--eval-settings", *settings, *folders]


INLINE = ("--executor", "inline")


def saved(checkout: Path, setting: str, name: str) -> Any:
    """The stored logits, as ``db.py --save-logits`` wrote them."""
    (path,) = (checkout / "out").glob(f"{setting}__{name.replace('/', '_')}-*.npz")
    return np.load(path)["logits"]


def expected(checkout: Path, name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The logits by torch and torchvision alone."""
    from torchvision import datasets, transforms

    state = torch.load(checkout / "weights" / f"{name}.pth.tar", weights_only=True)["state_dict"]
    shrink = transforms.Compose([transforms.Resize(16), transforms.CenterCrop(16), transforms.ToTensor()])
    images = torch.stack([image for image, _ in datasets.ImageFolder(str(checkout / "data" / "val"), shrink)])
    inputs = (change(images) - 0.5) / 0.25
    hidden = torch.nn.functional.conv2d(inputs, state["first.weight"], state["first.bias"], 4).relu().mean(dim=(2, 3))
    return (2 * torch.nn.functional.linear(hidden, state["last.weight"], state["last.bias"])).numpy()


def test_files_of_a_checkout_run_unchanged(program: Program, checkout: Path) -> None:
    settings = ("greyscale", "noise", "tenth", "paths")
    done = program("eval.py", *words(checkout, *settings), "--workers", "1")
    assert "darkness.py replaces testbed's own eval setting greyscale" in done.stderr
    assert "tenth: idx_subsample_list has 8 positions, but size is 12; the list counts" in done.stderr
    assert "paths: metrics are numbers; not stored: merge_op='max'" in done.stderr
    for setting in ("greyscale", "tenth", "paths"):
        program("db.py", "--save-logits", setting, "out")
    grey = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
    for name in ("tiny/one", "tiny/two"):
        plain = expected(checkout, name, lambda images: images)
        without_colour = expected(
            checkout, name, lambda images: (images * grey).sum(1, keepdim=True).repeat(1, 3, 1, 1)
        )
        logits = {"greyscale": without_colour, "tenth": plain[REPEATED], "paths": plain}
        for setting, values in logits.items():
            np.testing.assert_allclose(saved(checkout, setting, name), values, rtol=1e-4, atol=1e-5)
    told = program("db.py", "--print-eval", "tiny/one", "paths", "--json").stdout
    metrics = {each["metric"]: each["value"] for each in json.loads(told)}
    assert metrics["cats"] == 4
    again = program("eval.py", *words(checkout, *settings), "--workers", "1")
    assert "All results were already stored; nothing was computed." in again.stdout


def test_a_repeated_sample_counts_as_often_and_is_computed_once(program: Program, checkout: Path) -> None:
    first = program("eval.py", *INLINE, *words(checkout, "tenth", models=("tiny/one",)))
    assert "5 of 5 images" in first.stderr
    assert "1 cell: 1 derived." in first.stdout
    program("db.py", "--save-logits", "tenth", "out")
    assert len(saved(checkout, "tenth", "tiny/one")) == 8
    told = program("db.py", "--print-eval", "tiny/one", "tenth", "--json").stdout
    assert {each["n"] for each in json.loads(told) if (each["metric"], each["slice"]) == ("top1", "overall")} == {8}
    assert program("testbed", "store", "check").stdout == "the store is sound\n"


@pytest.mark.parametrize(
    ("name", "line"),
    [("src/models/beside.py", "SCALE = 3\n"), ("src/models/parts/heads.py", "CLASSES = 2 + 1\n")],
    ids=["a file that the loader imports", "a file of a package"],
)
def test_a_change_beside_a_plug_in_is_noticed(program: Program, checkout: Path, name: str, line: str) -> None:
    program("eval.py", *INLINE, *words(checkout, "paths", models=("tiny/one",)))
    (checkout / name).write_text(line)
    again = program("eval.py", *INLINE, *words(checkout, "paths", models=("tiny/one",)))
    assert "1 stored" not in again.stdout or "Checked 1 stored evaluation" in again.stdout
    program("db.py", "--save-logits", "paths", "out")
    scale = 3 if "beside" in name else 2
    values = expected(checkout, "tiny/one", lambda images: images) * scale / 2
    np.testing.assert_allclose(saved(checkout, "paths", "tiny/one"), values, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_random_corruptions_do_not_depend_on_the_batch(program: Program, checkout: Path) -> None:
    for number, size in enumerate(("1", "12")):
        store = ("--db-url", f"{number}.db")
        program("eval.py", *INLINE, *words(checkout, "noise", models=("tiny/one",)), "--batch-size", size, *store)
        program("db.py", "--save-logits", "noise", f"out{number}", *store)
    one, other = (np.load(next((checkout / f"out{number}").glob("*.npz")))["logits"] for number in (0, 1))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


MISSING = {
    "a checkpoint": ("weights/tiny/one.pth.tar", None, "tiny/one: its checkpoint is"),
    "a neighbour": ("src/models/tiny.py", "from models.there import x\n", "none beside"),
    "a function of the server": (
        "src/models/tiny.py",
        "from mldb.utils import hide_evaluation\n",
        "testbed store remove evaluation",
    ),
    "a library": (
        "src/models/tiny.py",
        "import library_that_nobody_has\n",
        "No module named 'library_that_nobody_has'",
    ),
}


@pytest.mark.parametrize(("name", "content", "said"), MISSING.values(), ids=MISSING)
def test_what_is_missing_is_said_in_one_line(
    program: Program, checkout: Path, name: str, content: str | None, said: str
) -> None:
    if content is None:
        (checkout / name).unlink()
    else:
        (checkout / name).write_text(content)
    done = program("eval.py", *INLINE, *words(checkout, "paths", models=("tiny/one",)), code=1)
    told = [line for line in (done.stdout + done.stderr).splitlines() if said in line]
    assert len(told) == 1, done.stdout + done.stderr


SCRIPT = """
import sys
import torch
from testbed.inputs import Inputs, using
from testbed.registry import registry

folder, *plugins = sys.argv[1:]
with using(Inputs(data_root=f"{folder}/data", checkpoints=f"{folder}/weights")):
    registry.load_full_registry().load(plugins)
    assert registry.contains_model("tiny/one") and "tiny/two" in registry.models
    name, setting = next(iter(registry.eval_settings.items()))
    assert setting.name == name
    settings = registry.eval_settings
    py_model, py_eval_setting = registry.models["tiny/one"], settings["paths"]
    model = py_model.generate_classifier(py_eval_setting)
    images = torch.stack([torch.full((3, 16, 16), number / 11) for number in range(12)])
    logits = model(images)
    targets, paths = logits.argmax(dim=1), ["cat/0.png"] * 12
    print(py_eval_setting.get_metrics(logits, targets, paths, py_model))
    print(settings["tenth"].get_metrics(logits, targets, paths, py_model)["top1"])
    print(py_eval_setting.get_dataset_root(), settings["tenth"].get_idx_subsample_list(py_model))
    print(py_model.get_batch_size(py_eval_setting), settings["paths"].get_perturbation_fn_gpu(py_model))
"""


def test_old_scripts_find_the_methods_that_they_use(warm_python: WarmPython, checkout: Path) -> None:
    (checkout / "script.py").write_text(SCRIPT)
    plugins = [str(checkout / "src" / each) for each in ("models/tiny.py", "eval_settings/darkness.py")]
    done = warm_python.run(checkout / "script.py", [str(checkout), *plugins], checkout, dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "{'top1': 100.0, 'cats': 12, 'merge_op': 'max'}",
        "100.0",
        f"{checkout}/data/val {REPEATED}",
        "5 None",
    ]


def test_a_data_set_may_give_its_folder_as_text(program: Program, checkout: Path) -> None:
    with (checkout / "src" / "eval_settings" / "darkness.py").open("a") as file:
        file.write("class Mine(StandardDataset):\n    def get_root(self):\n        return 'data/val'\n\n\n")
        file.write("registry.add_eval_setting(EvalSetting('mine', Mine(name='mine'), 12))\n")
    done = program("eval.py", *INLINE, *words(checkout, "mine", models=("tiny/one",)))
    assert "1 complete" in done.stdout


def test_a_data_set_that_is_none_is_refused_with_what_it_needs(program: Program, checkout: Path) -> None:
    with (checkout / "src" / "eval_settings" / "darkness.py").open("a") as file:
        file.write("class Mine:\n    def get_root(self):\n        return 'data/val'\n\n\n")
        file.write("registry.add_eval_setting(EvalSetting('mine', Mine(), 12))\n")
    done = program("eval.py", *INLINE, *words(checkout, "mine"), code=1)
    assert "its dataset, of type Mine, has no spec() and no open(); derive the type from StandardDataset" in done.stderr

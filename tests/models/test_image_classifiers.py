"""Image classifiers of transformers: from folders, as objects, as pipelines; against transformers by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_models import NAMES, pictures, stored_logits
from PIL import Image

import testbed
from testbed.errors import TestbedError
from testbed.registry import registry

transformers: Any = pytest.importorskip("transformers", minversion="4.49")

LABELS = {"num_labels": 3, "id2label": dict(enumerate(NAMES)), "label2id": {name: i for i, name in enumerate(NAMES)}}
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
NETWORKS = {
    "vit": ("ViT", {**SMALL, "image_size": 32, "patch_size": 8}),
    "resnet": ("ResNet", {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}),
    "convnext": ("ConvNext", {"hidden_sizes": [8] * 4, "depths": [1] * 4}),
    "swin": (
        "Swin",
        {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [1], "num_heads": [1], "window_size": 4},
    ),
}
PROCESSORS = {
    "vit": ("ViTImageProcessor", {"size": {"height": 32, "width": 32}}),
    "resnet": ("ConvNextImageProcessor", {"size": {"shortest_edge": 32}, "crop_pct": 0.8}),
    "convnext": ("ConvNextImageProcessor", {"size": {"shortest_edge": 384}, "do_rescale": True}),
    "swin": (
        "ViTImageProcessor",
        {"size": {"height": 32, "width": 32}, "image_mean": [0.4] * 3, "image_std": [0.2] * 3},
    ),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("classifiers")
    pictures(root / "mine")
    for name, (kind, settings) in NETWORKS.items():
        torch.manual_seed(3)
        config = getattr(transformers, f"{kind}Config")(**settings, **LABELS)
        getattr(transformers, f"{kind}ForImageClassification")(config).eval().save_pretrained(root / name)
        processor, fields = PROCESSORS[name]
        getattr(transformers, processor)(**fields).save_pretrained(root / name)
    return root


def expected(folder: Path, files: list[Path]) -> torch.Tensor:
    net = transformers.AutoModelForImageClassification.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    with torch.no_grad():
        made = [net(**processor(images=Image.open(file), return_tensors="pt")).logits for file in files]
    return torch.cat(made)


@pytest.fixture
def evaluate(world: Path, tmp_path: Path) -> Any:
    def call(model: Any, **options: Any) -> Any:
        db = str(tmp_path / "testbed.db")
        found = testbed.evaluate(model, world / "mine", db=db, executor="inline", progress=False, **options)
        return found, stored_logits(found, db) if found.failed.empty else None

    return call


@pytest.mark.parametrize("name", NETWORKS)
def test_a_folder_and_an_object_give_the_logits_that_transformers_gives(evaluate, world, name):
    wanted = expected(world / name, sorted((world / "mine").glob("*/*.png")))
    net = transformers.AutoModelForImageClassification.from_pretrained(world / name)
    processor = transformers.AutoImageProcessor.from_pretrained(world / name)
    for model, options in (
        (str(world / name), {}),
        (f"transformers/{world / name}", {}),
        (net, {}),
        (net, {"transform": processor}),
    ):
        found, logits = evaluate(model, **options)
        assert np.allclose(logits, wanted, atol=1e-5), found.failed.reason.tolist()
        assert type(processor).__name__ in found.preprocessing[0]


def test_a_pipeline_gives_its_own_scores(evaluate, world):
    pipeline = transformers.pipeline("image-classification", model=str(world / "vit"))
    _, logits = evaluate(pipeline)
    assert np.allclose(logits, expected(world / "vit", sorted((world / "mine").glob("*/*.png"))), atol=1e-5)


def test_id2label_is_the_order_of_the_classes(evaluate, world, tmp_path):
    shutil.copytree(world / "vit", tmp_path / "turned")
    config = json.loads((tmp_path / "turned" / "config.json").read_text())
    config["id2label"] = {"0": "cat", "1": "ant", "2": "bee"}
    (tmp_path / "turned" / "config.json").write_text(json.dumps(config))
    plain, turned = evaluate(world / "vit")[0], evaluate(tmp_path / "turned")[0]
    said = [found.samples(found.frame.model.iloc[0], "folder/mine").prediction for found in (plain, turned)]
    assert [{"ant": "cat", "bee": "ant", "cat": "bee"}[each] for each in said[0]] == said[1].tolist()


def test_a_folder_of_another_kind_says_what_it_is(evaluate, world, tmp_path):
    shutil.copytree(world / "vit", tmp_path / "masked")
    config = json.loads((tmp_path / "masked" / "config.json").read_text())
    (tmp_path / "masked" / "config.json").write_text(
        json.dumps({**config, "architectures": ["ViTForMaskedImageModeling"]})
    )
    (reason,) = evaluate(f"transformers/{tmp_path / 'masked'}")[0].failed.reason
    assert "it is a ViTForMaskedImageModeling, by its config.json; image classifiers" in reason


def test_a_folder_without_an_image_processor_says_what_writes_it(evaluate, world, tmp_path):
    shutil.copytree(world / "vit", tmp_path / "bare")
    (tmp_path / "bare" / "preprocessor_config.json").unlink()
    (reason,) = evaluate(tmp_path / "bare")[0].failed.reason
    assert "processor.save_pretrained(FOLDER) writes it" in reason
    assert "\n" not in reason


def test_an_object_without_a_head_is_refused(evaluate):
    with pytest.raises(TestbedError, match="ViTModel is not an image classifier of transformers"):
        evaluate(transformers.ViTModel(transformers.ViTConfig(**SMALL, image_size=32, patch_size=8)))


def test_the_hubs_names_may_begin_with_hf():
    registry.load()
    assert registry.models.canonical("hf/google/vit-base-patch16-224") == "transformers/google/vit-base-patch16-224"

"""OpenOOD's lists as settings: which images they name, and that stored outputs tell them from ImageNet's."""

from __future__ import annotations

import pytest
from imagenet_world import PLUGIN, crop
from skimage import data as pictures

from testbed.api.evaluate import evaluate
from testbed.db.store import Store
from testbed.errors import DataError
from testbed.eval_settings.openood import BUILDERS
from testbed.extensions.analyses.unknown import detections
from testbed.inputs import Inputs, using
from testbed.registry import registry

NO_CLASS = ["ninco/amphiuma_means/000.png", "ninco/donut/001.png", "ninco/donut/002.png"]


@pytest.fixture
def root(tmp_path):
    lists, photos = tmp_path / "openood" / "benchmark_imglist" / "imagenet", [pictures.astronaut()]
    lists.mkdir(parents=True)
    known = [f"imagenet_1k/val/{number}.png" for number in range(12)]
    for number, name in enumerate([*NO_CLASS, *known]):
        path = tmp_path / "openood" / "images_largescale" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        crop(photos, number).save(path)
    (lists / "test_ninco.txt").write_text("".join(f"{name} -1\n" for name in NO_CLASS))
    (lists / "test_imagenet.txt").write_text("".join(f"{name} {number}\n" for number, name in enumerate(known)))
    return tmp_path


def opened(root, name):
    with using(Inputs.from_environment().but(data_root=str(root))):
        return registry.get_eval_setting(name).dataset.open()


def test_a_list_names_its_images_and_their_classes(root):
    source = opened(root, "openood.near.ninco")
    assert (source.ids, list(source.targets)) == (NO_CLASS, [-1, -1, -1])
    assert source.image(1).size == (40, 40)
    assert list(opened(root, "openood.in.test").targets) == list(range(12))


def test_every_list_of_version_1_5_is_a_setting():
    near, far = (sorted(name for name in BUILDERS if name.startswith(f"openood.{kind}.")) for kind in ("near", "far"))
    assert [name.rpartition(".")[2] for name in near] == ["ninco", "ssb_hard"]
    assert [name.rpartition(".")[2] for name in far] == ["inaturalist", "openimage_o", "textures"]


def test_what_is_missing_is_said(root):
    with pytest.raises(
        DataError, match=r"should hold benchmark_imglist/imagenet/test_textures.txt and images_classic/"
    ):
        opened(root, "openood.far.textures")
    path = root / "openood" / "benchmark_imglist" / "imagenet" / "test_ninco.txt"
    path.write_text("ninco/donut/001.png -1\n\nninco/donut/002.png none\n")
    with pytest.raises(DataError, match=r"line 3: expected a path and a class, got 'ninco/donut/002.png none'"):
        opened(root, "openood.near.ninco")
    path.write_text("../secret.png -1\n")
    with pytest.raises(DataError, match="leaves"):
        opened(root, "openood.near.ninco")


def test_the_lists_run_and_their_outputs_are_told_apart(root, tmp_path):
    plugin, db = tmp_path / "world.py", str(tmp_path / "results.db")
    plugin.write_text(PLUGIN[PLUGIN.index("from testbed.models") :])  # without the sizes of other settings
    settings = ["openood.in.test", "openood.near.ninco"]
    done = evaluate("little-net", settings, plugins=[plugin], data_root=root, db=db, executor="inline")
    (metric,) = done.frame[done.frame.eval_setting == "openood.near.ninco"].itertuples()
    assert metric.metric == "confidence"
    assert 0 < metric.value < 1
    with Store.open(db) as store:
        (row,) = detections(store, ["little-net"], "openood.in.test", {"near": ["openood.near.ninco"]}, ["msp"])
    assert (row.n_in, row.n_out) == (12, 3)
    assert 0 <= row.auroc.value <= 1

"""Reading batches: errors of single images, perturbations on the CPU with each sample's own random numbers, travel."""

from __future__ import annotations

import pickle
import random
from functools import partial
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from PIL import Image

from testbed.corruptions import Corruption
from testbed.corruptions.photometric import rotate
from testbed.data.reader import Batch, BatchReader, ByName, CpuPerturbation, Item, collate, portable
from testbed.data.sets.digits import Digits
from testbed.data.source import ImageSource
from testbed.errors import RunError, SampleError
from testbed.models.base.transform import StandardTransform


class Photos(ImageSource):
    """Random pictures, some of which cannot be read."""

    def __init__(self, count=8, bad=(), sizes=None):
        self.name = "photos"
        self.ids = [f"{index}.png" for index in range(count)]
        self.targets = [0] * count
        self.bad = set(bad)
        self.sizes = sizes or {}

    def image(self, position):
        if position in self.bad:
            raise SampleError(f"{self.ids[position]} cannot be decoded")
        size = self.sizes.get(position, 6)
        pixels = np.random.default_rng(position).integers(0, 256, (size, size, 3), dtype=np.uint8)
        return Image.fromarray(pixels)

    def digests(self, positions):
        return [""] * len(positions)


def to_tensor(image):
    return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float() / 255


def noise(image):
    """Draws from all three generators that are seeded."""
    image = image + random.random() + np.random.rand() + torch.rand(image.shape)
    return image + np.random.normal(size=1)[0]


def reader(source=None, perturbations=(), **options):
    source = source or Photos()
    arguments = {
        "positions": range(len(source)),
        "transform": to_tensor,
        "setting_transform": None,
        "plain": True,
        "seed": 0,
        **options,
    }
    return BatchReader(source, perturbations=list(perturbations), **arguments)


def read(made, indices, shard=0):
    return collate([made[shard, index] for index in indices])


def noisy(setting="fog", key=None, function=noise):
    return CpuPerturbation(setting, function, key or setting)


# Reading and collating --------------------------------------------------------------------------------------------


def test_a_batch_holds_transformed_images_in_order():
    batch = read(reader(), [3, 0, 5], shard=9)
    assert (batch.shard, batch.indices, batch.good) == (9, [3, 0, 5], [3, 0, 5])
    expected = torch.stack([to_tensor(Photos().image(index)) for index in (3, 0, 5)])
    torch.testing.assert_close(batch.images, expected, rtol=0, atol=0)
    assert (batch.perturbed, batch.errors, batch.faults) == ({}, {}, {})


def test_indices_are_places_among_the_positions():
    made = reader(perturbations=[noisy()], positions=[7, 2, 4])
    assert len(made) == 3
    batch = read(made, [1])
    torch.testing.assert_close(batch.images[0], to_tensor(Photos().image(2)))
    torch.testing.assert_close(batch.perturbed["fog"][0], single_results(noisy())[2], rtol=0, atol=0)


def test_an_image_that_cannot_be_read_leaves_the_others():
    batch = read(reader(Photos(bad=[1, 3]), [noisy()]), [0, 1, 2, 3])
    assert batch.indices == [0, 1, 2, 3]
    assert batch.good == [0, 2]
    assert batch.errors == {1: "1.png cannot be decoded", 3: "3.png cannot be decoded"}
    assert batch.images.shape == (2, 3, 6, 6)
    assert batch.perturbed["fog"].shape == (2, 3, 6, 6)
    torch.testing.assert_close(batch.images[1], to_tensor(Photos().image(2)))
    assert reader(Photos(bad=[4]))[3, 4] == Item(3, 4, error="4.png cannot be decoded")


def test_a_batch_without_a_readable_image_holds_none():
    batch = read(reader(Photos(bad=[0, 1]), [noisy()]), [0, 1])
    assert (batch.good, batch.images, batch.perturbed) == ([], None, {})
    assert sorted(batch.errors) == [0, 1]


def test_errors_that_are_no_sample_errors_are_not_swallowed():
    class Broken(Photos):
        def image(self, position):
            raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        read(reader(Broken()), [0])


@pytest.mark.parametrize(
    ("transform", "found"),
    [
        (lambda image: image, "Image"),
        (lambda image: np.zeros((3, 4, 4), dtype=np.float32), "ndarray"),
        (lambda image: torch.zeros(3, 4, 4, dtype=torch.uint8), "torch.uint8"),
        (lambda image: torch.zeros(1, 3, 4, 4), "(1, 3, 4, 4)"),
        (lambda image: torch.zeros(4, 4), "(4, 4)"),
        (lambda image: None, "NoneType"),
    ],
)
def test_a_transform_that_gives_no_image_tensor_is_refused(transform, found):
    with pytest.raises(RunError) as caught:
        read(reader(transform=transform), [0])
    assert "float tensor [3, H, W] in [0, 1]" in str(caught.value)
    assert found in str(caught.value)


def test_images_of_different_sizes_are_refused():
    made = reader(Photos(sizes={1: 9}))
    with pytest.raises(RunError, match=r"different sizes \(\(3, 6, 6\), \(3, 9, 9\)\)"):
        read(made, [0, 1])
    assert read(made, [1]).images.shape == (1, 3, 9, 9)
    perturbed = reader(Photos(sizes={1: 9}), [noisy()], plain=False)
    with pytest.raises(RunError, match="different sizes"):
        read(perturbed, [0, 1])
    assert read(perturbed, [0]).images is None  # plain ones are kept only where they are wanted


def test_the_transform_of_the_setting_comes_before_that_of_the_model():
    seen = []

    def of_setting(image):
        seen.append(image.size)
        return image.resize((4, 4))

    def of_model(image):
        seen.append(image.size)
        return to_tensor(image)

    batch = read(reader(setting_transform=of_setting, transform=of_model), [0])
    assert seen == [(6, 6), (4, 4)]
    assert batch.images.shape == (1, 3, 4, 4)


# Perturbations ----------------------------------------------------------------------------------------------------


def single_results(perturbation, count=8, seed=0):
    made = reader(perturbations=[perturbation], seed=seed)
    return [read(made, [index]).perturbed[perturbation.setting][0] for index in range(count)]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5, 6, 7], [7, 5, 3, 1, 6, 4, 2, 0], [3, 3, 0]])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_perturbed_image_does_not_depend_on_order_or_batch(order, size):
    expected = single_results(noisy())
    made = reader(perturbations=[noisy("other"), noisy(), noisy("third")])
    for start in range(0, len(order), size):
        part = order[start : start + size]
        got = read(made, part).perturbed["fog"]
        torch.testing.assert_close(got, torch.stack([expected[index] for index in part]), rtol=0, atol=0)


def test_a_perturbed_image_does_not_depend_on_what_was_drawn_before():
    expected = single_results(noisy())
    random.seed(99)
    np.random.seed(99)
    torch.manual_seed(99)
    torch.rand(5)
    for got, wanted in zip(single_results(noisy()), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def test_samples_settings_and_seeds_get_different_random_numbers():
    def constant(image):
        return torch.zeros_like(image) + torch.rand(1) + random.random() + np.random.rand()

    results = [single_results(noisy(function=constant))]
    results.append(single_results(noisy("rain", function=constant)))
    results.append(single_results(noisy(function=constant), seed=1))
    values = [float(image[0, 0, 0]) for images in results for image in images]
    assert len(set(values)) == 3 * 8


def test_a_child_gets_the_random_numbers_of_its_parent():
    parent, child = single_results(noisy("fog")), single_results(noisy("fog_10percent", key="fog"))
    for one, other in zip(parent, child, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_perturbed_image_does_not_depend_on_the_process(workers):
    expected = single_results(noisy())
    loader = torch.utils.data.DataLoader(
        reader(perturbations=[noisy()]),
        batch_sampler=[[(0, 5), (0, 1)], [(0, 0)], [(0, 7), (0, 6), (0, 2)]],
        num_workers=workers,
        collate_fn=collate,
        multiprocessing_context="fork",
    )
    seen = []
    for batch in loader:
        seen += batch.good
        wanted = torch.stack([expected[index] for index in batch.good])
        torch.testing.assert_close(batch.perturbed["fog"], wanted, rtol=0, atol=0)
    assert seen == [5, 1, 0, 7, 6, 2]


def test_a_perturbation_cannot_change_what_others_see():
    def spoil(image):
        image.zero_()
        return image

    made = reader(perturbations=[noisy("spoilt", function=spoil), noisy("kept", function=lambda image: image)])
    batch = read(made, [0, 1])
    expected = torch.stack([to_tensor(Photos().image(index)) for index in (0, 1)])
    torch.testing.assert_close(batch.images, expected, rtol=0, atol=0)
    torch.testing.assert_close(batch.perturbed["kept"], expected, rtol=0, atol=0)
    assert not batch.perturbed["spoilt"].any()


def test_results_may_be_arrays_or_other_floats_and_become_float32():
    for function in (lambda image: image.numpy() * 0.5, lambda image: image.double() * 0.5):
        batch = read(reader(perturbations=[noisy(function=function)]), [0, 1])
        assert batch.perturbed["fog"].dtype == torch.float32
        torch.testing.assert_close(batch.perturbed["fog"], batch.images * 0.5)


def fails(image):
    raise ValueError("no fog today")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (fails, ["perturbation_fn_cpu failed", "ValueError", "no fog today"]),
        (lambda image: image[:, :3], ["perturbation_fn_cpu failed", "(3, 3, 6)", "(3, 6, 6)"]),
        (lambda image: None, ["perturbation_fn_cpu failed"]),
        (lambda image: "text", ["perturbation_fn_cpu failed"]),
        (lambda: None, ["perturbation_fn_cpu failed", "TypeError"]),
    ],
)
def test_a_fault_of_a_perturbation_hits_its_setting_alone(function, words):
    made = reader(perturbations=[noisy("rain"), noisy("fog", function=function), noisy("snow")])
    batch = read(made, [0, 1])
    assert list(batch.faults) == ["fog"]
    for word in words:
        assert word in batch.faults["fog"]
    assert set(batch.perturbed) == {"rain", "snow"}
    assert batch.good == [0, 1]
    assert batch.images.shape == (2, 3, 6, 6)
    expected = single_results(noisy("snow"), 2)
    torch.testing.assert_close(batch.perturbed["snow"], torch.stack(expected), rtol=0, atol=0)


@pytest.mark.parametrize("failing", [0, 2])
def test_a_fault_in_one_image_is_one_of_the_batch(failing):
    made = reader(Photos(bad=[1]), perturbations=[noisy("fog", function=self_destructing(failing)), noisy("rain")])
    batch = read(made, [0, 1, 2])
    assert list(batch.faults) == ["fog"]
    assert set(batch.perturbed) == {"rain"}
    assert batch.errors == {1: "1.png cannot be decoded"}
    assert read(made, [3]).faults == {}


def self_destructing(failing):
    target = to_tensor(Photos().image(failing))

    def function(image):
        if torch.equal(image, target):
            raise KeyError("this one")
        return image

    return function


# Travelling -------------------------------------------------------------------------------------------------------

NAME = ByName("setting", "fog", "perturbation_fn_cpu", ("/plugin.py",))


@pytest.mark.parametrize("value", [noise, partial(rotate, degrees=3), Corruption("contrast", 2), print])
def test_what_can_travel_stays(value):
    assert portable(value, NAME) is value


def test_a_transform_travels_even_after_it_was_used():
    transform = StandardTransform(8, 6)
    image = Photos().image(0)
    before = transform(image)
    assert portable(transform, NAME) is transform
    copy = pickle.loads(ForkingPickler.dumps(transform))
    assert copy.spec() == transform.spec()
    torch.testing.assert_close(copy(image), before, rtol=0, atol=0)


def test_what_cannot_travel_is_named():
    class Local:
        def __call__(self, image):
            return image

    assert portable(lambda image: image, NAME) is NAME
    assert portable(Local(), NAME) is NAME
    assert portable(partial(lambda image: image), NAME) is NAME
    assert portable(None, NAME) is None


def test_a_name_is_looked_up_in_the_registry():
    setting = ByName("setting", "digits-c.contrast.3", "perturbation_fn_gpu", ())
    assert setting.resolve().spec() == {"name": "contrast", "severity": 3}
    assert ByName("model", "digits-cnn", "transform", ()).resolve().img_crop_size == 32


def test_a_reader_pickles_and_reads_the_same():
    halved = CpuPerturbation("fog", partial(torch.mul, other=0.5), "fog")
    made = BatchReader(Digits("test"), [5, 3], StandardTransform(32, 32), None, [halved], True, 0)
    copy = pickle.loads(ForkingPickler.dumps(made))
    one, other = read(made, [0, 1]), read(copy, [0, 1])
    assert isinstance(other, Batch)
    torch.testing.assert_close(one.images, other.images, rtol=0, atol=0)
    torch.testing.assert_close(one.perturbed["fog"], other.perturbed["fog"], rtol=0, atol=0)


PLUGIN = """
import torch
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.eval_settings.digits import DigitsDataset
from testbed.models.model_base import Model
from testbed.models.base.transform import StandardTransform
from testbed.registry import registry

registry.add_eval_setting(
    EvalSetting(
        name="travelling-setting",
        dataset=DigitsDataset("test"),
        size=540,
        perturbation_fn_cpu=lambda image: image + torch.rand(image.shape),
        transform=lambda image: image.transpose(0),
    )
)
inner = StandardTransform(32, 32)
registry.add_model(
    Model(
        name="travelling-model",
        transform=lambda image: inner(image) / 2,
        classifier_loader=lambda: None,
        eval_batch_size=1,
    )
)
"""


@pytest.mark.long
def test_lambdas_of_a_plugin_are_found_again_in_a_spawned_process(tmp_path):
    plugin = tmp_path / "travelling.py"
    plugin.write_text(PLUGIN)
    plugins = (str(plugin),)
    source = Digits("test")
    by_name = BatchReader(
        source,
        list(range(4)),
        ByName("model", "travelling-model", "transform", plugins),
        ByName("setting", "travelling-setting", "transform", plugins),
        [
            CpuPerturbation(
                "travelling-setting", ByName("setting", "travelling-setting", "perturbation_fn_cpu", plugins), "key"
            )
        ],
        True,
        7,
    )
    loader = torch.utils.data.DataLoader(
        by_name, batch_sampler=[[(0, 2), (0, 1)]], num_workers=1, collate_fn=collate, multiprocessing_context="spawn"
    )
    (there,) = list(loader)
    inner = StandardTransform(32, 32)
    here = BatchReader(
        source,
        list(range(4)),
        lambda image: inner(image) / 2,
        lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        [CpuPerturbation("travelling-setting", lambda image: image + torch.rand(image.shape), "key")],
        True,
        7,
    )
    expected = read(here, [2, 1])
    torch.testing.assert_close(there.images, expected.images, rtol=0, atol=0)
    torch.testing.assert_close(
        there.perturbed["travelling-setting"], expected.perturbed["travelling-setting"], rtol=0, atol=0
    )

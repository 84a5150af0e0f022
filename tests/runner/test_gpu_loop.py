"""What a worker does between two batches on a GPU: nothing that waits for it without need, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from fake_gpu import fake_gpu
from toy import toy_catalog, toy_model, toy_setting

from testbed.corruptions import Corruption, corruptions
from testbed.devices import Download
from testbed.graph.passes import Shard
from testbed.models.base.definition import LoadOptions
from testbed.models.base.runtime import ImageClassifier, ZeroShotClassifier
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.process.oom import DeviceError

# Poisson numbers of small rates, the edges of drops and chains of copies are followed until none is left; JPEGs are
# made by the CPU.
WAIT = {
    "shot_noise": "aten.nonzero",
    "spatter": "aten.equal",
    "glass_blur": "aten.equal",
    "jpeg_compression": "copy from cuda to cpu",
}


@pytest.mark.parametrize("name", sorted(set(corruptions()) - {"frost"}))
def test_corruptions_do_not_wait_for_the_gpu(name):
    with fake_gpu() as waits:
        images = torch.empty(4, 3, 224, 224, device="cuda")
        if name not in WAIT:
            assert Corruption(name, 3)(images, [1, 2, 3, 4]).device.type == "cuda"
            assert waits.found == []
            return
        # A fake tensor has no values to look at: it says so where the corruption waits for them.
        with pytest.raises((RuntimeError, torch._subclasses.fake_tensor.DataDependentOutputException)):
            Corruption(name, 3)(images, [1, 2, 3, 4])
    assert len(waits.found) == 1
    assert waits.found[0].startswith(WAIT[name])


@pytest.mark.parametrize("columns", [None, [2, 0, 1, 3]])
def test_a_classifier_does_not_wait_for_the_gpu(columns):
    definition = Model(
        "any",
        StandardTransform(8, 8),
        lambda: None,
        4,
        normalization=StandardNormalization([0.5] * 3, [0.25] * 3, input_space="BGR"),
    )
    with fake_gpu() as waits:
        network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4, device="cuda"))
        waits.found.clear()
        classifier = ImageClassifier(definition, network, LoadOptions("cuda"), [0, 2], columns=columns)
        with torch.no_grad():
            logits = classifier(torch.empty(5, 3, 8, 8, device="cuda"))
    assert waits.found == []
    assert (logits.shape, logits.device.type) == ((5, 2), "cuda")


def test_zero_shot_logits_do_not_wait_for_the_gpu():
    with fake_gpu() as waits:
        head = torch.empty(16, 6, device="cuda")
        logits = ZeroShotClassifier(None, head, [5, 1]).from_embeddings(torch.empty(3, 16, device="cuda"))  # type: ignore[arg-type]
    assert waits.found == []
    assert (logits.shape, logits.device.type) == ((3, 2), "cuda")


class Slow:
    """A device that is slower than Python: in what order batches go through networks and outputs are fetched.

    Attributes:
        events: "launch" and "fetch".
        fails_at: The fetch at which the device fails; None for never.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.fails_at: int | None = None


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """Has the worker take the CPU for a device that computes while Python goes on."""
    found = Slow()

    class Fetched(Download):
        def __init__(self, values: torch.Tensor) -> None:
            super().__init__(values)
            found.events.append("launch")

        def wait(self) -> torch.Tensor:
            found.events.append("fetch")
            if found.events.count("fetch") == found.fails_at:
                raise RuntimeError("CUDA error: device-side assert triggered")
            return super().wait()

    monkeypatch.setattr("testbed.workers.kernels.images.Download", Fetched)
    monkeypatch.setattr("testbed.workers.kernels.images.runs_ahead", lambda device: True)
    return found


def darker(images: torch.Tensor) -> torch.Tensor:
    return images * 0.5


def logits_of(lab: Any, setting: str = "toy-all") -> Any:
    return lab.logits("toy", setting)


def test_outputs_are_fetched_while_the_next_batch_is_computed(lab, new_lab, slow):
    assert lab.run(toy_catalog(toy_model(), toy_setting()), batch_size=100).ok
    batches = slow.events.count("launch")
    assert batches >= 6
    assert slow.events == ["launch", "launch", *["fetch", "launch"] * (batches - 2), "fetch", "fetch"]
    other = new_lab("other")
    slow.events.clear()
    assert other.run(toy_catalog(toy_model(), toy_setting()), batch_size=600).ok
    np.testing.assert_allclose(logits_of(lab), logits_of(other), atol=1e-6)


def test_after_a_death_each_cell_is_fetched_before_the_next_one_is_begun(lab, slow, monkeypatch):
    monkeypatch.setattr(Shard, "careful", property(lambda shard: True, lambda shard, value: None), raising=False)
    settings = toy_setting("one"), toy_setting("two", perturbation_fn_gpu=darker)
    assert lab.run(toy_catalog(toy_model(), *settings), batch_size=100).ok
    launched = slow.events.count("launch")
    # Each cell's outputs are waited for at once, and taken at the end of the batch.
    assert slow.events[:6] == ["launch", "fetch", "launch", "fetch", "fetch", "fetch"]
    assert slow.events.count("fetch") == 2 * launched


def test_a_late_error_of_the_device_is_put_down_to_no_cell_before_it_is_known_to_which(lab, slow):
    slow.fails_at = 3
    settings = toy_setting("one"), toy_setting("two", perturbation_fn_gpu=darker)
    with pytest.raises(DeviceError, match="device-side assert"):
        lab.run(toy_catalog(toy_model(), *settings), batch_size=100)
    with lab.open() as store:
        assert {each.status for each in store.evaluations.find()} == {"running"}  # another worker goes on with both
    slow.fails_at = None
    assert lab.run(toy_catalog(toy_model(), *settings)).ok

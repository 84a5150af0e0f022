"""What the user's functions return: a breach of a contract is said before it gives plausible numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torchvision.transforms import functional
from toy import CLASSES, SIZE, ToyNetwork, toy_catalog, toy_model, toy_setting

from testbed.contracts import returned
from testbed.entities import REMARKS
from testbed.errors import RunError
from testbed.models.base.definition import LoadOptions
from testbed.models.model_base import DualEncoder, ImageEncoder, StandardTransform

COUNT = 100


@pytest.fixture
def said(lab):
    lines: list[str] = []

    class Kept(type(lab.progress)):
        def note(self, text: str) -> None:
            lines.append(text)

    lab.progress = Kept()
    return lines


def half(images):
    return images * 0.5


SETTINGS = {
    "plain": {},
    "on-cpu": {"perturbation_fn_cpu": half},
    "on-device": {"perturbation_fn_gpu": half},
    "attacked": {"perturbation_fn_gpu": lambda images, model: images, "adversarial_attack": {"name": "none"}},
}


def run(lab: Any, transform: Any = None, network: Any = None, settings: Any = None, **options: Any) -> dict[str, Any]:
    """Setting → outcome."""
    given = {} if transform is None else {"transform": transform}
    if network is not None:
        given["classifier_loader"] = lambda: network
    chosen = [toy_setting(name, COUNT, **each) for name, each in (settings or SETTINGS).items()]
    report = lab.run(toy_catalog(toy_model(**given, **options), *chosen))
    return {each.setting: each for each in report.outcomes}


def pixels(picture: Any) -> torch.Tensor:
    return functional.to_tensor(picture)


# Transforms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said_range", "how"),
    [
        (lambda image: (image - 0.5) / 0.25, "values from -2 to 2", "StandardNormalization(mean, std)"),
        (lambda image: image * 2 - 1, "values from -1 to 1", "StandardNormalization(mean, std)"),
        (lambda image: image * 255, "values from 0 to 255", "divide by 255"),
        (lambda image: image * 1.2 - 0.1, "values from -0.1 to 1.1", "clamp(0, 1)"),
        (lambda image: image / 0, "not numbers", "divides by 0"),
    ],
    ids=["normalized", "minus one to one", "0 to 255", "overshoot", "NaN"],
)
def test_what_is_outside_is_refused_where_it_is_perturbed_and_else_said(lab, said, change, said_range, how):
    found = run(lab, lambda picture: change(pixels(picture)))
    assert found["plain"].status == "complete"
    for name in ("on-cpu", "on-device", "attacked"):
        assert found[name].status == "failed"
        assert said_range in found[name].reason
        assert how in found[name].reason
    (line,) = [each for each in said if "its transform returns" in each]
    assert said_range in line


def test_what_is_within_is_not_said(lab, said):
    assert {each.status for each in run(lab, pixels).values()} == {"complete"}
    assert not any("transform returns" in line or "outputs" in line for line in said)


def test_other_floats_are_taken_as_float32(lab, new_lab):
    assert {each.status for each in run(lab, lambda picture: pixels(picture).double()).values()} == {"complete"}
    other = new_lab("other")
    run(other, pixels)
    np.testing.assert_array_equal(lab.logits("toy", "plain"), other.logits("toy", "plain"))


@pytest.mark.parametrize(
    ("made", "hint"),
    [
        (lambda picture: picture, "ToTensor()"),
        (lambda picture: np.asarray(picture), "torch.from_numpy"),
        (lambda picture: None, "no return statement"),
        (lambda picture: {"pixel_values": pixels(picture)}, "pixel_values"),
        (lambda picture: pixels(picture)[None], "([0])"),
        (lambda picture: pixels(picture).permute(1, 2, 0), "permute(2, 0, 1)"),
        (lambda picture: (pixels(picture) * 255).byte(), "divide by 255"),
        (lambda picture: pixels(picture)[:1], "RGB"),
        (lambda picture: pixels(picture)[0], "RGB"),
    ],
)
def test_other_results_of_a_transform_say_what_to_change(lab, made, hint):
    found = run(lab, made, settings={"plain": {}})
    assert "must return a float tensor [3, H, W] in [0, 1]" in found["plain"].reason
    assert hint in found["plain"].reason


# Perturbations ----------------------------------------------------------------------------------------------------


BROKEN = [
    (lambda images: (images * 255).to(torch.uint8), "torch.uint8"),
    (lambda images: images * 255, "values from"),
    (lambda images: images / 0, "not finite"),
    (lambda images: images[..., :4], "shape"),
    (lambda images: None, "no return statement"),
    (lambda images: "image", "str"),
]


@pytest.mark.parametrize("place", ["cpu", "gpu"])
@pytest.mark.parametrize(("perturb", "why"), BROKEN)
def test_other_results_of_a_perturbation_fail_its_setting(lab, place, perturb, why):
    def call(images):
        return perturb(images)

    settings = {"plain": {}, "broken": {f"perturbation_fn_{place}": call}}
    found = run(lab, pixels, settings=settings)
    assert found["plain"].status == "complete"
    assert found["broken"].status == "failed"
    assert f"perturbation_fn_{place}" in found["broken"].reason
    assert why in found["broken"].reason


@pytest.mark.parametrize("place", ["cpu", "gpu"])
def test_noise_that_is_not_cut_off_is_taken_and_said(lab, said, place):
    def noise(images):
        return images + 0.3 * torch.randn_like(images)

    found = run(lab, pixels, settings={"noisy": {f"perturbation_fn_{place}": noise}})
    assert found["noisy"].status == "complete"
    (line,) = [each for each in said if each.startswith("noisy: ")]
    assert f"perturbation_fn_{place} returns values from -" in line


# Outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "doubt"),
    [
        (nn.Softmax(1), "add up to 1 "),
        (nn.Sequential(nn.Softmax(1), nn.Threshold(-1, 0)), "add up to 1 "),
        (nn.Sigmoid(), "between 0 and 1"),
        (nn.Identity(), ""),
        (nn.LogSoftmax(1), ""),
    ],
)
def test_probabilities_in_place_of_logits_are_said_and_stored(lab, said, last, doubt):
    run(lab, pixels, nn.Sequential(ToyNetwork(0), last), {"plain": {}})
    lines = [each for each in said if "the outputs on plain" in each]
    with lab.open() as store:
        (evaluation,) = store.evaluations.find()
    remarks = (evaluation.environment or {}).get(REMARKS, [])
    assert (len(lines), len(remarks)) == ((1, 1) if doubt else (0, 0))
    assert all(doubt in each for each in [*lines, *remarks])


def test_a_sum_of_probabilities_is_noticed_as_well():
    votes = torch.rand(20, CLASSES).softmax(1) * 10
    assert "add up to 10 " in returned.doubts_about_logits(votes)
    assert returned.doubts_about_logits(votes[:3] * torch.tensor([[1.0], [2.0], [3.0]])) == ""
    assert returned.doubts_about_logits(torch.full((20, CLASSES), float("nan"))) == ""
    assert returned.doubts_about_logits(torch.zeros(20, CLASSES)) == ""


class Other(nn.Module):
    def __init__(self, change: Any) -> None:
        super().__init__()
        self.change = change

    def forward(self, images: torch.Tensor) -> Any:
        return self.change(images.mean((2, 3)))

    encode_image = encode_text = forward


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows.argmax(1), "shape (100, classes) were expected"),
        (lambda rows: rows.long(), "logits are floats, got torch.int64"),
        (lambda rows: rows[:-1], "(99, 3)"),
        (lambda rows: rows[..., None, None], "(100, 3, 1, 1)"),
        (lambda rows: None, "NoneType"),
    ],
)
def test_other_outputs_of_a_classifier_fail(lab, change, why):
    found = run(lab, pixels, Other(change), {"plain": {}}, eval_batch_size=COUNT)
    assert why in found["plain"].reason


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:, None],
        lambda rows: rows[0],
        lambda rows: rows[:-1],
        lambda rows: rows.long(),
        lambda rows: (rows,),
        lambda rows: None,
    ],
)
def test_other_embeddings_fail(change):
    images = torch.rand(4, 3, SIZE, SIZE)
    transform = StandardTransform(SIZE, SIZE)
    encoder = ImageEncoder("any", transform, lambda: Other(change), 4).load(LoadOptions())
    with pytest.raises(RunError, match=r"any: embeddings of images are floats of shape \(4, dimensions\)"):
        encoder.embed_image(images)
    pair = DualEncoder("any", transform, lambda: (Other(change), lambda texts: images[: len(texts)]), 4)
    with pytest.raises(RunError, match="embeddings of images"):
        pair.load(LoadOptions()).embed_image(images)
    with pytest.raises(RunError, match="embeddings of texts"):
        pair.load(LoadOptions()).embed_text(["a", "b"])


def test_whether_embeddings_have_length_1_makes_no_difference_to_zero_shot_logits():
    from testbed.models.base.runtime import ZeroShotClassifier

    head = nn.functional.normalize(torch.rand(3, 5), dim=0)
    rows = torch.rand(4, 3) * 7
    whole = ZeroShotClassifier(None, head).from_embeddings(rows)  # type: ignore[arg-type]
    unit = ZeroShotClassifier(None, head).from_embeddings(nn.functional.normalize(rows))  # type: ignore[arg-type]
    torch.testing.assert_close(whole, unit)

"""CLIPScore on small models of our own: what is encoded and how often, what is accepted and what is not."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import testbed.metrics
from testbed.errors import (
    DefinitionError,
    MissingExtraError,
    TestbedError,
    UnknownNameError,
    UnsupportedError,
    WeightsError,
)
from testbed.metrics import CLIPScore, clip_score
from testbed.metrics.clip import encoders as clip_encoders
from testbed.metrics.clip import score as clip_score_metric
from testbed.models.base.text_encoder import TextEncoder
from testbed.models.model_base import DualEncoder, LoadOptions, Model, StandardTransform
from testbed.registry import registry

WIDTH = 6


class Towers(torch.nn.Module):
    """Images to their mean colours in places, texts to what they say: counts what goes through."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3 * 16, WIDTH, generator=torch.Generator().manual_seed(0)))
        self.images, self.texts = [], []

    def encode_image(self, images):
        self.images.append(len(images))
        colours = torch.nn.functional.adaptive_avg_pool2d(images, 4).flatten(1)
        return (colours.unsqueeze(2) * self.weight).sum(1)  # a product of matrices may differ by its number of rows

    def encode_text(self, tokens):
        self.texts.append(len(tokens))
        return torch.nn.functional.pad(tokens, (0, WIDTH - tokens.shape[1])).float() * self.weight[0, 0].sign()


def tokenize(texts):
    """A text is the numbers in it, as many as there are dimensions."""
    return torch.tensor([[float(each) for each in text.split()] for text in texts])


def axis(*values):
    return " ".join(str(each) for each in [*values, *[0] * (WIDTH - len(values))])


def definition(towers=None):
    return DualEncoder("toy-clip", StandardTransform(16, 16), lambda: (towers or Towers(), tokenize), 4)


@pytest.fixture
def towers():
    return Towers()


@pytest.fixture
def metric(towers):
    return CLIPScore(definition(towers))


def pixels(count, seed=0, size=(20, 24)):
    return torch.randint(256, (count, 3, *size), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)


# Values -----------------------------------------------------------------------------------------------------------


def test_texts_by_hand(metric):
    score = metric([axis(1), axis(1)], [axis(1), axis(3, 4)])
    assert score.dtype == torch.float32
    assert score.item() == pytest.approx(100 * (1 + 0.6) / 2)
    assert metric([axis(0, 1)], [axis(1)]).item() == 0
    assert metric.compute().item() == pytest.approx(100 * 1.6 / 3)
    metric.reset()
    metric.update(axis(2), axis(1))
    assert metric.compute().item() == 100


def test_the_two_clamps():
    source, target = [axis(1), axis(1)], [axis(-3, 4), axis(4, 3)]  # −0.6 and 0.8
    by_mean, by_pair = (CLIPScore(definition(), clamp=clamp) for clamp in ("mean", "pair"))
    assert by_mean(source, target).item() == pytest.approx(10)
    assert by_pair(source, target).item() == pytest.approx(40)
    assert by_mean.compute_pairwise().item() == by_pair.compute().item() == pytest.approx(40)
    assert by_mean(source[:1], target[:1]).item() == 0
    assert clip_score(source, target, definition()).item() == pytest.approx(10)
    assert clip_score(source, target, definition(), clamp="pair").item() == pytest.approx(40)


def test_images_are_transformed_and_compared(metric, towers):
    images = pixels(2)
    loaded = definition(towers).load(LoadOptions())
    from torchvision.transforms.functional import to_pil_image

    batch = torch.stack([StandardTransform(16, 16)(to_pil_image(image)) for image in images])
    with torch.no_grad():
        a, b = loaded.embed_image(batch).double()
    expected = 100 * float(torch.nn.functional.cosine_similarity(a, b, dim=0))
    assert metric(images[0], images[1]).item() == pytest.approx(max(expected, 0), abs=1e-4)
    assert metric(images[0], images[0]).item() == 100


def test_batches_order_and_micro_batches_do_not_matter():
    images, texts = pixels(9), [axis(1, k, -k, 2) for k in range(9)]
    whole = CLIPScore(definition(), keep_cosines=True)
    whole.update(images, texts)
    parts = CLIPScore(definition(), batch_size=2, keep_cosines=True)
    for start in (5, 0):
        parts(images[start : start + (4 if start else 5)], texts[start : start + (4 if start else 5)])
    assert whole.compute() == parts.compute()
    assert whole.cosines.dtype == torch.float32
    assert torch.equal(whole.cosines, torch.cat([parts.cosines[4:], parts.cosines[:4]]))
    parts.reset()
    assert len(parts.cosines) == 0
    with pytest.raises(ValueError, match="keep_cosines=True"):
        _ = CLIPScore(definition()).cosines


def test_forms_of_one_image(metric):
    image = pixels(1)[0]
    forms = [image, image[None], [image], image.long(), image.float(), image.half(), image.int()]
    assert len({metric(form, axis(1, 2)).item() for form in forms}) == 1
    in_unit = CLIPScore(definition(), data_range=1.0)
    assert in_unit(image.float() / 255, axis(1, 2)) == metric(image, axis(1, 2))
    assert in_unit(image, axis(1, 2)) == metric(image, axis(1, 2))
    grey = image[:1]
    assert metric(grey, axis(1, 2)) == metric(grey.expand(3, -1, -1), axis(1, 2))
    with_alpha = torch.cat([image, image[:1]])
    assert metric(with_alpha, axis(1, 2)) == metric(image, axis(1, 2))


def test_an_embedding_of_zero(metric):
    assert metric([axis(0), axis(1)], [axis(1), axis(1)]).item() == 50
    assert metric.zero_norms == 1


def test_an_embedding_that_is_not_finite(metric):
    with pytest.warns(UserWarning, match="1 of 2 pairs have an embedding that is not finite"):
        metric.update([axis("nan"), axis(1)], [axis(1), axis(1)])
    assert torch.isnan(metric.compute())
    assert torch.isnan(metric.compute_pairwise())


# Work -------------------------------------------------------------------------------------------------------------


def test_everything_is_encoded_once(metric, towers):
    images = pixels(3)
    metric(torch.cat([images, images]), [axis(1), axis(2), axis(1)] * 2)
    assert (towers.images, towers.texts) == ([3], [2])
    metric.update(images, images.flip(0))
    assert towers.images == [3, 3]
    metric.update([axis(1), axis(2)], [axis(2), axis(1)])
    assert towers.texts == [2, 2]
    metric.compute()
    assert sum(towers.images) == 6
    towers.images, towers.texts = [], []
    CLIPScore(definition(towers), batch_size=4).update(pixels(10), [axis(k) for k in range(10)])
    assert (towers.images, towers.texts) == ([4, 4, 2], [4, 4, 2])


def test_images_that_differ_in_one_value_are_not_one(metric, towers):
    images = torch.zeros(8, 3, 32, 32, dtype=torch.uint8)
    for place in range(1, 7):
        images[place].view(-1)[500 * place + 1] = 1  # the first and the last stay equal
    metric.update(images, [axis(1)] * 8)
    assert towers.images == [7]


def test_there_are_no_gradients(metric, towers):
    towers.weight.requires_grad_(True)
    assert not metric(pixels(1), axis(1)).requires_grad
    assert not clip_score(pixels(1), axis(1), definition(towers)).requires_grad


# Inputs -----------------------------------------------------------------------------------------------------------

IMAGE = pixels(1)[0]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([], "a", "Empty input list: source"),
        (IMAGE, [], "Empty input list: target"),
        (torch.zeros(0, 3, 4, 4), "a", "no images"),
        (pixels(2), axis(1), r"the same but got 2 and 1"),
        ([axis(1)], [axis(1), axis(2)], r"1 and 2"),
        (torch.zeros(4, 4), "a", "3d"),
        (torch.zeros(1, 2, 3, 4, 4), "a", "3d"),
        ([IMAGE, IMAGE[0]], ["a", "b"], r"3d.*\[20, 24\]"),
        (None, "a", "modality for input_data: source .* NoneType"),
        ((IMAGE,), "a", "modality for input_data: source .* tuple"),
        ([1], "a", "modality for input_data: source .* int"),
        ([IMAGE, "a"], ["a", "b"], "Tensor and str"),
        ("a \udc80", "a", r"text 0 of source: '\\udc80' is a lone surrogate"),
        (["a", "b"], ["a", "b \ud83d"], r"text 1 of target: '\\ud83d' is a lone surrogate.*errors='replace'"),
        (np.zeros((3, 4, 4)), "a", "ndarray"),
        (IMAGE[:2], "a", "1, 3 or 4 channels"),
        (torch.zeros(3, 0, 4), "a", "at least one pixel"),
        (IMAGE > 3, "a", "torch.bool"),
        (IMAGE.long() + 1, "a", "from 0 to 255 in torch.int64, got 1 to 256"),
        (IMAGE.float() - 1, "a", "normalized"),
        (torch.full((3, 4, 4), float("nan")), "a", "got nan"),
        (torch.full((3, 4, 4), float("inf")), "a", "got inf"),
    ],
)
def test_what_is_no_pair(metric, source, target, message):
    metric.update(axis(1), axis(1))
    for call in (metric, metric.update):
        with pytest.raises(ValueError, match=message) as caught:
            call(source, target)
        assert isinstance(caught.value, TestbedError)
    assert metric.compute().item() == 100  # what came before is kept


def test_floats_beyond_one():
    with pytest.raises(ValueError, match=r"from 0 to 1 in torch.float32, got 0 to 255; for floats up to 255"):
        CLIPScore(definition(), data_range=1.0).update(torch.tensor([0.0, 255.0]).expand(3, 4, 2), axis(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"batch_size": size}, "batch_size") for size in (0, -1, 2.0)),
        ({"chunk": 3}, "chunk"),
        ({"truncation": "begin"}, "truncation is one of keep_end, upstream"),
        ({"clamp": "max"}, "clamp is one of mean, pair"),
        ({"data_range": 2}, "data_range is 255 or 1"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        CLIPScore(definition(), **options)


def test_floats_in_the_unit_range_are_suspicious(metric):
    images = pixels(2).float() / 255
    with pytest.warns(UserWarning, match=r"data_range=1\.0"):
        metric.update(images, [axis(1)] * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.update(images, [axis(1)] * 2)  # once
        CLIPScore(definition()).update(torch.zeros(3, 4, 4), axis(1))  # black
        CLIPScore(definition(), data_range=1.0).update(images, [axis(1)] * 2)
        CLIPScore(definition()).update(pixels(1) // 255, axis(1))  # integers


def test_without_pairs_there_is_no_score(metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchmetrics warns too
        with pytest.raises(ValueError, match="no pairs"):
            metric.compute()
    with pytest.raises(ValueError, match="no pairs"):
        metric.compute_pairwise()


# Models -----------------------------------------------------------------------------------------------------------


def test_a_loaded_dual_encoder(towers):
    loaded = definition(towers).load(LoadOptions())
    assert CLIPScore(loaded)(axis(1), axis(3, 4)).item() == pytest.approx(60)
    assert CLIPScore(loaded).model is towers
    assert CLIPScore(loaded).processor is tokenize


def test_the_model_follows_the_first_image(towers, monkeypatch):
    asked = []
    monkeypatch.setattr(clip_encoders.LoadedEncoder, "to", lambda self, device: asked.append(str(device)))
    idle = str(clip_encoders.idle_device())
    CLIPScore(definition(towers)).update(axis(1), IMAGE)
    CLIPScore(definition(towers)).update(axis(1), axis(1))
    assert asked == ["cpu", idle]
    CLIPScore(definition(towers).load(LoadOptions())).update(axis(1), IMAGE)
    assert asked == ["cpu", idle]  # it stays where it is
    CLIPScore(definition(towers).load(LoadOptions()), device="cpu").update(axis(1), axis(1))
    assert asked == ["cpu", idle, "cpu"]


def test_a_model_that_embeds_texts_alone():
    class Loaded:
        def embed_text(self, texts, language=None):
            return tokenize(texts)

    assert clip_score(axis(1), axis(3, 4), Loaded()).item() == pytest.approx(60)
    with pytest.raises(UnsupportedError, match="embeds no images"):
        clip_score(IMAGE, axis(1), Loaded())

    class Numbers:
        encode = staticmethod(tokenize)

    embedder = TextEncoder("numbers", Numbers)
    assert clip_score(axis(1), axis(3, 4), embedder).item() == pytest.approx(60)
    with pytest.raises(UnsupportedError, match="numbers embeds no images"):
        clip_score(axis(1), IMAGE, embedder)


def test_names(monkeypatch):
    monkeypatch.setattr(registry.models, "names", lambda: ["toy"])  # no library has to list its own
    with pytest.raises(ValueError, match=r"Unknown model 'owner/name'.*transformers/owner/name") as caught:
        CLIPScore("owner/name")
    assert isinstance(caught.value, UnknownNameError)
    classifier = Model("c", StandardTransform(16, 16), lambda: None, 1)
    with pytest.raises(UnsupportedError, match="c embeds no texts"):
        CLIPScore(classifier)
    for given, message in (
        (3, "not int"),
        (lambda: 3, "not int"),
        (lambda: (3, len), "int without get_image_features"),
    ):
        with pytest.raises(DefinitionError, match=message):
            CLIPScore(given)


def test_names_of_openai_come_from_open_clip_where_transformers_is_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    mean = [0.48145466, 0.4578275, 0.40821073]
    for name, own in clip_encoders.OPENAI.items():
        found = clip_encoders.definition_of(name)
        assert found.name == own
        assert found.architecture["quick_gelu"]
        assert found.transform.spec() == {
            "size": 336 if name.endswith("336") else 224, "interpolation": "bicubic", "resize_mode": "shortest",
        }  # fmt: skip
        assert found.normalization.mean == mean
    for name in (*clip_encoders.LONG_CLIP, *clip_encoders.REMOTE_CODE):
        with pytest.raises(ModuleNotFoundError, match=r"'\.\[transformers\]'") as caught:
            CLIPScore(name)
        assert isinstance(caught.value, MissingExtraError)


def test_published_values():
    """Those of torchmetrics' documentation, where the weights are here."""
    try:
        metric = CLIPScore("openai/clip-vit-base-patch16")
    except WeightsError as error:
        pytest.skip(f"no weights: {error}")
    first, second = (
        torch.randint(255, (3, 224, 224), generator=torch.Generator().manual_seed(seed)) for seed in (42, 43)
    )
    texts = (
        "28-year-old chef found dead in San Francisco mall",
        "A 28-year-old chef who recently moved to San Francisco was found dead.",
    )
    assert metric(first, "a photo of a cat").item() == pytest.approx(24.4255, abs=0.01)
    assert metric(first, second).item() == pytest.approx(99.4859, abs=0.01)
    assert metric(*texts).item() == pytest.approx(91.3950, abs=0.01)


def test_copies(metric):
    metric.update(axis(1), axis(3, 4))
    other = copy.deepcopy(metric)
    other.update(axis(1), axis(1))
    assert (metric.compute().item(), other.compute().item()) == (pytest.approx(60), pytest.approx(80))
    assert other.model is metric.model


def test_pickles(monkeypatch, towers):
    monkeypatch.setattr(registry, "contains_model", lambda name: name == "toy-clip")
    monkeypatch.setattr(registry, "get_model", lambda name: definition(towers))
    named, made = CLIPScore("toy-clip"), CLIPScore(lambda: (Plain(), processor))
    for metric, text, other in ((named, axis(1), axis(0, 1)), (made, "a", "b")):
        metric.update(text, text)
        again = pickle.loads(pickle.dumps(metric))
        again.update(text, other)
        assert (metric.compute().item(), again.compute().item()) == (100, 50)


# A model with a processor, as torchmetrics takes it ---------------------------------------------------------------


class Processed(torch.nn.Module):
    """The end of a text, or the mean of an image, as an embedding; with dropout."""

    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)
        self.config = type("Config", (), {"text_config": type("Text", (), {"max_position_embeddings": 5})})
        self.modes, self.seen = [], []

    def get_image_features(self, pixel_values):
        self.modes.append(self.training)
        return self.dropout(pixel_values.flatten(2).mean(2))

    def get_text_features(self, input_ids, attention_mask):
        self.seen.append((input_ids.tolist(), attention_mask.tolist()))
        ends = attention_mask.sum(1) - 1
        return torch.nn.functional.one_hot(input_ids[torch.arange(len(ends)), ends], 9).float()


def processor(text=None, images=None, return_tensors=None, padding=None):
    """Letters a to g are 1 to 7, the end is 8."""
    assert return_tensors == "pt"
    if images is not None:
        return {"pixel_values": torch.stack([image.float() for image in images])}
    longest = max(map(len, text)) + 1
    rows = [[ord(letter) - 96 for letter in each] + [8] for each in text]
    mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
    ids = [row + [0] * (longest - len(row)) for row in rows]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


class Plain(torch.nn.Module):
    """A text's first letter as an embedding."""

    def get_image_features(self, pixel_values):
        return pixel_values.flatten(2).mean(2)

    def get_text_features(self, input_ids, attention_mask):
        return torch.nn.functional.one_hot(input_ids[:, 0], 9).float()


def test_a_text_that_is_cut_keeps_its_end():
    network = Processed()
    metric = CLIPScore(lambda: (network, processor))
    with pytest.warns(UserWarning, match="2 of the texts are longer than the 5 tokens.*keeping"):
        score = metric(["abcd", "ab", "abcde", "aaaaaaaaa"], ["b"] * 4)
    assert score.item() == 100
    assert network.seen[0] == (
        [[1, 2, 3, 4, 8], [1, 2, 8, 0, 0], [1, 2, 3, 4, 8], [1, 1, 1, 1, 8], [2, 8, 0, 0, 0]],
        [[1] * 5, [1, 1, 1, 0, 0], [1] * 5, [1] * 5, [1, 1, 0, 0, 0]],
    )


def test_a_text_that_is_cut_as_upstream_loses_its_end():
    network = Processed()
    metric = CLIPScore(lambda: (network, processor), truncation="upstream")
    with pytest.warns(UserWarning, match="losing"):
        score = metric(["abcd", "abcde"], ["b", "b"])
    assert score.item() == 50
    assert network.seen[0][0][:2] == [[1, 2, 3, 4, 8], [1, 2, 3, 4, 5]]


def test_a_network_that_is_being_trained_is_used_without_dropout_and_left_as_it_was():
    network = Processed()
    network.dropout.eval()
    CLIPScore(lambda: (network, processor)).update(IMAGE, IMAGE)
    assert network.modes == [False]
    assert (network.training, network.dropout.training) == (True, False)


def test_the_processor_gets_the_images_as_they_are():
    seen = []

    def look(text=None, images=None, **options):
        if images is not None:
            seen.extend(images)
        return processor(text, images, **options)

    image = torch.tensor([0.0, 100.25]).expand(3, 4, 2)
    CLIPScore(lambda: (Processed(), look)).update(image, image)
    assert torch.equal(seen[0], image)
    CLIPScore(lambda: (Processed(), look), data_range=1.0).update(image / 255, image / 255)
    assert seen[1].dtype == torch.uint8


# open_clip's tokenizer --------------------------------------------------------------------------------------------


def test_open_clips_texts_are_cut_in_both_ways():
    import open_clip

    tower = {"layers": 1, "width": 16}
    network = open_clip.model.CLIP(
        8, {**tower, "image_size": 16, "patch_size": 8, "head_width": 8},
        {**tower, "context_length": 12, "vocab_size": 49408, "heads": 2},
    )  # fmt: skip
    tokenizer = open_clip.SimpleTokenizer(context_length=12)
    made = DualEncoder("small", StandardTransform(16, 16), lambda: (network, tokenizer), 4)
    texts = ["a cat", "one two three four five six seven eight nine ten", " ".join(["x"] * 11), " ".join(["x"] * 20)]
    ids = [[tokenizer.sot_token_id, *tokenizer.encode(text), tokenizer.eot_token_id] for text in texts]

    def embedded(rows):
        with torch.no_grad():
            return network.encode_text(torch.tensor([row + [0] * (12 - len(row)) for row in rows])).numpy()

    kept = [row if len(row) <= 12 else [*row[:11], row[-1]] for row in ids]
    for truncation, rows in (("keep_end", kept), ("upstream", [row[:12] for row in ids])):
        metric = CLIPScore(made, truncation=truncation, keep_cosines=True)
        with pytest.warns(UserWarning, match="2 of the texts are longer than the 12 tokens"):
            metric.update(texts, ["a cat"] * 4)
        left = embedded(rows)
        right = np.repeat(embedded(ids[:1]), 4, axis=0)
        expected = (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
        assert metric.cosines.numpy() == pytest.approx(expected, abs=1e-6)


def test_a_tokenizer_of_ones_own_cannot_be_asked():
    with pytest.raises(UnsupportedError, match="leave it at 'keep_end'"):
        CLIPScore(definition(), truncation="upstream")


# Without torchmetrics ---------------------------------------------------------------------------------------------


@pytest.fixture
def plain(monkeypatch):
    """The module as it is where torchmetrics is not installed."""
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    spec = importlib.util.spec_from_file_location("plain_clip_score", clip_score_metric.__file__)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_without_torchmetrics(plain, monkeypatch):
    metric = plain.CLIPScore(definition(), keep_cosines=True)
    assert metric(axis(1), axis(3, 4)).item() == pytest.approx(60)
    assert metric(axis(1), axis(1)).item() == 100
    assert metric.compute().item() == metric.compute_pairwise().item() == pytest.approx(80)
    assert metric.cosines.tolist() == pytest.approx([0.6, 1])
    with pytest.raises(ValueError, match="Empty input list"):
        metric([], [])
    assert metric.n_samples == 2
    metric.reset()
    with pytest.raises(ValueError, match="no pairs"):
        metric.compute()
    for missing in (metric.plot, lambda: plain.CLIPScore(definition(), dist_sync_on_step=True)):
        with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[metrics\]'"):
            missing()
    with pytest.raises(ValueError, match="Unexpected keyword argument: chunk"):
        plain.CLIPScore(definition(), chunk=3)
    metric.update(axis(1), axis(1))
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 2)
    with pytest.raises(MissingExtraError, match="over processes"):
        metric.compute()


def test_copies_and_devices_without_torchmetrics(plain):
    metric = plain.CLIPScore(definition(), keep_cosines=True)
    metric.update(axis(1), axis(3, 4))
    other = metric.clone()
    other.update(axis(1), axis(1))
    assert (metric.n_samples, len(metric.cosines), other.n_samples, len(other.cosines)) == (1, 1, 2, 2)
    assert other.model is metric.model
    assert metric.to("meta").compute().device.type == "meta"
    assert metric.to(torch.device("cpu")).compute().item() == pytest.approx(60)


def test_the_package_is_light_until_it_is_asked():
    code = "import sys, testbed.metrics; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"CLIPScore", "clip_score"} <= set(testbed.metrics.__all__)
    with pytest.raises(AttributeError, match="no attribute 'clips'"):
        _ = testbed.metrics.clips


def test_metrics_share_one_network_as_torchmetrics_wrapper_has_it():
    wrappers = pytest.importorskip("torchmetrics.wrappers")
    model = definition()
    metrics = {"mean": CLIPScore(model), "pair": CLIPScore(model, clamp="pair")}
    assert CLIPScore.feature_network == "model"
    assert metrics["mean"].model is not metrics["pair"].model
    shared = wrappers.FeatureShare(metrics)
    assert metrics["mean"].model is metrics["pair"].model
    assert not list(shared.state_dict())  # the network is no submodule
    shared.update(axis(1), axis(3, 4))
    assert {name: float(value) for name, value in shared.compute().items()} == {
        "mean": pytest.approx(60),
        "pair": pytest.approx(60),
    }
    with pytest.raises(ValueError, match="can be replaced by that of a CLIPScore with the same model and options"):
        metrics["mean"].model = CLIPScore(definition()).model

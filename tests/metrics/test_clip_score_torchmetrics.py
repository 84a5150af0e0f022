"""CLIPScore against torchmetrics', on a tiny CLIP of transformers with weights drawn at random."""

from __future__ import annotations

import json
import multiprocessing
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from clip_words import save_tokenizer
from torch import distributed

from testbed.errors import UnsupportedError
from testbed.metrics import CLIPScore, clip_score
from testbed.metrics.clip import encoders as clip_encoders

torchmetrics = pytest.importorskip("torchmetrics")
transformers = pytest.importorskip("transformers")

from torchmetrics.functional.multimodal import clip_score as upstream_clip_score  # noqa: E402
from torchmetrics.multimodal.clip_score import CLIPScore as UpstreamCLIPScore  # noqa: E402

LENGTH = 24
TOWER = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
TEXTS = ["a photo of a cat", "a dog", "three owls", "an owl and a cat", "a dog", "b"]


class ClipOfTensors(transformers.CLIPModel):
    """Gives embeddings as transformers 4 does, which torchmetrics needs; transformers 5 puts them into an object."""

    def get_image_features(self, *given, **options):
        return tensor(super().get_image_features(*given, **options))

    def get_text_features(self, *given, **options):
        return tensor(super().get_text_features(*given, **options))


def tensor(features):
    return features if isinstance(features, torch.Tensor) else features.pooler_output


def save_clip(folder, positions=LENGTH):
    tokenizer, size = save_tokenizer(folder)
    # that of Pillow, which is another class since transformers 5
    processor = getattr(transformers, "CLIPImageProcessorPil", transformers.CLIPImageProcessor)
    images = processor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    images.save_pretrained(folder)
    text = {**TOWER, "vocab_size": size, "max_position_embeddings": positions, "eos_token_id": size - 1}
    vision = {**TOWER, "image_size": 32, "patch_size": 8}
    torch.manual_seed(1)
    network = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))
    network.save_pretrained(folder)
    network.__class__ = ClipOfTensors
    return network.eval(), transformers.CLIPProcessor(images, tokenizer)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("clip")


@pytest.fixture(scope="module")
def pair(folder):
    return save_clip(folder)


@pytest.fixture(scope="module")
def make(pair):
    return lambda: pair


def pixels(count, seed=0, size=(40, 52)):
    return torch.randint(256, (count, 3, *size), generator=torch.Generator().manual_seed(seed))


PAIRS = {
    "image and text": (pixels(6), TEXTS),
    "text and image": (TEXTS, pixels(6)),
    "image and image": (pixels(6), pixels(6, 1).to(torch.uint8)),
    "text and text": (TEXTS, TEXTS[::-1]),
    "one image, one text": (pixels(1)[0], "a cat"),
    "two texts": ("a cat", "a dog"),
    "lists of images": (list(pixels(3)), [*pixels(2, 1, (32, 32)), pixels(1, 2, (60, 33))[0]]),
    "floats": (pixels(6).float(), TEXTS),
    "grey and uint8": (pixels(6).to(torch.uint8)[:, :1].expand(-1, 3, -1, -1), TEXTS),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_values_are_torchmetrics(kind, make):
    source, target = PAIRS[kind]
    ours, theirs = CLIPScore(make), UpstreamCLIPScore(make)
    assert ours(source, target).item() == pytest.approx(theirs(source, target).item(), abs=2e-4)
    assert ours.compute().item() == pytest.approx(theirs.compute().item(), abs=2e-4)
    found = clip_score(source, target, make)
    expected = upstream_clip_score(source, target, make)
    assert found.item() == pytest.approx(expected.item(), abs=2e-4)
    assert (found.shape, found.dtype, found.device) == (expected.shape, expected.dtype, expected.device)


@pytest.mark.parametrize("kind", ["image and text", "text and text", "lists of images"])
def test_a_folder_of_testbeds_family_gives_the_same(kind, folder, make):
    source, target = PAIRS[kind]
    expected = upstream_clip_score(source, target, make).item()
    assert clip_score(source, target, f"transformers/{folder}").item() == pytest.approx(expected, abs=2e-3)


def test_accumulated_over_batches(make):
    ours, theirs = CLIPScore(make, batch_size=2), UpstreamCLIPScore(make)
    for start, end in ((0, 4), (4, 5), (5, 6)):
        images, texts = pixels(6)[start:end], TEXTS[start:end]
        assert ours(images, texts).item() == pytest.approx(theirs(images, texts).item(), abs=2e-4)
        ours.update(texts, images)
        theirs.update(texts, images)
    assert ours.compute().item() == pytest.approx(theirs.compute().item(), abs=2e-4)
    ours.reset()
    theirs.reset()
    ours.update("a", "b")
    theirs.update("a", "b")
    assert ours.compute().item() == pytest.approx(theirs.compute().item(), abs=2e-4)


def test_negative_means(pair):
    network, processor = pair

    class Mirrored(torch.nn.Module):
        config = network.config
        get_image_features = staticmethod(network.get_image_features)

        @staticmethod
        def get_text_features(ids, mask):
            return -network.get_text_features(ids, mask)

    ours, theirs = (each(lambda: (Mirrored(), processor)) for each in (CLIPScore, UpstreamCLIPScore))
    for image, text in zip(pixels(6), TEXTS, strict=True):
        assert ours(image, text).item() == pytest.approx(theirs(image, text).item(), abs=2e-4)
    assert ours.compute().item() == pytest.approx(theirs.compute().item(), abs=2e-4)
    straight = CLIPScore(lambda: pair, keep_cosines=True)
    mirrored = CLIPScore(lambda: (Mirrored(), processor), keep_cosines=True)
    for each in (straight, mirrored):
        each.update(pixels(6), TEXTS)
    assert torch.equal(straight.cosines, -mirrored.cosines)
    assert 0 in (straight.compute(), mirrored.compute())
    assert straight.compute_pairwise() == pytest.approx(100 * straight.cosines.clamp(min=0).mean().item(), abs=1e-4)


LONG = ["a cat", "x " * 21, "x " * 22, "x " * 23, "x " * 40]  # with begin and end 24 tokens are 22 words


def test_long_texts_as_upstream(make, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = upstream_clip_score(LONG, LONG[::-1], make).item()
    for model in (make, f"transformers/{folder}"):
        with pytest.warns(UserWarning, match="2 of the texts are longer than the 24 tokens"):
            found = clip_score(LONG, LONG[::-1], model, truncation="upstream").item()
        assert found == pytest.approx(expected, abs=1e-3)


def test_long_texts_keep_their_end(make, folder, pair):
    network, processor = pair
    with torch.no_grad():
        tokens = processor.tokenizer(LONG, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
        texts = network.get_text_features(tokens["input_ids"], tokens["attention_mask"])
        expected = torch.nn.functional.cosine_similarity(texts, texts[:1])
    for model in (make, f"transformers/{folder}"):
        metric = CLIPScore(model, keep_cosines=True)
        with pytest.warns(UserWarning, match="keeping their end token"):
            metric.update(LONG, ["a cat"] * len(LONG))
        assert metric.cosines.numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    assert metric.cosines[3] == metric.cosines[4]  # both are 22 words "x"


ERRORS = {
    "unequal numbers": (pixels(2), ["a"]),
    "an empty list": ([], []),
    "neither images nor texts": ([1], ["a"]),
    "no list": ({"a": 1}, "a"),
    "two dimensions": ([torch.zeros(3, 4)], ["a"]),
    "five dimensions": (torch.zeros(1, 2, 3, 4, 4), ["a"]),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_are_of_torchmetrics_type_and_begin_with_its_words(kind, make):
    raised = []
    for metric in (CLIPScore(make), UpstreamCLIPScore(make)):
        try:
            metric.update(*ERRORS[kind])
        except ValueError as error:
            raised.append(str(error))
    ours, theirs = raised
    assert ours.startswith(theirs)


def test_the_warning_of_long_texts_begins_with_torchmetrics_words(make):
    with pytest.warns(UserWarning, match="Encountered caption") as theirs:
        upstream_clip_score(LONG, LONG, make)
    with pytest.warns(UserWarning, match="Encountered caption") as ours:
        clip_score(LONG, LONG, make)
    words = [str(each[0].message).partition(" Will ")[0] for each in (ours, theirs)]
    assert words == ["Encountered caption longer than max_position_embeddings=24."] * 2


def test_unsupported_names(monkeypatch):
    from testbed.registry import registry

    monkeypatch.setattr(registry.models, "names", lambda: ["toy"])
    for made in (CLIPScore, UpstreamCLIPScore):
        said = "Invalid model_name_or_path nothing/of-that-name. Not supported by `clip_score` metric."
        with pytest.raises(ValueError, match=re.escape(said)):
            made("nothing/of-that-name")
    with pytest.raises(UnsupportedError, match="trust_remote_code=True"):
        CLIPScore("jinaai/jina-clip-v2")


def test_names_of_openai_come_from_transformers(monkeypatch):
    from testbed.registry import registry

    monkeypatch.setattr(registry, "get_model", lambda name: name)
    for name in clip_encoders.OPENAI:
        assert clip_encoders.definition_of(name) == f"transformers/{name}"


def test_weights_with_more_positions_than_the_configuration_says(tmp_path):
    network, processor = save_clip(tmp_path, positions=48)
    config = json.loads((tmp_path / "config.json").read_text())
    config["text_config"]["max_position_embeddings"] = 24
    (tmp_path / "config.json").write_text(json.dumps(config))
    definition = clip_encoders.long_clip(f"transformers/{tmp_path}")
    text = "x " * 40
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = clip_score(text, "a cat", definition)
    expected = upstream_clip_score(text, "a cat", lambda: (network, processor))
    assert found.item() == pytest.approx(expected.item(), abs=1e-3)


# As a metric of torchmetrics --------------------------------------------------------------------------------------


def test_it_is_a_metric_of_torchmetrics(make):
    metric = CLIPScore(make, compute_on_cpu=True)
    assert isinstance(metric, torchmetrics.Metric)
    assert not list(metric.parameters())
    assert metric.state_dict() == {}
    collection = torchmetrics.MetricCollection({"clip": metric, "other": CLIPScore(make, clamp="pair")})
    values = collection(pixels(2), TEXTS[:2])
    assert set(values) == {"clip", "other"}
    copied = metric.clone()
    copied.update(pixels(2, 5), TEXTS[:2])
    assert copied.n_samples == 4
    assert metric.n_samples == 2
    tracker = torchmetrics.MetricTracker(CLIPScore(make))
    tracker.increment()
    tracker.update(pixels(2), TEXTS[:2])
    assert tracker.compute() == metric.compute()
    other = CLIPScore(make)
    other.update(pixels(2, 5), TEXTS[:2])
    other.merge_state(metric)
    assert other.compute() == copied.compute()


def test_it_is_drawn_as_torchmetrics_draws_it(make):
    metric = CLIPScore(make)
    values = [metric(pixels(1, seed), "a cat") for seed in range(3)]
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        with pytest.raises(ModuleNotFoundError, match="matplotlib"):
            metric.plot()
        return
    for given in (None, values):
        plt.close(metric.plot(given)[0])


@pytest.mark.filterwarnings("ignore:.*longer than the:UserWarning")
def test_a_collection_lets_only_metrics_of_one_setup_share_their_sums(make, tmp_path):
    other = save_clip(tmp_path, positions=30)
    made = {
        "plain": lambda: CLIPScore(make),
        "pairs": lambda: CLIPScore(make, clamp="pair"),
        "cut": lambda: CLIPScore(make, truncation="upstream"),
        "other": lambda: CLIPScore(lambda: other),
    }
    collection = torchmetrics.MetricCollection({name: one() for name, one in made.items()})
    batches = [(["a cat"], ["a cat"]), (["a dog " * 9, "three owls"], ["a dog", "b"])]
    for batch in batches:
        collection.update(*batch)
    for name, one in made.items():
        metric = one()
        for batch in batches:
            metric.update(*batch)
        assert collection[name].compute() == metric.compute()
    assert sorted(map(sorted, collection.compute_groups.values())) == [["cut"], ["other"], ["pairs", "plain"]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_another_type_leaves_the_sums_whole(make, dtype):
    expected = clip_score(TEXTS, TEXTS[::-1], make)
    metric = CLIPScore(make, keep_cosines=True)
    metric.update(TEXTS, TEXTS[::-1])
    metric.set_dtype(dtype)
    assert metric.compute() == expected
    metric.reset()
    metric.update(TEXTS, TEXTS[::-1])
    assert metric.compute() == expected
    assert metric.n_samples.dtype == torch.int64
    assert metric.kept[0].dtype == dtype


def one_of_two(rank: int, folder: Path) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    metric = CLIPScore(f"transformers/{folder}", keep_cosines=True)
    own = slice(0, 4) if rank == 0 else slice(4, 6)
    batch = metric(pixels(6)[own], TEXTS[own])
    assert abs(float(batch) - max(100 * float(metric.cosines.mean()), 0)) < 1e-4
    whole, pairwise = metric.compute(), metric.compute_pairwise()
    assert metric.n_samples == (4 if rank == 0 else 2)
    metric.sync()
    if rank == 0:
        torch.save({"whole": whole, "pairwise": pairwise, "cosines": metric.cosines}, f"{folder}/found.pt")
    metric.unsync()
    assert len(metric.cosines) == (4 if rank == 0 else 2)
    metric.reset()
    if rank == 0:
        metric.update("a cat", "a cat")
    assert metric.compute() == 100  # the other process has none
    distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_are_reduced_over(folder, pair):
    forked = multiprocessing.get_context("fork")  # what it imports takes seconds
    processes = [forked.Process(target=one_of_two, args=(rank, folder)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    found = torch.load(folder / "found.pt", weights_only=True)
    metric = CLIPScore(f"transformers/{folder}", keep_cosines=True)
    metric.update(pixels(6), TEXTS)
    torch.testing.assert_close(found["whole"], metric.compute())
    torch.testing.assert_close(found["pairwise"], metric.compute_pairwise())
    assert np.abs(found["cosines"].numpy() - metric.cosines.numpy()).max() < 1e-6

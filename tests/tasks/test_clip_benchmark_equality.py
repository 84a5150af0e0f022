"""The metrics of the published package clip-benchmark and ours, on the same random numbers."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.entities import SampleInfo
from testbed.metrics.scorers.classification import score_classes
from testbed.metrics.scorers.multilabel import score_labels
from testbed.metrics.scorers.retrieval import score_retrieval
from testbed.metrics.scorers.selection import Instance, score_selection

pytestmark = pytest.mark.slow  # installing the package, and its imports

# A dual encoder whose images are their embeddings, and whose texts are the numbers of theirs.
ENCODER = """
import numpy, torch
class Encoder:
    def encode_image(self, images):
        return images.flatten(1)
    def encode_text(self, places):
        return torch.from_numpy(given["texts"])[places]
def tokenizer(texts):
    return torch.tensor([int(each) for each in texts], dtype=torch.int64)
def numbers(metrics):
    return {name: numpy.array(value) for name, value in metrics.items()}
"""

CLASSIFICATION = (
    ENCODER
    + """
from clip_benchmark.metrics import zeroshot_classification as published
class Loader(list):
    class dataset:
        classes = [str(each) for each in range(len(given["texts"]))]
images, targets = torch.from_numpy(given["images"]), torch.from_numpy(given["targets"])
loader = Loader(zip(images.split(32), targets.split(32)))
names = Loader.dataset.classes
found.update(numbers(published.evaluate(Encoder(), loader, tokenizer, names, ["{c}"], "cpu", amp=False)))
head = published.zero_shot_classifier(Encoder(), tokenizer, names, ["{c}"], "cpu", amp=False)
found["logits"] = published.run_classification(Encoder(), head, loader, "cpu", amp=False)[0].numpy()
"""
)

RETRIEVAL = (
    ENCODER
    + """
from clip_benchmark.metrics import zeroshot_retrieval as published
captions = [[] for _ in given["images"]]
for place, owner in enumerate(given["owners"]):
    captions[owner].append(str(place))
images = torch.from_numpy(given["images"])
loader = [(images[start : start + 16], captions[start : start + 16]) for start in range(0, len(images), 16)]
found.update(numbers(published.evaluate(
    Encoder(), loader, tokenizer, "cpu", amp=False, recall_k_list=given["ks"].tolist())))
"""
)

SELECTION = (
    ENCODER
    + """
from clip_benchmark.metrics import image_caption_selection as published
images = torch.from_numpy(given["images"])[..., None, None]
places = numpy.arange(len(given["texts"])).reshape(len(images), -1).astype(str).tolist()
loader = [(images[start : start + 8], places[start : start + 8]) for start in range(0, len(images), 8)]
found.update(numbers(published.evaluate(Encoder(), loader, tokenizer, "cpu", amp=False)))
"""
)


def overall(metrics):
    return {each.name: each.value for each in metrics if each.slice == "overall"}


def random_embeddings(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("classes", "absent"), [(12, 3), (5, 0), (4, 0)])
def test_zero_shot_classification(clip_benchmark_peer, classes, absent):
    rng = np.random.default_rng(classes)
    targets = rng.integers(classes - absent, size=300)
    texts = random_embeddings(rng, classes, 16)
    images = texts[targets] + 3 * random_embeddings(rng, 300, 16)
    theirs = clip_benchmark_peer(CLASSIFICATION, images=images, texts=texts, targets=targets)
    samples = [SampleInfo(str(place), "", int(target)) for place, target in enumerate(targets)]
    ours = overall(score_classes(theirs["logits"], samples, None, "random")[1])
    assert 0.2 < ours["top1"] < 0.9
    assert ours["top1"] == pytest.approx(float(theirs["acc1"]), abs=1e-6)
    assert ours["mean_per_class_recall"] == pytest.approx(float(theirs["mean_per_class_recall"]), abs=1e-6)
    if classes < 5:
        assert ours["top5"] is None
        assert np.isnan(theirs["acc5"])
    else:
        assert ours["top5"] == pytest.approx(float(theirs["acc5"]), abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multi_label_classification(clip_benchmark_peer, dtype):
    rng = np.random.default_rng(4)
    logits = rng.normal(size=(400, 20)).astype(dtype)
    labels = rng.random((400, 20)) < rng.uniform(0, 0.3, 20)
    labels[:, [3, 17]] = False
    theirs = clip_benchmark_peer(
        "import torch\nfrom clip_benchmark.metrics.zeroshot_classification import average_precision_per_class as ap\n"
        "found['ap'] = ap(torch.from_numpy(given['logits']), torch.from_numpy(given['labels']).float()).numpy()\n",
        logits=logits,
        labels=labels,
    )["ap"]
    samples = [SampleInfo(str(place), "", np.flatnonzero(row).tolist()) for place, row in enumerate(labels)]
    metrics = score_labels(logits, samples, None, "random")[1]
    assert overall(metrics)["mean_average_precision"] == pytest.approx(float(theirs.mean()), abs=1e-6)
    present = labels.any(axis=0)
    assert overall(metrics)["mean_average_precision_present"] == pytest.approx(float(theirs[present].mean()), abs=1e-6)
    by_class = [each.value for each in metrics if each.slice != "overall"]
    assert by_class == pytest.approx(theirs[present].tolist(), abs=1e-6)


@pytest.mark.parametrize("most", [1, 7])
def test_retrieval(clip_benchmark_peer, most):
    """Of ragged captions; with several to an image, some images have none."""
    rng = np.random.default_rng(most)
    owners = np.repeat(np.arange(150), rng.integers(0, most + 1, 150) if most > 1 else 1)
    images = random_embeddings(rng, 150, 24) + 1
    texts = images[owners] + 2 * random_embeddings(rng, len(owners), 24)
    theirs = clip_benchmark_peer(RETRIEVAL, images=images, texts=texts, owners=owners, ks=np.array([1, 5, 10]))
    ours = overall(score_retrieval(images, texts, owners, (1, 5, 10))[1])
    assert len(theirs) == 6
    assert 0.05 < ours["text_retrieval_recall@1"] < 0.95
    for name, value in theirs.items():
        assert ours[name] == pytest.approx(float(value), abs=1e-6), name


@pytest.mark.parametrize(("images", "captions"), [(1, 2), (2, 2), (1, 5), (3, 2), (2, 4)])
def test_selection(clip_benchmark_peer, images, captions):
    rng = np.random.default_rng(10 * images + captions)
    pictures = random_embeddings(rng, 60, images, 12)
    texts = 2 * random_embeddings(rng, 60, captions, 12)
    both = min(images, captions)
    texts[:, :both] += pictures[:, :both]
    theirs = clip_benchmark_peer(SELECTION, images=pictures, texts=texts.reshape(-1, 12))
    answers = tuple(place if place < captions else None for place in range(images))
    instances = [
        Instance(tuple(range(start, start + images)), ("",) * captions, answers)
        for start in range(0, 60 * images, images)
    ]
    ours = overall(score_selection(pictures.reshape(-1, 12), texts.reshape(-1, 12), instances)[1])
    assert 0 < ours["text_acc"] < 1
    for name in ("text_acc", "image_acc", "acc"):
        assert ours[name] == pytest.approx(float(theirs[name]), abs=1e-6), name
    if images == 1:
        assert ours["image_acc"] == 1
        assert ours["acc"] == ours["text_acc"]

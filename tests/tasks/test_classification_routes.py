"""Classification: which models fit which settings, and what decides the outputs and the metrics of a cell."""

from __future__ import annotations

import pytest
import torch
from tables import cases
from torch import nn

from testbed.errors import DefinitionError, UnsupportedError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk
from testbed.graph.build import Graph
from testbed.graph.nodes import Given
from testbed.identity.describe import digest
from testbed.models.model_base import DualEncoder, ImageEncoder, LoadOptions, Model, StandardTransform
from testbed.tasks.classification import task

TRANSFORM = StandardTransform(8, 8)
CPU = LoadOptions("cpu")


def classifier(**options):
    options = {"classifier_loader": lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 4)), **options}
    return Model(name="net", transform=TRANSFORM, eval_batch_size=4, **options)


def dual():
    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.image = nn.Linear(192, 6)
            self.text = nn.Embedding(300, 6)
            self.embedded_images = 0

        def encode_image(self, images):
            self.embedded_images += len(images)
            return self.image(images.flatten(1))

        def encode_text(self, tokens):
            return self.text(tokens).mean(dim=1)

    def tokenize(texts):
        return torch.tensor([[ord(letter) for letter in text.ljust(20)[:20]] for text in texts])

    return DualEncoder(name="clip", transform=TRANSFORM, encoder_loader=lambda: (Towers(), tokenize), eval_batch_size=4)


def encoder():
    return ImageEncoder(name="backbone", transform=TRANSFORM, encoder_loader=nn.Flatten, eval_batch_size=4)


def setting(**options):
    arguments = {
        "name": "shift",
        "dataset": StandardDataset(path="/data"),
        "size": 10,
        "class_names": ["a", "b", "c", "d"],
        "templates": ["a photo of {c}"],
        **options,
    }
    return EvalSetting(**arguments)


# Routes -----------------------------------------------------------------------------------------------------------


def test_a_classifier_goes_by_its_logits_and_a_dual_encoder_zero_shot():
    assert task.route(classifier(), setting()) == "logits"
    assert task.route(classifier(), setting(templates=None)) == "logits"
    assert task.route(dual(), setting()) == "zero-shot"
    with pytest.raises(UnsupportedError, match="shift has no prompt templates; clip needs"):
        task.route(dual(), setting(templates=None))
    for route in (task.route, lambda model, of_setting: task.build(Graph(model, of_setting))):
        said = "shift needs logits, or embed_image and embed_text.*backbone has embed_image"
        with pytest.raises(UnsupportedError, match=said):
            route(encoder(), setting())


def test_the_number_of_classes_must_fit_where_both_are_known():
    with pytest.raises(UnsupportedError, match="shift has 4 classes; net returns 1000 logits"):
        task.route(classifier(num_classes=1000), setting())
    assert task.route(classifier(num_classes=4), setting()) == "logits"
    assert task.route(classifier(), setting()) == "logits"
    assert task.route(classifier(num_classes=1000), setting(class_names=None)) == "logits"
    own = setting(metrics_fn=lambda logits, targets: {})  # which may map other classes
    assert task.route(classifier(num_classes=1000), own) == "logits"


def test_an_attack_needs_gradients_unless_the_model_handles_it():
    attacked = setting(adversarial_attack={"eps": 1})
    with pytest.raises(UnsupportedError, match="shift needs gradients; net has logits"):
        task.route(classifier(differentiable=False), attacked)
    assert task.route(classifier(), attacked) == "logits"
    assert task.route(dual(), attacked) == "zero-shot"

    def classify(images, model, adversarial_attack):
        return model(images)

    assert task.route(classifier(differentiable=False, classify=classify), attacked) == "logits"
    assert task.route(classifier(differentiable=False), setting()) == "logits"


# What decides the outputs -----------------------------------------------------------------------------------------


def outputs_of(model, of_setting, class_names=None, seed=0):
    return digest(rows_of(model, of_setting).op.spec(model, of_setting, class_names, seed))


def rows_of(model, of_setting):
    """What is computed for a model on a setting."""
    return task.build(Graph(model, of_setting)).outputs


def needs_model(images, model):
    return images


def blur(images):
    return images


def rain(images):
    return images * 0.5


def restricts_itself(images, model, class_sublist):
    return model(images)[:, class_sublist]


PROMPTS = [
    {"templates": ["another {c}"]},
    {"class_names": ["a", "b", "c", "e"]},
    {"templates": {"a": ["1"], "b": ["2"], "c": ["3"], "d": ["4"]}},
]


@pytest.mark.parametrize("change", PROMPTS)
def test_prompts_count_for_dual_encoders_alone(change):
    assert outputs_of(dual(), setting(**change)) != outputs_of(dual(), setting())
    assert outputs_of(classifier(), setting(**change)) == outputs_of(classifier(), setting())


def test_class_names_of_the_data_count_where_the_setting_has_none():
    own, without = setting(), setting(class_names=None)
    assert outputs_of(dual(), without, ["a", "b"]) != outputs_of(dual(), without, ["a", "c"])
    assert outputs_of(dual(), without, ["a", "b", "c", "d"]) == outputs_of(dual(), own, ["x", "y"])
    assert outputs_of(classifier(), without, ["a", "b"]) == outputs_of(classifier(), without, ["a", "c"])


@pytest.mark.parametrize("perturbation", [None, blur])
@pytest.mark.parametrize("make", [classifier, dual])
def test_a_class_sublist_is_a_matter_of_scoring_for_most(make, perturbation):
    whole, part = (setting(perturbation_fn_gpu=perturbation, class_sublist=classes) for classes in (None, [2, 0]))
    assert outputs_of(make(), part) == outputs_of(make(), whole)


@pytest.mark.parametrize("make", [classifier, dual])
def test_a_class_sublist_counts_when_the_perturbation_asks_for_the_model(make):
    digests = {
        outputs_of(make(), setting(perturbation_fn_gpu=needs_model, class_sublist=classes))
        for classes in (None, [2, 0], [0, 2])
    }
    assert len(digests) == 3


def test_a_class_sublist_counts_when_the_model_restricts_itself():
    model = classifier(classify=restricts_itself)
    digests = {outputs_of(model, setting(class_sublist=classes)) for classes in (None, [2, 0], [0, 2])}
    assert len(digests) == 3

    def restricts(model, of_setting):
        return rows_of(model, of_setting).op.restricts(model, of_setting)

    assert restricts(model, setting(class_sublist=[2]))
    assert not restricts(model, setting())
    assert not restricts(classifier(), setting(class_sublist=[2]))
    assert not restricts(dual(), setting(class_sublist=[2]))


@cases(
    "change",
    [
        {"perturbation_fn_gpu": blur},
        {"perturbation_fn_gpu": rain},
        {"perturbation_fn_cpu": blur},
        {"adversarial_attack": {"eps": 1}},
        {"transform": blur},
    ],
)
@cases("make", [classifier, dual])
def test_what_is_done_to_the_images_counts(make, change):
    assert outputs_of(make(), setting(**change)) != outputs_of(make(), setting())


@cases(
    "change",
    [
        {"name": "another"},
        {"size": 99},
        {"idx_subsample_list": range(10)},
        {"metrics_fn": lambda logits, targets: {}},
        {"metrics_fn": accuracy_topk},
        {"description": "words"},
        {"num_classes": 4},
        {"dataset": StandardDataset(path="/elsewhere")},
        {"parent_eval_setting": "parent"},
    ],
)
@cases("make", [classifier, dual])
def test_what_does_not_touch_the_outputs_does_not_count(make, change):
    assert outputs_of(make(), setting(**change)) == outputs_of(make(), setting())


def test_names_and_seeds_count_only_where_something_is_perturbed():
    assert outputs_of(classifier(), setting(), seed=1) == outputs_of(classifier(), setting(), seed=0)
    fog = {"perturbation_fn_gpu": blur}
    first = outputs_of(classifier(), setting(**fog))
    assert outputs_of(classifier(), setting(**fog), seed=1) != first
    assert outputs_of(classifier(), setting(**fog, name="other")) != first
    # A child draws its parent's random numbers: its outputs are a part of the parent's.
    assert outputs_of(classifier(), setting(**fog, name="child", parent_eval_setting="shift")) == first


def test_the_metric_and_the_classes_decide_what_is_made_of_the_outputs():
    def own(logits, targets):
        return {}

    def other(logits, targets):
        return {"n": len(targets)}

    views = [setting(), setting(class_sublist=[1, 2]), setting(class_sublist=[2, 1]), setting(metrics_fn=own)]
    views.append(setting(metrics_fn=other))
    assert len({digest(task.view_spec(each)) for each in views}) == 5
    same = [setting(metrics_fn=accuracy_topk), setting(name="x"), setting(templates=["z"]), setting(size=3)]
    assert {digest(task.view_spec(each)) for each in same} == {digest(task.view_spec(setting()))}


# Steps ------------------------------------------------------------------------------------------------------------


def steps_of(loaded, one, class_names=None):
    """How a worker computes a setting's logits with a loaded model."""
    rows = rows_of(loaded.definition, one)
    given = Given("m", one, class_names, lambda role: [], lambda role: pytest.fail("no embeddings are read"))
    return rows.op.steps(loaded, one, {role: each.make(loaded, given)[0] for role, each in rows.ones.items()})


def images(count=3):
    return torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def test_a_classifier_keeps_all_its_logits():
    loaded = classifier().load(CPU)
    whole, part = (steps_of(loaded, setting(class_sublist=classes)) for classes in (None, [2, 0]))
    assert whole.key == part.key
    for steps in (whole, part):
        torch.testing.assert_close(steps.outputs(steps.features(images())), loaded.logits(images()))
    # What an attack sees are the classes that count.
    torch.testing.assert_close(part.attacked()(images()), loaded.logits(images())[:, [2, 0]])
    assert whole.attacked()(images()).shape == (3, 4)


def test_a_classifier_that_restricts_itself_does_so_in_its_outputs():
    loaded = classifier(classify=restricts_itself).load(CPU)
    one, other = (steps_of(loaded, setting(name=name, class_sublist=[2, 0])) for name in "ab")
    assert one.outputs(one.features(images())).shape == (3, 2)
    assert one.key != other.key


def test_zero_shot_cells_share_the_embeddings_of_images():
    loaded = dual().load(CPU)
    cells = [steps_of(loaded, setting(templates=templates)) for templates in (["a {c}"], ["the {c}"])]
    assert cells[0].key == cells[1].key
    features = cells[0].features(images())
    first, second = (cell.outputs(features) for cell in cells)
    assert first.shape == second.shape == (3, 4)
    assert not torch.allclose(first, second)
    assert loaded.network.embedded_images == 3


def test_zero_shot_logits_are_those_of_the_head():
    loaded = dual().load(CPU)
    steps = steps_of(loaded, setting(class_sublist=[3, 1]))
    image = loaded.embed_image(images()).double()
    text = loaded.embed_text([f"a photo of {name}" for name in "abcd"]).double()
    expected = 100 * (image / image.norm(dim=1, keepdim=True)) @ (text / text.norm(dim=1, keepdim=True)).T
    outputs = steps.outputs(steps.features(images()))
    torch.testing.assert_close(outputs.double(), expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(steps.attacked()(images()).double(), expected[:, [3, 1]], rtol=1e-5, atol=1e-4)


def test_zero_shot_takes_the_class_names_of_the_data_where_the_setting_has_none():
    loaded = dual().load(CPU)
    by_data = steps_of(loaded, setting(class_names=None), ["a", "b"])
    by_setting = steps_of(loaded, setting(class_names=["a", "b"]))
    torch.testing.assert_close(by_data.attacked()(images()), by_setting.attacked()(images()))
    with pytest.raises(DefinitionError, match="no class names"):
        steps_of(loaded, setting(class_names=None))

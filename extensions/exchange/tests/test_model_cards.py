"""Results for model cards: huggingface_hub reads them as they were written, and a README stays as it is."""

from __future__ import annotations

import re

import pytest
import yaml
from exchange_world import QUESTION, made_store
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results
from stored_cells import put, samples_of, saying

from testbed.errors import DataError
from testbed.extensions.exchange import model_cards as cards
from testbed.stored_results.measured_cells import measured_cells
from testbed.yamltext import to_yaml


@pytest.fixture
def store(tmp_path):
    with made_store(tmp_path / "own.db") as opened:
        yield opened


def index_of(store, model, *hub, **options):
    cells, _ = measured_cells(store, [model], [])
    return cards.model_index(model, cards.card_results(cells, cards.read_hub(hub), **options))


def test_huggingface_hub_reads_what_was_written(store):
    index = yaml.safe_load(to_yaml(index_of(store, "talker", everything=True)))
    name, results = model_index_to_eval_results(index)
    assert name == "talker"
    measured = {
        (each.eval_setting, each.metric): each.value
        for each in store.results.find(["talker"], slices=["overall"])
        if each.value is not None
    }
    assert {(each.dataset_name, each.metric_name): each.metric_value for each in results} == measured
    assert {each.task_type for each in results} == {"visual-question-answering"}
    again = eval_results_to_model_index(name, results)  # which tells data sets apart by their ids alone
    assert again == index


def test_ids_of_the_hub_are_declared_or_unknown(store):
    put(store, "lab/net", "theirs", samples_of([0, 1]), saying([0, 1]), name="hf/ylecun/mnist@plain")
    by_name = {each["dataset"]["name"]: each for each in index_of(store, "lab/net")[0]["results"]}
    own, named = by_name["val"], by_name["theirs"]
    assert own["dataset"] == {"type": "unknown", "name": "val", "config": "val"}
    assert named["dataset"] == {"type": "ylecun/mnist", "name": "theirs", "config": "plain"}
    hub = "val=id=ILSVRC/imagenet-1k,split=validation,revision=abc"
    (own,) = (each for each in index_of(store, "lab/net", hub)[0]["results"] if each["dataset"]["name"] == "val")
    assert own["dataset"] == {
        "type": "ILSVRC/imagenet-1k", "name": "val", "split": "validation", "revision": "abc",
    }  # fmt: skip
    assert own["metrics"] == [{"type": "accuracy", "value": 0.75, "name": "top1"}]


def test_eval_results_read_back(store):
    huggingface_hub = pytest.importorskip("huggingface_hub", minversion="1.4")
    cells, _ = measured_cells(store, ["talker"], [QUESTION])
    hub = cards.read_hub([f"{QUESTION}=id=lab/digits,task=choice,revision=abc"])
    written = to_yaml(cards.eval_results(cards.card_results(cells, hub), "https://example.org/run"))
    (entry,) = huggingface_hub.parse_eval_result_entries(yaml.safe_load(written))
    assert (entry.dataset_id, entry.task_id, entry.dataset_revision) == ("lab/digits", "choice", "abc")
    (result,) = store.results.find(["talker"], [QUESTION], ["accuracy"], ["overall"])
    assert entry.value == result.value
    assert entry.notes.startswith(f"accuracy on {QUESTION}, 3 samples, standard error 0.3333333333333333, testbed")
    assert huggingface_hub.eval_result_entries_to_yaml([entry]) == yaml.safe_load(written)
    assert cards.eval_results(cards.card_results(cells, {})) == []


CARD = """---
# who
license: mit   # spaces stay
tags: [vision,  "a"]
model-index:
- name: lab/net
  results:
  - task: {type: image-classification}
    dataset: {type: beans, name: Beans}
    metrics:
    - {type: accuracy, value: 0.9, name: theirs}
  - task:
      type: image-classification
    dataset:
      name: val
      type: unknown
      config: val
    metrics:
    - type: accuracy
      value: 0.1
      name: top1

# last
library_name: timm
---

# Net

---
model-index: this is text
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_readme_stays_as_it_is(store, newline):
    text = CARD.replace("\n", newline)
    merged = cards.merged_card(text, index_of(store, "lab/net"))
    before, after = text.split("model-index:" + newline)[0], text[text.index(f"{newline}# last") :]
    assert merged.startswith(before)
    assert merged.endswith(after)
    results = ModelCard(merged).data.eval_results
    assert [(each.metric_name, each.metric_value) for each in results] == [("theirs", 0.9), ("top1", 0.75)]
    assert cards.merged_card(merged, index_of(store, "lab/net")) == merged


@pytest.mark.parametrize(
    "text", ["", "# Net\n", "---\n---\n# Net\n", "---\nlicense: mit\n---", "\ufeff---\na: 1\n---\nx"]
)
def test_any_readme_takes_results(store, text):
    merged = cards.merged_card(text, index_of(store, "lab/net"))
    assert merged.endswith(text.removeprefix("---\n---\n").rpartition("---")[2])
    found = yaml.safe_load(merged.lstrip("\ufeff").split("---")[1])
    assert model_index_to_eval_results(found["model-index"])[1][0].metric_value == 0.75


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("a: [", "cannot be read as YAML"),
        ("- a", "should have keys and values"),
        ("model-index: 5", "not in the hub's format"),
        ("model-index: [a]", "not in the hub's format"),
        ("model-index: [{name: x}]", "not in the hub's format"),
        ("model-index: [{name: x, results: [{}]}]", "not in the hub's format"),
        ("model-index: [{name: x, results: [{task: 1, dataset: 2, metrics: 3}]}]", "not in the hub's format"),
        ("a: !!python/object/apply:os.system [x]", "cannot be read as YAML"),
        ("? [a]\n: 1", "cannot be read as YAML"),
        ("{license: mit, model-index: []}", "write model-index as a separate block"),
    ],
)
def test_damaged_front_matter(store, front, said):
    with pytest.raises(DataError, match=re.escape(said)):
        cards.merged_card(f"---\n{front}\n---\n", index_of(store, "lab/net"))


@pytest.mark.parametrize(
    "word",
    ["val", "val=", "=id=a/b", "val=a/b", "val=id=", "val=id=a b", "val=id=a/b/c", "val=split=x", "val=id=a,x=1"],
)
def test_what_the_hub_cannot_have(word):
    with pytest.raises(DataError, match="--hub"):
        cards.read_hub([word])


def test_a_setting_without_results_is_told(store):
    with pytest.raises(DataError, match="--hub names nowhere"):
        index_of(store, "lab/net", "nowhere=id=a/b")

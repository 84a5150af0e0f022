"""Claims in the store: refused files, files that are added twice or in another order, and copies."""

from __future__ import annotations

import dataclasses

import pytest
from stored_cells import put, samples_of, saying

from testbed.claims.compare import cell
from testbed.claims.names import NO_MODEL, NO_SETTING, mapped_now
from testbed.db.store import Store
from testbed.db.upkeep.merge import merge
from testbed.entities import Claim, ClaimSource
from testbed.errors import StoreError

SOURCE = ClaimSource("theirs", "table.csv", "a" * 64, "a table", "owner/name", "c" * 40, "MIT", "", 2, {"params": 2})
CLAIMS = [
    Claim("net", "val", "top1", 0.1 + 0.2, "fraction", "30.000000000000004", "row 2", "top1", protocol={"crop": "1.0"}),
    Claim("net", "other", "top1", 0.5, "fraction", "50", "row 3", "top1", "hard", 7, why="testbed has no such model"),
]


def found(store):
    return [dataclasses.replace(each, source=None) for each in store.claims.find()]


def test_what_is_stored_is_given_back_to_the_bit(store_url: str) -> None:
    with Store.open(store_url, "write") as store:
        assert store.claims.add(SOURCE, CLAIMS) == 2
        assert found(store) == CLAIMS
        assert store.claims.sources() == [SOURCE]
        assert [each.source for each in store.claims.find(["net"], ["other"], ["top1"], ["theirs"])] == [SOURCE]
        for nothing in ({"models": ["x"]}, {"eval_settings": []}, {"metrics": ["x"]}, {"sources": ["x"]}):
            assert store.claims.find(**nothing) == []


def test_a_file_that_is_added_twice_changes_nothing_unless_more_is_read_of_it(store_url: str) -> None:
    with Store.open(store_url, "write") as store:
        store.claims.add(SOURCE, CLAIMS[:1])
        assert store.claims.add(SOURCE, CLAIMS[:1]) == 0
        assert found(store) == CLAIMS[:1]
        assert store.claims.add(SOURCE, CLAIMS) == 2
        assert found(store) == CLAIMS
        other = dataclasses.replace(SOURCE, revision="d" * 40)
        store.claims.add(other, CLAIMS)
        assert [each.source for each in store.claims.find()] == [SOURCE, SOURCE, other, other]


def test_the_date_of_a_commit_is_told_with_the_file_and_may_become_known_later(store_url: str) -> None:
    dated = dataclasses.replace(SOURCE, date="2026-06-27")
    with Store.open(store_url, "write") as store:
        for source, told in (
            (SOURCE, "table.csv at ccccccc"),
            (dated, "table.csv at ccccccc of 2026-06-27"),
            (SOURCE, "table.csv at ccccccc of 2026-06-27"),
        ):
            store.claims.add(source, CLAIMS)
            assert [each.file for each in store.claims.sources()] == [told]


def test_the_order_of_adding_changes_nothing(tmp_path) -> None:
    files = [(dataclasses.replace(SOURCE, name=name), CLAIMS) for name in ("b", "a", "c")]
    told = []
    for number, order in enumerate((files, files[::-1])):
        with Store.create(str(tmp_path / f"{number}.db")) as store:
            for source, claims in order:
                store.claims.add(source, claims)
            told.append((store.claims.find(), store.claims.sources()))
    assert told[0] == told[1]


def test_a_copy_of_a_store_has_its_claims(tmp_path) -> None:
    with Store.create(str(tmp_path / "one.db")) as one, Store.create(str(tmp_path / "two.db")) as two:
        one.claims.add(SOURCE, CLAIMS)
        one.claims.add(dataclasses.replace(SOURCE, name="empty"), [])
        for _ in range(2):
            merge(one, two)
            assert (two.claims.find(), two.claims.sources()) == (one.claims.find(), one.claims.sources())


TIMM = "model,img_size,top1,top5,crop_pct,interpolation"


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("results-imagenet.csv", f"{TIMM},magic\nnet,224,1,2,1.0,bicubic,3\n", ["'magic'", "--map"]),
        ("results-imagenet.csv", f"{TIMM}\nnet,224,101,2,1.0,bicubic\n", ["row 2", "top1", "between 0 and 100"]),
        ("results-imagenet.csv", f"{TIMM}\nnet,224,much,2,1.0,bicubic\n", ["row 2", "top1", "'much'"]),
        ("results-imagenet.csv", f"{TIMM}\nnet,224\n", ["row 2", "6 columns"]),
        ("x.csv", f"{TIMM},top1\n", ["'top1' twice"]),
        ("x.csv", "name,pretrained,ImageNet 22k\nViT-B-32,openai,0.5\n", ["'ImageNet 22k'"]),
        ("x.csv", "model,version,set image_recall de\nViT-B-32,openai,0.5\n", ["'set image_recall de'"]),
        ("x.csv", "model,val,nonsense\nnet,1,2\n", ["'nonsense'"]),
        ("x.csv", "a,b\n1,2\n", ["begins with a, b", "timm's results", "--map"]),
        ("x.csv", "", ["is empty"]),
        ("x.txt", "a", ["a .csv, .tsv, .json or .jsonl was expected"]),
        ("x.json", "[1]", ["JSON objects"]),
        ("x.json", "{", ["cannot be read as JSON"]),
        ("x.json", '{"a": 1}', ["begins with a"]),
        ("x.jsonl", '{"key": "mnist", "dataset": "MNIST", "metrics": {"luck": 1}}', ["'luck'"]),
        ("x.jsonl", '{"key": "mnist", "dataset": "MNIST", "metrics": 1}', ["metrics should be an object"]),
        ("x.csv", "Model Name,minilm_luck\nnet,0.5\n", ["'minilm_luck'"]),
        ("x.csv", ",fog,fog\n,1,1\nnet,0.1,0.2\n", ["severity twice"]),
    ],
)
def test_a_file_that_is_not_understood_is_refused_whole(publish, empty_store, path, text, words):
    with pytest.raises(StoreError) as refused:
        publish(path, text)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert empty_store.claims.sources() == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["model=net", "setting=val"], "value=…"),
        (["model"], "--map model is invalid"),
        (["model=net", "model=net"], "each once"),
        (["colour=net"], "--map colour=net is invalid"),
        (["model=name", "setting=val", "value=acc"], "no column 'name'; its columns are net, acc, n"),
        (["model=net", "setting=val", "value=acc"], "is not between 0 and 1"),
        (["model=net", "setting=val", "value=acc", "unit=percent", "n=n"], "not 'many'"),
    ],
)
def test_a_map_that_does_not_fit_is_told(publish, words, told):
    with pytest.raises(StoreError, match=told):
        publish("x.csv", "net,acc,n\nresnet50,76,many\n", *words)


OWN = "timm/test_resnet,/runs/final.pth.tar"
WORDS = ("model=net", "setting=val", "value=acc", "unit=percent")


@pytest.mark.parametrize("named", ["before", "after"])
def test_a_claim_about_a_file_is_one_about_its_short_name(publish, empty_store, named):
    put(empty_store, OWN, "folder/test", samples_of([0, 1]), saying([0, 1]))
    if named == "before":
        empty_store.names.rename("model", OWN, "final")
    publish("x.csv", f'net,val,acc\n"{OWN}",folder/test,90\n', *WORDS)
    if named == "after":
        empty_store.names.rename("model", OWN, "final")
    (claim,) = cell(empty_store, "final", "folder/test").claims
    assert (claim.model, claim.why) == ("final", None)


@pytest.mark.parametrize("evaluated", ["before", "after"])
def test_a_model_that_the_store_has_evaluated_is_known(publish, empty_store, evaluated):
    def evaluate() -> None:
        put(empty_store, OWN, "folder/test", samples_of([0, 1]), saying([0, 1]))

    if evaluated == "before":
        evaluate()
    publish("x.csv", f'net,val,acc\n"{OWN}",folder/test,90\nother,folder/test,80\n', *WORDS)
    if evaluated == "after":
        assert [each.why for each in mapped_now(empty_store, empty_store.claims.find())] == [NO_MODEL, NO_MODEL]
        evaluate()
    told = {each.model: each.why for each in mapped_now(empty_store, empty_store.claims.find())}
    assert told == {OWN: None, "other": NO_MODEL}
    (claim,) = cell(empty_store, OWN, "folder/test").claims
    assert claim.why is None


def test_an_own_model_on_an_unknown_setting_says_that_of_the_setting(publish, empty_store):
    put(empty_store, OWN, "folder/test", samples_of([0, 1]), saying([0, 1]))
    publish("x.csv", f'net,val,acc\n"{OWN}",elsewhere,90\n', *WORDS)
    assert [each.why for each in empty_store.claims.find()] == [NO_SETTING]

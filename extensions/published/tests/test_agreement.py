"""Measured values beside published ones, by standard errors computed by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tables import cases

from testbed.claims.agreement import PublishedValues, compare, in_words
from testbed.db.store import Store
from testbed.entities import CellRecord, Claim, ClaimSource, Metric, Result

SOURCE = ClaimSource("timm", "results-imagenet.csv", "a" * 64, "timm's results", revision="aa4b585" + "0" * 33)


def result(value: float | None, n: int | None = 10_000, stderr: float | None = None, **given: Any) -> Result:
    fields: dict[str, Any] = dict.fromkeys(Result.__dataclass_fields__)
    fields |= {"model": "net", "eval_setting": "val", "metric": "top1", "slice": "overall", "unit": "fraction"}
    fields |= {"value": value, "n": n, "stderr": stderr, "evaluation_id": 1, "origin": "run", "random_weights": False}
    return Result(**{**fields, **given})


def claim(value: float, text: str = "", n: int | None = None, **given: Any) -> Claim:
    fields: dict[str, Any] = {"model": "net", "eval_setting": "val", "metric": "top1", "unit": "fraction"}
    fields |= {"value": value, "published": text or repr(value), "row": "row 2", "column": "top1", "source": SOURCE}
    return Claim(**{**fields, "n": n, **given})


@cases(
    ("measured", "published", "z", "verdict"),
    [
        # sqrt(0.36 × 0.64 / 10,000) = 0.0048
        (result(0.36), claim(0.37, "0.37000"), -0.009995 / 0.0048, "differs"),
        (result(0.36), claim(0.369, "36.90"), -0.00895 / 0.0048, "agrees"),
        (result(0.36), claim(0.35, "0.35000"), 0.009995 / 0.0048, "differs"),
        (result(0.36), claim(0.36, "36"), 0.0, "agrees"),
        # a stored error counts before that of a share
        (result(0.36, stderr=0.01), claim(0.37, "0.37000"), -0.9995, "agrees"),
        # a claim of 36 may be 36.49: half a point is no difference
        (result(0.364, n=1_000_000), claim(0.36, "36"), 0.0, "agrees"),
        (result(0.364, n=1_000_000), claim(0.36, "0.36"), 0.0, "agrees"),
        (result(0.364, n=1_000_000), claim(0.36, "36.0"), 0.0035 / 0.000481149, "differs"),
        # other samples: both errors count; sqrt(0.0048² + 0.5 × 0.5 / 2,500) = 0.0110923
        (result(0.36), claim(0.5, "0.50000", n=2500), -0.139995 / 0.0110923, "differs"),
        (result(0.36), claim(0.37, "0.37000", n=10_000), -0.009995 / 0.0048, "differs"),
        # all right, and none: as the published value says; sqrt(0.99 × 0.01 / 100) = 0.00994987
        (result(1.0, n=100, stderr=0.0), claim(0.99, "99.0000"), 0.0099995 / 0.00994987, "agrees"),
        (result(1.0, n=100), claim(0.9, "90.0000"), 0.0999995 / 0.03, "differs"),
        (result(0.0, n=100), claim(0.01, "1.0000"), -0.0099995 / 0.00994987, "agrees"),
        (result(1.0, n=100), claim(1.0, "100"), 0.0, "agrees"),
        (result(1.0, n=100), claim(0.0, "0.0"), None, "differs"),
        # of other metrics, only with an error
        (result(2.5, stderr=0.25, unit="nats"), claim(2.0, "2.00", unit="nats"), 0.495 / 0.25, "differs"),
        (result(2.5, unit="nats"), claim(2.0, "2.00", unit="nats"), None, "not compared"),
        (result(2.5, unit="nats"), claim(2.5, "2.5", unit="nats"), 0.0, "agrees"),
        (result(None), claim(0.5), None, "not compared"),
    ],
)
def test_the_difference_is_measured_in_standard_errors(measured, published, z, verdict):
    found = compare(measured, published)
    assert found.verdict == verdict
    assert found.z == (None if z is None else pytest.approx(z, rel=1e-5, abs=1e-9))


def test_a_limited_evaluation_is_of_other_samples_than_the_claim():
    measured = result(0.36, n=100, sample_limit=100)  # sqrt(0.36 × 0.64 / 100) = 0.048
    found = compare(measured, claim(0.5, "0.50000"), size=2500)
    assert found.z == pytest.approx(-0.139995 / 0.0490306, rel=1e-5)  # sqrt(0.048² + 0.01²)
    assert compare(measured, claim(0.5, "0.50000")).z == pytest.approx(-0.139995 / 0.048, rel=1e-5)
    assert "measured 36.00 ± 4.80 on 100 samples: differs by −14.0 points (z = 2.9)" in in_words(found)


def test_the_line_says_both_numbers_the_source_and_the_verdict():
    sized = {"image size": "224", "crop": "0.95"}
    told = in_words(compare(result(0.7610, n=50_000), claim(0.7613, "76.13", protocol=sized), side=224))
    assert told == "net on val: published 76.13 (timm aa4b585, 224 px); measured 76.10 ± 0.19: agrees"
    told = in_words(compare(result(0.7373, n=50_000), claim(0.7613, "76.13", protocol=sized), side=224), about=False)
    assert told == "published 76.13 (timm aa4b585, 224 px); measured 73.73 ± 0.20: differs by −2.4 points (z = 12)"
    found = compare(result(0.7610, n=50_000), claim(0.7813, "78.13", protocol={"image size": "288"}), side=224)
    assert in_words(found, about=False).endswith("measured 76.10 ± 0.19: at 288 px, not compared")
    assert compare(result(0.7610), claim(0.76, protocol={"image size": "288"})).verdict == "agrees"  # ours is not known
    of_loss = compare(result(0.5, stderr=0.01, unit="nats", metric="nll"), claim(0.25, "0.25", unit="nats"))
    assert in_words(of_loss, about=False) == (
        "nll published 0.2500 (timm aa4b585); measured 0.5000 ± 0.0100: differs by +0.25 nats (z = 24)"
    )


def evaluated(store: Store, model: str, value: float, size: int, key: str = "f") -> int:
    spec = {"transform": {"!spec": {"img_resize_size": 256, "img_crop_size": size}, "type": "StandardTransform"}}
    record = CellRecord(model, "val", key, identity={"model": {"spec": spec, "weights": "w"}})
    made = store.evaluations.begin(record, None, {}, {})
    store.evaluations.complete(
        made.id, [], [Metric("top1", value, 50_000), Metric("top1", value, 50, slice="class/cat")]
    )
    return made.id


def test_claims_are_about_the_same_weights_setting_metric_and_slice(empty_store):
    claims = [
        claim(0.7613, "76.13", model="timm/resnet50.a1_in1k@224", protocol={"image size": "224"}),
        claim(0.7813, "78.13", model="timm/resnet50.a1_in1k@288", protocol={"image size": "288"}),
        claim(0.9, "90", model="timm/resnet50.a1_in1k@224", metric="top5"),
        claim(0.9, "90", model="timm/resnet50.a1_in1k@224", eval_setting="imagenet-a"),
        claim(0.9, "90", model="timm/resnet18.a1_in1k@224"),
        claim(0.9, "90", model="timm/resnet50.a1_in1k@224", why="a mean over several eval settings"),
    ]
    empty_store.claims.add(SOURCE, [*claims, claims[0]])
    ids = [evaluated(empty_store, "timm/resnet50.a1_in1k", 0.7610, 224)]
    ids.append(evaluated(empty_store, "unknown", 0.7610, 224))
    found = PublishedValues(empty_store, ["timm/resnet50.a1_in1k", "unknown"], ["val"])
    compared = found.compare(empty_store.results.of(ids))
    assert [(each.model, each.published, each.verdict) for each in compared] == [
        ("timm/resnet50.a1_in1k", 0.7613, "agrees"),
        ("timm/resnet50.a1_in1k", 0.7813, "not compared"),
    ]
    assert not PublishedValues(empty_store, ["unknown"], ["val"])
    assert not PublishedValues(empty_store, ["timm/resnet50.a1_in1k"], ["nothing"])

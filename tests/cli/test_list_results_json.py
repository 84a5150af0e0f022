"""``testbed list results --json``."""

from __future__ import annotations

import json

from exchange_world import made_store


def test_results_as_json(ask, tmp_path):
    made_store(tmp_path / "testbed.db").close()
    rows = json.loads(ask("list", "results", "--models", "lab/net", "--json").stdout)
    assert [(row["eval_setting"], row["metric"], row["value"]) for row in rows] == [("val", "top1", 0.75)]

"""``eval.py --thumbnails``."""

from __future__ import annotations

import logging

from cli_world import LOGREG
from click.testing import CliRunner

from testbed.cli.eval import command
from testbed.db.store import Store


def test_a_run_stores_thumbnails_once_and_says_how_many(tmp_path, monkeypatch):
    monkeypatch.setattr(logging.getLogger("testbed"), "handlers", [])
    url = str(tmp_path / "testbed.db")
    words = [*LOGREG, "digits-c.gaussian_noise.3", "--executor", "inline", "--limit", "10", "--thumbnails"]
    done = CliRunner().invoke(command, [*words, "--db-url", url])
    assert "20 new thumbnails, 0.0 MB" in done.output  # each digit as it is, and with noise
    assert "0 new thumbnails, 0.0 MB" in CliRunner().invoke(command, [*words, "--db-url", url]).output
    with Store.open(url) as store:
        assert len([each for each in store.evaluations.find() if each.status == "complete"]) == 2
    done = CliRunner().invoke(command, [*words, "--no-db"])
    assert "--thumbnails adds to the store; it cannot be used with --no-db" in str(done.output)

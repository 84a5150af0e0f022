"""``testbed publish``: a folder for a repository, taken back by ``testbed published add``."""

from __future__ import annotations

import json

import pytest
from exchange_world import QUESTION, made_store

pytestmark = pytest.mark.usefixtures("shared_cache")  # which knows the libraries' names of models


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_store(tmp_path / "testbed.db").close()


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_results_and_site_are_equal_each_time(made, ask, tmp_path):
    done = ask("publish", "results")
    assert done.stdout.startswith("6 values of 3 cells written to results, with a site of ")
    assert "note: 1 metrics have no value" in done.stderr
    ask("publish", "again/results")
    assert files(tmp_path / "results") == files(tmp_path / "again" / "results")
    everything = b"".join(files(tmp_path / "results").values())
    assert str(tmp_path).encode() not in everything
    assert (tmp_path / "results" / "site" / "index.html").exists()


def test_the_site_has_what_is_published_and_nothing_else(made, ask, tmp_path):
    ask("publish", "results", "--models", "lab/net")
    site = b"".join(files(tmp_path / "results" / "site").values())
    assert b"lab/net" in site
    assert QUESTION.encode() not in site


def test_it_is_taken_back(made, ask, tmp_path):
    ask("publish", "results", "--no-site")
    assert not (tmp_path / "results" / "site").exists()
    (added,) = json.loads(ask("published", "add", "results", "--json").stdout)
    assert (added["name"], added["claims"], added["new"]) == ("results", 6, 6)
    (again,) = json.loads(ask("published", "add", "results", "--json").stdout)
    assert again["new"] == 0
    assert "75.00 %  top1, results" in ask("published", "show", "lab/net", "val").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--models", "nobody"], "has no outputs of model 'nobody'"),
        (["--on", "nowhere"], "has no outputs of eval setting 'nowhere'"),
        (["--models", "lab/net", "--on", QUESTION], "none of these results was measured here"),
    ],
)
def test_mistakes(made, refusal, words, said):
    assert said in refusal("publish", "results", *words)

"""What commands print on a terminal of 80 columns: no line is longer, and no number is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stored_cells import put, samples_of, saying

from testbed.cli.program import SECTIONS
from testbed.console.columns import folded
from testbed.console.output import fitted
from testbed.db.store import Store

MODELS = [f"vit_large_patch14_clip_224.openai_ft_in12k_in1k_with_recipe_{each}_of_2026" for each in ("a", "b", "c")]
SETTINGS = [f"imagenet-validation-center-crop-gaussian_noise.severity.{each}.seed.2026" for each in (1, 2)]
NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*")

# Every verb that prints a table of results, with words for the store of long names.
TABLES = {
    "list": ["list", "results"],
    "show": ["show", MODELS[0], SETTINGS[0]],
    "grid": ["grid", "*"],
    "why": ["why", "1", "3"],
    "published": ["published", "show", MODELS[0], SETTINGS[0]],
    "rank": ["rank", *SETTINGS],
    "compare": ["compare", *MODELS, "--on", *SETTINGS],
    "groups": ["groups", SETTINGS[0], "--by", "class"],
    "hardest": ["hardest", SETTINGS[0]],
    "confusions": ["confusions", SETTINGS[0]],
    "agreement": ["agreement", SETTINGS[0]],
    "borda": ["borda", *SETTINGS, "--metric", "top1"],
    "calibrate": ["calibrate", SETTINGS[0], "--labels", "labels.csv", "--models", MODELS[0], "--score", "top1"],
    "store": ["store", "status"],
}
OTHERS = {
    *("run", "rescore", "corrupt", "explain", "compare-recorded"),  # they need models or recorded answers
    *("serve", "site", "figures", "import", "export"),  # they print no tables
}


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of long names, with a claim and human labels."""
    monkeypatch.chdir(tmp_path)
    samples = samples_of([0, 1, 2, 3] * 10)
    with Store.create("testbed.db") as store:
        store.leases.begin_run(f"testbed run {' '.join(MODELS)} --on {' '.join(SETTINGS)}")
        for place, model in enumerate(MODELS):
            for setting in SETTINGS:
                put(store, model, setting, samples, saying([0, 1, 2, 3] * (9 - place) + [0] * (4 + 4 * place)))
        store.leases.end_run("complete")
    labels = "".join(f"{each.id},{place % 3 // 2}\n" for place, each in enumerate(samples))
    Path("labels.csv").write_text(f"id,label\n{labels}")
    Path("blog.csv").write_text(f"net,acc\n{MODELS[0]},90.1\n")


def test_every_verb_is_told_of() -> None:
    verbs = {name for section in SECTIONS.values() for name in section}
    assert verbs == TABLES.keys() | OTHERS


@pytest.mark.parametrize("words", TABLES.values(), ids=TABLES)
def test_lines_fit_and_numbers_stay_whole(
    words: list[str], wide: None, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if words[0] == "published":
        told = ["--map", "model=net", f"setting={SETTINGS[0]}", "value=acc", "unit=percent", "--source", "a blog"]
        ask("published", "add", "blog.csv", *told)
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = ask(*words)
    monkeypatch.setenv("COLUMNS", "80")
    done = ask(*words)
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    cells = NUMBER.findall(re.sub("|".join(map(re.escape, (*MODELS, *SETTINGS))), "", whole.stdout + whole.stderr))
    assert set(cells) <= set(NUMBER.findall(done.stdout + done.stderr))


@pytest.mark.parametrize("width", [7, 12, 20])
def test_names_go_on_in_the_next_line_and_numbers_stay_whole(width: int) -> None:
    for name in (*MODELS, *SETTINGS, "digits-pgd.linf.eps0.1", "99,999 of 100,000"):
        lines = folded(name, width)
        assert max(map(len, lines)) <= width
        assert "".join(lines).replace(" ", "") == name.replace(" ", "")
        assert NUMBER.findall(" ".join(lines)) == NUMBER.findall(name)


def test_a_table_that_is_too_wide_has_its_columns_in_tables_below_which_name_the_rows() -> None:
    rows = [["a model of mine", *(f"{place}.{row}" for place in range(10))] for row in range(2)]
    text = fitted(["model", *(f"column {place}" for place in range(10))], rows, range(1, 11), 40)
    parts = [part.splitlines() for part in text.split("\n\n")]
    assert [line for part in parts for line in part if len(line) > 40] == []
    for row in range(2):
        assert [part[3 + row].split()[4:] for part in parts] == [
            [f"{place}.{row}" for place in chosen] for chosen in (range(0, 3), range(3, 6), range(6, 9), range(9, 10))
        ]

"""``eval.py --clip-cc``: what CLIP-CC-Bench's configuration file and command mean here."""

from __future__ import annotations

import re

import pytest
from clip_cc_file import CONFIG
from scored_captions import put_scored, row

from testbed.db.store import Store
from testbed.errors import DefinitionError, RunError, UnknownNameError
from testbed.execution.report import Outcome
from testbed.execution.resources import choose_devices
from testbed.extensions.clip_cc_bench import run as clip_cc
from testbed.extensions.clip_cc_bench.run import export_run, translate
from testbed.graph.options import RunOptions
from testbed.inputs import Inputs
from testbed.registry import registry


@pytest.fixture
def bench(tmp_path):
    """CLIP-CC-Bench's folders, with the configuration file where it lies there."""
    folder = tmp_path / "clip-cc-bench"
    (folder / "src" / "configs").mkdir(parents=True)
    (folder / "data" / "models").mkdir(parents=True)
    (folder / "src" / "configs" / "nv-embed.yaml").write_text(CONFIG)
    return folder


def config_file(bench, *changes):
    path = bench / "src" / "configs" / "nv-embed.yaml"
    text = CONFIG
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


def asked(bench, *changes, base_dir=None, models=(), predictions=None):
    return translate(config_file(bench, *changes), base_dir, models, predictions)


def inputs_of(found):
    return Inputs().but(**found.inputs)


def replay(bench, *names):
    return tuple(f"replay:{bench / 'data' / 'models' / name}.json" for name in names)


def test_the_file_by_itself(bench):
    found = asked(bench)
    assert found.models == replay(bench, "internvl", "llava_next_video")
    assert found.settings(registry) == ["clip-cc-bench@nv-embed"]
    assert found.results == bench / "results"
    assert inputs_of(found) == Inputs(
        clip_cc_ground_truth=str(bench / "data/ground_truth/clip_cc_dataset.json"),
        predictions=str(bench / "data" / "models"),
    )


def test_models_and_predictions_can_be_given(bench, tmp_path, monkeypatch):
    (tmp_path / "names.txt").write_text("longva\n# nobody\noryx\n")
    (bench / "data" / "models" / "oryx.jsonl").write_text("")
    words = ["internvl", str(tmp_path / "names.txt"), "replay:/x/a.json", "b.json", "l*"]
    found = asked(bench, models=words)
    lines = f"replay:{bench / 'data' / 'models' / 'oryx.jsonl'}"
    assert found.models == (
        *replay(bench, "internvl", "longva"),
        *(lines, "replay:/x/a.json", "replay:b.json"),
        *replay(bench, "l*"),
    )
    monkeypatch.chdir(tmp_path)
    found = asked(bench, models=["internvl"], predictions="mine")
    assert found.models == (f"replay:{tmp_path / 'mine' / 'internvl.json'}",)
    assert inputs_of(found).predictions == str(tmp_path / "mine")


def test_another_base_folder(bench, tmp_path):
    other = tmp_path / "other"
    with pytest.raises(DefinitionError, match=r"--base-dir .*other: no such folder"):
        asked(bench, base_dir=other)
    other.mkdir()
    found = asked(bench, base_dir=other)
    assert found.models == replay(other, "internvl", "llava_next_video")
    assert found.results == other / "results"
    assert inputs_of(found).clip_cc_base == str(other)
    assert inputs_of(found).clip_cc_ground_truth == str(other / "data/ground_truth/clip_cc_dataset.json")
    found = asked(bench, ('"results"', '"/elsewhere"'), base_dir=other)
    assert str(found.results) == "/elsewhere"


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ([("enabled: true", "enabled: false")], "clip-cc-bench.coarse@nv-embed"),
        ([("enabled: true", "enabled: false"), ('"nltk"', '"pysbd"')], "clip-cc-bench.coarse@nv-embed"),
        ([('"nltk"', '"auto"')], "clip-cc-bench@nv-embed"),
        ([('"nltk"', '"pysbd"')], "clip-cc-bench.pysbd@nv-embed"),
        ([('"nltk"', '"sentencex"')], "clip-cc-bench.sentencex@nv-embed"),
        ([('name: "nv-embed"', 'name: "gte"')], "clip-cc-bench@gte"),
    ],
)
def test_how_sentences_are_compared_is_part_of_the_settings_name(bench, changes, setting):
    assert asked(bench, *changes).settings(registry) == [setting]


def test_further_decoders(bench):
    registry.load()
    found = asked(bench, ("enabled: true", "enabled: false"))
    both = ["clip-cc-bench.coarse@nv-embed", "clip-cc-bench.coarse@digits-clip"]
    assert found.settings(registry, ["digits-clip", "digits-cli?"]) == both
    with pytest.raises(UnknownNameError, match="unknown model 'digits-klip'"):
        found.settings(registry, ["digits-klip"])


def test_what_the_file_says_of_the_run(bench, monkeypatch):
    monkeypatch.setattr("testbed.execution.resources.visible_gpus", lambda: 2)
    options = asked(bench, ('"cuda:0"', '"cuda:1"')).options(RunOptions(plugins=("/a.py",), limit=3))
    path = str(bench / "src" / "configs" / "nv-embed.yaml")
    assert options == RunOptions(
        plugins=("/a.py", path),
        limit=3,
        gpus=(1,),
        clear_cache_interval=25,
        progress_interval=10,
        inputs=inputs_of(asked(bench)),
    )
    assert choose_devices(options) == ["cuda:1"]
    options = asked(bench, ('"cuda:0"', '"cpu"')).options(RunOptions())
    assert choose_devices(options) == ["cpu"]
    options = asked(bench, ('"cuda:0"', '"cuda"')).options(RunOptions())
    assert choose_devices(options) == ["cuda:0"]
    options = asked(bench, ('device: "cuda:0"', "")).options(RunOptions())
    assert (options.gpus, options.cpu_processes) == (None, None)
    assert asked(bench).options(RunOptions(gpus=(1,))).gpus == (1,)
    assert choose_devices(asked(bench).options(RunOptions(cpu_processes=1))) == ["cpu"]
    monkeypatch.setattr("testbed.execution.resources.visible_gpus", lambda: 0)
    with pytest.raises(
        RunError, match=r"nv-embed\.yaml: processing\.device is cuda:0, but torch sees no GPU; write cpu"
    ):
        asked(bench).options(RunOptions())
    with pytest.raises(RunError, match=r"processing\.device is mps, which testbed does not support"):
        asked(bench, ('"cuda:0"', '"mps"')).options(RunOptions())


def test_nobody_to_evaluate(bench):
    changes = [('\n  - "internvl"\n  - "llava_next_video"', " []")]
    with pytest.raises(DefinitionError, match=r"names no captioners \(models_to_evaluate\); give --models"):
        asked(bench, *changes)
    assert asked(bench, *changes, models=["a"]).models == replay(bench, "a")


def test_the_files_are_written_after_a_run(tmp_path, capsys):
    model, settings = "replay:/x/a.json", ("clip-cc-bench@gte", "clip-cc-bench@nv-embed")
    with Store.create(str(tmp_path / "testbed.db")) as store:
        for setting in (*settings, "captions:/y.json@gte"):
            put_scored(store, model, setting, {"v1": row(0.5, 0.5, 0.5)})
        put_scored(store, "replay:/x/b.json", settings[0], {"v1": row(0.5, 0.5, 0.5)})
        outcomes = [Outcome(model, setting, "complete") for setting in ("clip-cc-bench", *settings)]
        export_run(store, outcomes, tmp_path / "results")
        assert "2 evaluations by gte, nv-embed: 9 files written to" in capsys.readouterr().err
        export_run(store, outcomes[:2], tmp_path / "again")
        assert "2 evaluations by gte, nv-embed" in capsys.readouterr().err  # the ranking is that of all decoders
        export_run(store, outcomes[:1], tmp_path / "more")
    assert "no captioner was scored, so nothing is written to" in capsys.readouterr().err
    assert not (tmp_path / "more").exists()
    written = {path.name for path in (tmp_path / "results").rglob("*.*")}
    assert written == {"a_results.csv", "a_results.json", "a_status.csv", "a_summary.json", "ranking.csv"}


def test_the_settings_name_is_that_of_the_registry():
    from testbed.eval_settings.clip_cc_bench import NAME

    assert clip_cc.SETTING == NAME


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--clip-cc", "absent.yaml"], "Error: the configuration file .*absent.yaml cannot be read"),
        (["--clip-cc", "odd.yaml"], "Error: .*odd.yaml: the key 'decoders' is not known"),
        (["--clip-cc", "plain.yaml"], "Error: .*plain.yaml names no captioners"),
        (
            ["--models", "a", "--eval-settings", "b", "--base-dir", "."],
            "Error: --base-dir requires --clip-cc",
        ),
        (["--eval-settings", "b"], "Error: --models is missing; write: "),
        (["--models", "a"], "Error: --eval-settings is missing; write: "),
    ],
)
def test_mistakes_on_the_command_line(program, tmp_path, words, said):
    (tmp_path / "odd.yaml").write_text("decoders: {}")
    (tmp_path / "plain.yaml").write_text("decoder: {name: gte, type: gte}")
    done = program("eval.py", *words, code=None)
    assert done.returncode != 0
    assert re.search(said, done.stderr.splitlines()[-1]), done.stderr

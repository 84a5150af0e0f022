"""``testbed export webdataset``: what it writes of which eval setting, and its clear errors."""

from __future__ import annotations

import numpy as np
import pytest
import wds_world as world
from click.testing import CliRunner

from testbed.data.sets.digits import Digits
from testbed.data.webdataset.source import WebDataset
from testbed.errors import DataError, DefinitionError, UnknownNameError
from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
from testbed.eval_settings.digits import TEMPLATES
from testbed.extensions.exchange.commands import webdataset as program


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    monkeypatch.setattr(BENCHMARKS, "_opened", {})


def run(*words):
    result = CliRunner().invoke(program.command, [str(word) for word in words], standalone_mode=False)
    if result.exception:
        raise result.exception
    assert result.return_value == 0, result.output
    return result.output


def test_digits_are_written_with_their_class_names_and_templates(tmp_path):
    said = run("-d", "digits", "-o", tmp_path / "out", "--max-count", "200")
    assert "540 images written to" in said
    assert "in 3 shards (classification)" in said
    source = WebDataset(tmp_path / "out")
    assert source.targets == Digits("test").targets
    assert source.templates == TEMPLATES
    assert np.array_equal(np.asarray(source.image(400)), np.asarray(Digits("test").image(400)))


def test_another_split_is_that_of_the_data_set(tmp_path):
    run("--dataset", "digits-even", "--split", "train", "--output", tmp_path, "--image-format", "png")
    source = WebDataset(tmp_path, "train")
    assert source.targets == Digits("train", [0, 2, 4, 6, 8]).targets
    assert source.class_names == ["zero", "two", "four", "six", "eight"]
    with pytest.raises(DataError, match="digits has no split 'val'; its splits are test, train"):
        run("-d", "digits", "-s", "val", "-o", tmp_path)
    with pytest.raises(DefinitionError, match="not 'val'"):
        run("-d", "digits-even", "-s", "val", "-o", tmp_path)


def test_some_samples_of_a_data_set_are_those_of_the_setting(tmp_path):
    run("-d", "digits_10percent", "-o", tmp_path)
    assert WebDataset(tmp_path).targets == Digits("test").targets[::10]


def test_a_webdataset_is_written_again(tmp_path):
    captions = {"s": "a dog\nein Hündchen".encode(), "t": b"a cat"}
    world.write_split(tmp_path / "wds_pets", [world.samples(captions, "txt")], "val", dataset_type="retrieval")
    run("-d", "wds/pets", "-s", "val", "-o", tmp_path / "out", "--retrieval", "-r", tmp_path)
    assert WebDataset(tmp_path / "out", "val").targets == [["a dog", "ein Hündchen"], ["a cat"]]
    with pytest.raises(DataError, match=r"wds/pets has no split 'train'; its splits are test, val"):
        run("-d", "wds/pets", "-s", "train", "-o", tmp_path / "out", "--data-root", tmp_path)


@pytest.mark.parametrize("flag", ["--retrieval", "--multilabel"])
def test_a_kind_that_is_not_the_data_sets_is_refused(tmp_path, flag):
    with pytest.raises(DataError, match=rf"{flag} was given, but digits is a classification data set"):
        run("-d", "digits", "-o", tmp_path / "out", flag)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["digits-inverted", "digits-pgd.linf.eps0.1", "digits-c.contrast.3"])
def test_settings_that_change_their_images_are_refused(tmp_path, name):
    with pytest.raises(DataError, match="changes the images"):
        run("-d", name, "-o", tmp_path / "out")


def test_an_unknown_name_suggests(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'digits'"):
        run("-d", "digit", "-o", tmp_path / "out")


def test_a_split_that_is_there_is_left_alone(tmp_path):
    run("-d", "digits_10percent", "-o", tmp_path)
    with pytest.raises(DataError, match="already exists"):
        run("-d", "digits_10percent", "-o", tmp_path)
    run("-d", "digits_10percent", "-o", tmp_path, "--overwrite", "--max-count", "10")
    assert len(WebDataset(tmp_path)) == 54


def test_prompts_by_class_are_left_out_and_said_so(tmp_path, monkeypatch):
    source = Digits("test", [0, 1])
    wanted = program.ExportRequest(source, "classification", ["0", "1"], {"0": ["nought"], "1": ["one"]})
    monkeypatch.setattr(program, "find", lambda *given: wanted)
    said = run("-d", "two-digits", "-o", tmp_path / "out")
    assert "per-class prompts of this setting are not exported" in said
    written = WebDataset(tmp_path / "out")
    assert (written.class_names, written.templates) == (["0", "1"], None)

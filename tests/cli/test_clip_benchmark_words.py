"""What users of CLIP benchmark type: its options, its lists of data sets, its captioners and its rarer data sets."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from testbed.cli.eval import command
from testbed.cli.options.clip_benchmark_words import HINTS
from testbed.cli.options.tasks import as_captioners
from testbed.console.options import UnknownOption
from testbed.errors import DataError, MissingExtraError
from testbed.registry import registry
from testbed.registry.select import select


def refusal(*words: str) -> str:
    result = CliRunner().invoke(command, words, standalone_mode=False)
    assert isinstance(result.exception, UnknownOption)
    return result.exception.message


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--pretrained_model openai", "name models as ARCHITECTURE,PRETRAINED"),
        ("--model ViT-B-32 --pretrained laion400m_e32", "name models as ARCHITECTURE,PRETRAINED"),
        ("--dataset=cifar10", "--on (in eval.py --eval-settings)"),
        ("--dataset_root=root", "--data-root"),
        ("--dump_templates", "testbed export clip-benchmark DIR --dump-templates"),
        ("--dump_classnames", "testbed export clip-benchmark DIR --dump-classnames"),
        ("--skip_existing", "stored results are never computed again"),
    ],
)
def test_an_option_of_clip_benchmark_is_answered_with_ours(words: str, hint: str) -> None:
    assert hint in refusal(*words.split())


def test_hints_are_for_options_that_we_do_not_have() -> None:
    ours = {name for parameter in command.params for name in parameter.opts}
    assert not ours & set(HINTS)
    theirs = "fewshot_k fewshot_lr fewshot_epochs val_proportion custom_template_file save_clf load_clfs recall_k"
    assert {f"--{name.replace('_', '-')}" for name in theirs.split()} <= ours


def test_underscores_are_as_good_as_dashes(program) -> None:
    words = ("--models", "digits-clip", "--eval_settings", "dummy", "--batch_size", "4", "--executor=inline")
    done = program("eval.py", *words, "--json", "--db_url=own.db")
    (outcome,) = json.loads(done.stdout)["outcomes"]
    assert (outcome["setting"], outcome["status"]) == ("dummy", "complete")


def test_the_lines_of_its_multilingual_list_are_names(tmp_path: Path) -> None:
    registry.load()
    (tmp_path / "list.txt").write_text("multilingual_mscoco_captions,es\nmultilingual_mscoco_captions,en\n"
                                       "imagenet1k,zh\nimagenet1k,jp\nimagenet1k,en\nwds/pets,fr\n")  # fmt: skip
    chosen = select(registry.eval_settings, registry.eval_setting_collections, [str(tmp_path / "list.txt")])
    assert chosen == [
        *("multilingual_mscoco_captions.zeroshot.es", "multilingual_mscoco_captions"),
        *("imagenet1k.zeroshot.zh", "imagenet1k.zeroshot.jp", "imagenet1k", "wds/pets.zeroshot.fr"),
    ]
    assert registry.eval_settings.canonical("imagenet1k,xx") is None


def test_a_coca_is_a_captioner_where_captions_are_asked_for() -> None:
    registry.load()
    coca = "coca_ViT-L-14,laion2b_s13b_b90k"
    assert as_captioners([coca, f"captioner/{coca}", "replay:a.json"], "captioning") == [
        *(f"captioner/{coca}", f"captioner/{coca}", "replay:a.json"),
    ]
    assert as_captioners([coca], None) == as_captioners([coca], "zeroshot_retrieval") == [coca]


def test_imagenet1k_unverified_is_imagenet1k() -> None:
    for split in ("", ".train"):
        one, other = (registry.get_eval_setting(f"imagenet1k{name}{split}") for name in ("", "-unverified"))
        assert (other.dataset, other.size) == (one.dataset, one.size)


WATERMARK = """
class AddWatermark:
    def __init__(self, side):
        self.side = side

    def __call__(self, image):
        return image + self.side
"""


def test_imagenet_w_is_val_under_the_watermark_of_its_package(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    setting = registry.get_eval_setting("imagenet-w")
    assert setting.dataset.spec() == registry.get_eval_setting("val").dataset.spec()
    if importlib.util.find_spec("imagenet_w") is None:
        with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[watermark\]'"):
            setting.dataset.open()
    (tmp_path / "imagenet_w").mkdir()
    (tmp_path / "imagenet_w" / "__init__.py").write_text(WATERMARK)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match="val does not exist"):
        setting.dataset.open()
    assert setting.perturbation_fn_cpu(torch.zeros(3, 6, 8)).unique().tolist() == [6]
    sys.modules.pop("imagenet_w", None)

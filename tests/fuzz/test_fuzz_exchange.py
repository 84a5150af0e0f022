"""Published tables and configuration files of other programs, and exports that are imported again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from fuzzing import damaged_file, damaged_json, damaged_table, fuzzed, mangled, robust, trial
from hypothesis import example, given
from hypothesis import strategies as st
from stored_cells import put_numbers

from testbed.claims.tables import metric_in
from testbed.data.sets import clip_cc_config
from testbed.db.store import Store
from testbed.entities import Metric
from testbed.extensions.clip_benchmark import clip_benchmark_files
from testbed.extensions.published.importing import import_results
from testbed.metric_specs import MetricSpec
from testbed.metrics.scorers.classification import NLL, top
from testbed.models.loading import vlmeval_config
from testbed.models.loading.decoder_file import from_config
from testbed.stored_results.imagenet_testbed_table import as_percent, export_csv, split_column

IMAGENET = (
    ("model", "val", "imagenetv2", "vid_pm0"),
    ("resnet50", "76.13", "63.3", ""),
    ("alexnet", "56.5", "nan", "40"),
)
TYPES = (("model", "model_type"), ("resnet50", "STANDARD"), ("alexnet", "STANDARD"))
RECORD = {
    "dataset": "cifar10", "model": "ViT-B-32", "pretrained": "openai", "task": "zeroshot_classification",
    "language": "en",
    "metrics": {"acc1": 0.89, "acc5": 0.99, "mean_per_class_recall": None},
}  # fmt: skip
PROBE = {
    **RECORD, "task": "linear_probe",
    "metrics": {"lp_acc1": 0.9, "fewshot_k": 5, "seed": 1, "epochs": 10, "normalized": True, "weight_decay": 0.1},
}  # fmt: skip
TABLE = (
    tuple("dataset model pretrained task acc1 image_retrieval_recall@5 fewshot_k normalized language".split()),
    ("cifar10", "ViT-B-32", "openai", "zeroshot_classification", "0.89", "", "", "", "en"),
    ("flickr30k", "ViT-B-32", "openai", "zeroshot_retrieval", "", "0.7", "", "", "zh"),
    ("cifar10", "ViT-B-32", "", "linear_probe", "0.9", "", "5.0", "True", ""),
)
SUMMARY = {
    "embedding_model_name": "nvembed", "model_name": "qwen", "successful_evaluations": 10,
    "coarse_grained_stats": {"mean": 0.5, "std": 0.1}, "hybrid_stats": {"hm_cf": {"mean": 0.4, "std": 0.2}},
}  # fmt: skip
FIRST = {
    "decoder_name": "nvembed",
    "model_name": "qwen",
    "metrics": {"coarse_similarity": {"mean": 0.5}},
    "scale": "raw",
}
AGGREGATED = (("Model Name", "nvembed_coarse", "nvembed_fine_f1", "nvembed_hm_cf"), ("qwen", "0.5", "0.4", ""))
CELLS = (
    "100.0000001",
    "-0",
    "0.5",
    "1_0",
    "٣",
    "nan",
    "inf",
    "1e400",
    "-inf",
    "True",
    "image_retrieval_recall@" + "9" * 5000,
)

damaged_tables = st.one_of(
    damaged_table(*IMAGENET, cells=CELLS), damaged_table(*TABLE, cells=CELLS), damaged_table(*AGGREGATED, cells=CELLS)
)
damaged_records = damaged_json(RECORD, [RECORD, PROBE], SUMMARY, FIRST)


def store_in(folder: Path, template: Path) -> Store:
    return Store.open(f"sqlite:///{shutil.copy(template, folder / 'store.db')}", "write")


@fuzzed()
@given(content=st.one_of(damaged_tables, damaged_records), table=st.booleans(), types=damaged_table(*TYPES))
@example(content=json.dumps({**SUMMARY, "coarse_grained_stats": {"mean": 10**400}}).encode(), table=False, types=b"")
@example(content=json.dumps({**SUMMARY, "successful_evaluations": 10**400}).encode(), table=False, types=b"")
@example(content=json.dumps({**FIRST, "metrics": {"coarse_similarity": 1}}).encode(), table=False, types=b"")
def test_imports(content: bytes, table: bool, types: bytes, tmp_path: Path, sqlite_template: Path) -> None:
    with trial(tmp_path, sqlite_template.parent) as folder, store_in(folder, sqlite_template) as store:
        path = folder / ("table.csv" if table else "record.json")
        path.write_bytes(content)
        (folder / "types.csv").write_bytes(types)
        report = import_results(store, path)
        assert report.new == report.values
        assert report.cells == len({(each.model, each.eval_setting) for each in store.results.find()})
        assert import_results(store, path).new == 0
        import_results(store, path, folder / "types.csv")


@fuzzed(3)
@given(first=damaged_records, second=damaged_records)
def test_imports_of_folders(first: bytes, second: bytes, tmp_path: Path, sqlite_template: Path) -> None:
    with trial(tmp_path, sqlite_template.parent) as folder, store_in(folder, sqlite_template) as store:
        (folder / "in").mkdir()
        (folder / "in" / "1.json").write_bytes(first)
        (folder / "in" / "2.json").write_bytes(second)
        import_results(store, folder / "in")


words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
fractions = st.floats(0, 1)


@fuzzed(3)
@given(cells=st.dictionaries(st.tuples(words, words), fractions, min_size=1, max_size=5))
def test_exports_are_imported_as_they_were(
    cells: dict[tuple[str, str], float], tmp_path: Path, sqlite_template: Path
) -> None:
    with trial(tmp_path, sqlite_template.parent) as folder, store_in(folder, sqlite_template) as store:
        for cell, value in cells.items():
            put_numbers(store, *cell, Metric("top1", value))
        wanted = {(each.model, each.eval_setting): each.value for each in store.results.find()}
        export_csv(store.results.find(), folder / "table.csv")
        records = [record for _, record in clip_benchmark_files.records_by_cell(store.results.find())]
        clip_benchmark_files.write_json(records, folder / "records")
        clip_benchmark_files.write_csv(records, folder / "records.csv")
        for number, name in enumerate(("table.csv", "records", "records.csv")):
            (folder / f"{number}").mkdir()
            with store_in(folder / f"{number}", sqlite_template) as other:
                if name == "table.csv" and max(cells.values()) <= 0.01:
                    continue  # a table of such numbers is taken for one of fractions
                import_results(other, folder / name)
                found = {
                    (each.model, each.eval_setting): each.value
                    for each in other.results.find()
                    if each.metric == "top1"
                }
                assert found == wanted


@fuzzed()
@given(
    text=mangled("76.13", "1e-3", "nan", "-inf", ".5"),
    whole=st.sampled_from((100, 1)),
    spec=st.sampled_from((top(1), NLL)),
)
def test_cells_of_numbers(text: str, whole: int, spec: MetricSpec) -> None:
    with robust():
        metric = metric_in(spec, text, whole, "a cell")
        assert metric is None or spec is NLL or 0 <= (metric.value or 0) <= 1


@fuzzed()
@given(fraction=fractions)
def test_percentages_are_read_as_they_were_written(fraction: float) -> None:
    metric = metric_in(top(1), as_percent(fraction), 100, "a cell")
    assert metric is not None
    assert metric.value == fraction


@fuzzed()
@given(column=mangled("vid_pm0", "_pm10", "val"))
def test_columns(column: str) -> None:
    with robust():
        split_column(column)


# Configuration files ------------------------------------------------------------------------------------------------

YAML = (
    """decoder:
  name: nvembed
  path: decoders/nvembed
  type: nvembed
  batch_size: 4
  max_length: 512
  device_map: auto
  trust_remote_code: true
  additional_params: {instruction_for_retrieval: "Say:", torch_dtype: float16, attn_implementation: sdpa}
  fine_grained: {enabled: true, chunking_method: nltk}
processing: {device: "cuda:0", clear_cache_interval: 10, progress_interval: 5}
data_paths: {ground_truth_file: a.json, predictions_dir: b, results_base_dir: c}
models_to_evaluate: [qwen, "llava"]
logging: {level: info, log_prefix: x}
""",
    "embedding_model: &a {name: x, type: minilm}\nlogging: *a\n",
    "embedding_model: {name: x, type: sentence_transformers, path: ~nobody-here/x}\n",
    "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n<<: {decoder: {name: x, type: kalm}}\n",
    "? [a, b]\n: c\n? {a: b}\n: d\n",
)
TAGS = (
    *("!!int ''", "!!bool x", "!!float x", "!!binary 'x'", "!!timestamp x", "!!map [ab]", "!!map x", "!!set x"),
    *("!!omap [x]", "!!pairs [x]", "!!python/object/apply:os.system [x]", "2001-99-99", "0o9", "1:99", "!!null x"),
    *("!!str [x]", "!!seq x", "!!python/name:os.system", "0b", "0x", "[*a]", "<<: x", ".inf", "&a *a", "%TAG ! x"),
    *("--- ", "|\n x", "*nothing"),
)


@st.composite
def damaged_yaml(draw: st.DrawFn) -> bytes:
    text = draw(st.sampled_from(YAML))
    if draw(st.booleans()):
        values = [place for place in range(len(text)) if text[place : place + 2] in (": ", ", ")]
        place = draw(st.sampled_from(values)) + 2
        text = f"{text[:place]}{draw(st.sampled_from(TAGS))}{draw(st.sampled_from((' ', '')))}{text[place:]}"
        if draw(st.booleans()):
            end = min((found for mark in ",}]\n" if (found := text.find(mark, place)) > 0), default=len(text))
            text = text[:place] + draw(st.sampled_from(TAGS)) + text[end:]
        return text.encode()
    return draw(damaged_file(text))


@fuzzed()
@given(content=damaged_yaml())
@example(content=b"decoder: {name: x, type: kalm, trust_remote_code: !!bool x}\n")
@example(content=b"decoder: !!map x\n")
@example(content=b"decoder: {name: x, type: kalm, batch_size: !!int ''}\n")
@example(content=b"decoder: {name: x, type: kalm, path: ~nobody-here/x}\n")
def test_configurations_of_clip_cc_bench(content: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "x.yaml").write_bytes(content)
        config = clip_cc_config.read_config(folder / "x.yaml")
        for written in vars(config.data_paths).values():
            with robust(folder):
                config.resolved(written)
        from_config(config)


VLMEVALKIT = {
    "model": {
        "gpt": {"class": "GPT4V", "model": "gpt-4o", "temperature": 0, "retry": 3, "timeout": 60, "img_detail": "low"},
        "qwen": {"class": "Qwen2VLChat", "model_path": "Qwen/Qwen2-VL-2B", "min_pixels": 1000, "max_new_tokens": 5},
        "x": {"class": "OpenAIWrapper", "api_base": "http://x:8000/v1/chat/completions", "extra_body": {"a": 1}},
    },
    "data": {"MMStar": {"class": "ImageMCQDataset", "dataset": "MMStar"}, "POPE": {}},
}


@fuzzed()
@given(content=damaged_json(VLMEVALKIT))
@example(content=b'{"model": {"x": {"class": "GPT4V", "retry": "3"}}, "data": {"POPE": {}}}')
@example(content=b'{"model": {"x": {"class": "GPT4V", "extra_body": 1}}, "data": {"POPE": {}}}')
def test_configurations_of_vlmevalkit(content: bytes, tmp_path: Path) -> None:
    from testbed.registry import Catalog

    with trial(tmp_path) as folder:
        (folder / "x.json").write_bytes(content)
        vlmeval_config.read_config(folder / "x.json")
        vlmeval_config.register(folder / "x.json", Catalog(packages=(), entry_points=False))

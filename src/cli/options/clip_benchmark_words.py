"""Hints for CLIP benchmark's options that have another name here or are not needed."""

from __future__ import annotations

_STORED = "leave it out: stored results are never computed again"
_SETTINGS = "give data sets with --on (in eval.py --eval-settings), by the same names"
_MODELS = "name models as ARCHITECTURE,PRETRAINED (ViT-B-32,laion400m_e32), a collection or a text file"
_DUMP = "after the run, use: testbed export clip-benchmark DIR {}"

HINTS = {
    "--dataset": _SETTINGS,
    "--dataset-root": "give the folder with --data-root; {dataset} and {dataset_cleaned} work there too",
    "--model": _MODELS,
    "--pretrained": _MODELS,
    "--pretrained-model": _MODELS,
    "--model-type": "leave it out: a model's name determines its type",
    "--model-cache-dir": "leave it out: weights are in the libraries' own caches ($HF_HOME, $TORCH_HOME)",
    "--wds-cache-dir": "set the variable TESTBED_CACHE; copies of remote data sets are in its folder remote/",
    "--test-split": "use --split",
    "--amp": "use --dtype bfloat16 (or float16)",
    "--no-amp": "leave it out: float32 is the default, and --dtype selects another precision",
    "--num-workers": "use --workers",
    "--output": "results are in the store; testbed export clip-benchmark DIR writes them as JSON files",
    "--skip-existing": _STORED,
    "--skip-load": _STORED,
    "--feature-root": "leave it out: image embeddings are in the store",
    "--annotation-file": "put it into the data set's folder below --data-root; docs/datasets.md has the names",
    "--dump-classnames": _DUMP.format("--dump-classnames"),
    "--dump-templates": _DUMP.format("--dump-templates"),
    "--distributed": "leave it out: a run uses all GPUs; --gpus chooses some",
    "--quiet": "leave it out",
}

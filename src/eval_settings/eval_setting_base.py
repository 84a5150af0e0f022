"""Names for files that define eval settings."""

from testbed.eval_settings.base.metric import Percent, accuracy_topk
from testbed.eval_settings.base.setting import Dataset, EvalSetting, Scoring, StandardDataset
from testbed.eval_settings.base.vlmeval import VLMEvalBenchmark

__all__ = [
    "Dataset",
    "EvalSetting",
    "Percent",
    "Scoring",
    "StandardDataset",
    "VLMEvalBenchmark",
    "accuracy_topk",
]

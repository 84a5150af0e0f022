"""VLMEvalKit's helpers for scoring answers."""

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.dataset.utils.judge_util import DEBUG_MESSAGE, build_judge
from testbed.standins.vlmevalkit.dataset.utils.vqa_eval import levenshtein_distance

__all__ = ["DEBUG_MESSAGE", "build_judge", "levenshtein_distance"]

__getattr__ = refusing(__name__)

"""VLMEvalKit's helpers for scoring answers."""

from testbed.extensions.vlmevalkit.standin.absent import refusing
from testbed.extensions.vlmevalkit.standin.dataset.utils.judge_util import DEBUG_MESSAGE, build_judge
from testbed.extensions.vlmevalkit.standin.dataset.utils.multiple_choice import prefetch_answer
from testbed.extensions.vlmevalkit.standin.dataset.utils.vqa_eval import levenshtein_distance

__all__ = ["DEBUG_MESSAGE", "build_judge", "levenshtein_distance", "prefetch_answer"]

__getattr__ = refusing(__name__)

"""VLMEvalKit's helpers for many calls, and for finding options in answers."""

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.utils.matching_util import can_infer, can_infer_option, can_infer_text
from testbed.standins.vlmevalkit.utils.mp_util import track_progress_rich

__all__ = ["can_infer", "can_infer_option", "can_infer_text", "track_progress_rich"]

__getattr__ = refusing(__name__)

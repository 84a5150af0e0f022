"""VLMEvalKit's helpers for many calls, and for finding options in answers."""

from testbed.extensions.vlmevalkit.standin.absent import refusing
from testbed.extensions.vlmevalkit.standin.utils.matching_util import can_infer, can_infer_option, can_infer_text
from testbed.extensions.vlmevalkit.standin.utils.mp_util import track_progress_rich

__all__ = ["can_infer", "can_infer_option", "can_infer_text", "track_progress_rich"]

__getattr__ = refusing(__name__)

"""VLMEvalKit's helpers for many calls, and for finding options in answers."""

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.utils.matching_util import can_infer
from testbed.standins.vlmevalkit.utils.mp_util import track_progress_rich

__all__ = ["can_infer", "track_progress_rich"]

__getattr__ = refusing(__name__)

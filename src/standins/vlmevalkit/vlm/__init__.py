"""Models in VLMEvalKit's form."""

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.vlm.base import BaseModel

__all__ = ["BaseModel"]

__getattr__ = refusing(__name__)

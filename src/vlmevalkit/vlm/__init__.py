"""Models in VLMEvalKit's form."""

from testbed.vlmevalkit.absent import refusing
from testbed.vlmevalkit.vlm.base import BaseModel

__all__ = ["BaseModel"]

__getattr__ = refusing(__name__)

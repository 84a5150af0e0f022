"""Models in VLMEvalKit's form."""

from testbed.compat.vlmevalkit.standin.absent import refusing
from testbed.compat.vlmevalkit.standin.vlm.base import BaseModel

__all__ = ["BaseModel"]

__getattr__ = refusing(__name__)

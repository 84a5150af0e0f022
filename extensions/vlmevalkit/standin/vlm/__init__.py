"""Models in VLMEvalKit's form."""

from testbed.extensions.vlmevalkit.standin.absent import refusing
from testbed.extensions.vlmevalkit.standin.vlm.base import BaseModel

__all__ = ["BaseModel"]

__getattr__ = refusing(__name__)

"""Models in VLMEvalKit's form."""

from testbed.vlmevalkit.vlm.base import BaseModel

__all__ = ["BaseModel"]

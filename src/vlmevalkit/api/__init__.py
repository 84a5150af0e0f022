"""Models behind an API in VLMEvalKit's form."""

from testbed.vlmevalkit.absent import refusing
from testbed.vlmevalkit.api.base import BaseAPI

__all__ = ["BaseAPI"]

__getattr__ = refusing(__name__)

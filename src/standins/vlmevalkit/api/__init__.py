"""Models behind an API in VLMEvalKit's form."""

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.api.base import BaseAPI

__all__ = ["BaseAPI"]

__getattr__ = refusing(__name__)

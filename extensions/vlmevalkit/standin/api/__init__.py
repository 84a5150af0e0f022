"""Models behind an API in VLMEvalKit's form."""

from testbed.extensions.vlmevalkit.standin.absent import refusing
from testbed.extensions.vlmevalkit.standin.api.base import BaseAPI

__all__ = ["BaseAPI"]

__getattr__ = refusing(__name__)

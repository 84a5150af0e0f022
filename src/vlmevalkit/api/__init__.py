"""Models behind an API in VLMEvalKit's form."""

from testbed.vlmevalkit.api.base import BaseAPI

__all__ = ["BaseAPI"]

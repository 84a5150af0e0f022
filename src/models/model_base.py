"""Names for files that define models. It imports no torch."""

from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.classifier import DualEncoder, ImageEncoder, Model
from testbed.models.base.definition import LoadOptions, ModelDefinition
from testbed.models.base.generator import Generator
from testbed.models.base.published import Published
from testbed.models.base.text_encoder import TextEncoder
from testbed.models.base.transform import StandardNormalization, StandardTransform
from testbed.models.loading.vlmeval import VLMEvalModel

__all__ = [
    "DualEncoder",
    "Generation",
    "GenerationConfig",
    "Generator",
    "ImageEncoder",
    "LoadOptions",
    "Message",
    "Model",
    "ModelDefinition",
    "Published",
    "StandardNormalization",
    "StandardTransform",
    "TextEncoder",
    "VLMEvalModel",
]

"""Puts the stand-in for vLLM where Python finds it; a model whose answers are drawn, 32 in a call."""

import os
import sys
from pathlib import Path

from testbed.models.vllm_models import VllmModel
from testbed.registry import registry

PLACE = str(Path(__file__).resolve().parent.parent / "standins")
if PLACE not in sys.path:
    sys.path.insert(0, PLACE)

FOLDER = str(Path(os.environ["WORLD_MARKS"]) / "model")
registry.add_model(VllmModel("drawn", FOLDER, eval_batch_size=32, generation={"temperature": 0.9}))

"""A model that says A and notes what it was shown."""

import json
import os
from pathlib import Path

from testbed.data.rows import Picture
from testbed.models.model_base import Generation, Generator
from testbed.registry import registry

MARKS = Path(os.environ["WORLD_MARKS"])


class SaysA:
    def generate(self, messages, config):
        with (MARKS / "asked").open("a") as file:
            for message in messages:
                frames = [part for part in message.parts if isinstance(part, Picture)]
                text = "".join(part for part in message.parts if isinstance(part, str))
                mime = frames[0].mime if frames else ""
                file.write(json.dumps({"frames": len(frames), "text": text, "mime": mime}) + "\n")
        return [Generation("A") for _ in messages]


registry.add_model(Generator("counts-frames", SaysA, weights="1", architecture={"says": "A"}))

"""Models that say A, note what they were shown, and how many videos were decoded; and a judge that is pleased."""

import json
import os
from pathlib import Path

from testbed.data import video_frames
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


class Pleased:
    def generate(self, messages, config):
        return [Generation("3") for _ in messages]


def timeline(*arguments):
    with (MARKS / "decoded").open("a") as file:
        file.write("a video\n")
    return TIMELINE(*arguments)


TIMELINE, video_frames._timeline = video_frames._timeline, timeline
registry.add_model(Generator("counts-frames", SaysA, weights="1", architecture={"says": "A"}))
registry.add_model(Generator("counts-them-too", SaysA, weights="2", architecture={"says": "A"}))
registry.add_model(Generator("pleased", Pleased, weights="1", architecture={"says": "3"}))

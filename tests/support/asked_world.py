"""Questions whose right answer is known, and a model that is right as often as it is asked well."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from toy import WORK

from testbed.answers import prompts
from testbed.data.rows import Picture, Row, RowSource
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity.describe import digest, digest_bytes
from testbed.models.model_base import Generation

COUNT = 210


class Questions(RowSource):
    """Of each the right answer is B."""

    def __init__(self):
        self.name = "questions"
        self.ids = [f"{number:03d}" for number in range(COUNT)]
        self.targets = [
            {"question": f"What is in {each}?", "hint": "Look.", "A": "cat", "B": "dog", "answer": "B"}
            for each in self.ids
        ]

    def spec(self):
        return {"questions": digest(self.targets)}

    def open(self):
        return self

    def row(self, position):
        return Row(self.ids[position], self.targets[position], [Picture(PNG)])

    def digests(self, positions):
        return [digest_bytes(self.ids[place].encode()) for place in positions]


def png():
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    return file.getvalue()


PNG = png()


class Model:
    """Is right about all but every third, fifth or seventh question, as it is asked."""

    def generate(self, messages, config):
        WORK["questions asked"] += len(messages)
        return [Generation("B" if self.right(message, config) else "A") for message in messages]

    def right(self, message, config):
        text = "".join(part for part in message.parts if isinstance(part, str))
        step = 7 if "Hint:" not in text else 5 if config.system else 3
        return int(message.sample) % step != 0


def accuracy(step):
    return float(np.mean(np.arange(COUNT) % step != 0))


def asked_setting(**options):
    given = {"prompt": prompts.multiple_choice, **options}
    return EvalSetting("questions", Questions(), COUNT, task="question_answering", task_options=given)

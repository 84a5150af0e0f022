"""A judged task in one file: a toy model says which digit it sees, and a toy judge says whether that is right."""

import numpy as np

from testbed.entities import Metric, Score
from testbed.eval_settings.digits import DigitsDataset
from testbed.eval_settings.eval_setting_base import EvalSetting, Scoring
from testbed.graph.nodes import Built
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.models.model_base import Generation, Generator, Message
from testbed.registry import registry
from testbed.tasks.parts.generation import GenerationTask, texts_and_status
from testbed.tasks.task_base import add_task


class JudgedDigits(GenerationTask):
    name, scorer = "judged_digits", "judged_digits@1"

    def message(self, setting, sample, image):
        return Message([image, "Which digit is this?"], sample=sample)

    def build(self, graph):
        return Built(super().build(graph).outputs, {"verdicts": graph.answers(self.questions, by=graph.judge)})

    def questions(self, setting, values):
        texts, _ = texts_and_status(values.outputs)
        digits = [sample.target for sample in values.samples]
        return [
            Message([f"The digit is {digit}. Is {text!r} right?"]) for text, digit in zip(texts, digits, strict=True)
        ]

    def score(self, values, setting, model):
        verdicts = values.answers("verdicts", self.questions(setting, values))
        right = np.array([np.nan if each is None else each["text"] == "yes" for each in verdicts])
        judged = right[~np.isnan(right)]
        mean, stderr = mean_and_stderr(judged)
        return [Score("right", right, self.scorer)], [Metric("accuracy", mean, len(judged), stderr, scorer=self.scorer)]


class Student:
    def generate(self, messages, config):
        return [Generation(str(int(np.asarray(message.parts[0]).mean()) % 10)) for message in messages]


class Judge:
    def generate(self, messages, config):
        words = [message.parts[0].split() for message in messages]
        return [Generation("yes" if word[5].strip("'") == word[3].strip(".") else "no") for word in words]


add_task(JudgedDigits())
registry.add_model(Generator("toy-student", Student, architecture={"student": 1}))
for judge in ("toy-judge", "other-judge"):
    registry.add_model(Generator(judge, Judge, architecture={"judge": judge}))
    registry.add_eval_setting(
        EvalSetting(f"digits-by-{judge}", DigitsDataset(), 540, task="judged_digits", scoring=Scoring(by=judge))
    )

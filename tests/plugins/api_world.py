"""Settings for models on servers: the digits described, twice with equal questions, drawn, and judged."""

import numpy as np

from testbed.entities import Metric, Score
from testbed.eval_settings.digits import DigitsDataset
from testbed.eval_settings.eval_setting_base import EvalSetting, Scoring
from testbed.graph.nodes import Built
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.models.api import ApiModel
from testbed.models.base import served
from testbed.models.model_base import Generation, Generator, Message
from testbed.registry import registry
from testbed.tasks.parts.generation import GenerationTask, texts_and_status
from testbed.tasks.task_base import add_task

JUDGE = "api:judge"  # of the server OPENAI_BASE_URL
served.FIRST_WAIT = 0.001


class Judged(GenerationTask):
    name, scorer = "judged", "judged@1"

    def message(self, setting, sample, image):
        return Message([image], sample=sample)

    def build(self, graph):
        return Built(super().build(graph).outputs, {"verdicts": graph.answers(self.questions, by=graph.judge)})

    def questions(self, setting, values):
        return [Message([f"Is {text!r} right?"]) for text in texts_and_status(values.outputs)[0]]

    def score(self, values, setting, model):
        verdicts = values.answers("verdicts", self.questions(setting, values))
        right = np.array([np.nan if each is None else each["text"] == "yes" for each in verdicts])
        mean, stderr = mean_and_stderr(right[~np.isnan(right)])
        return [Score("right", right, self.scorer)], [Metric("accuracy", mean, len(right), stderr, scorer=self.scorer)]


class Student:
    def generate(self, messages, config):
        return [Generation(f"shade {np.asarray(message.parts[0]).sum()}") for message in messages]


add_task(Judged())
registry.add_model(Generator("student", Student, architecture={"student": 1}))
registry.add_model(
    ApiModel("lab-model", "toy", "http://127.0.0.1:9/v1", key_variable="LAB_KEY", retries=0, eval_batch_size=4)
)


def add(name, **options):
    registry.add_eval_setting(EvalSetting(name, DigitsDataset(), 540, **{"task": "captioning", **options}))


add("said")
add("said-again", transform=lambda image: image)  # another setting, whose questions are the same
add("asked", task_options={"prompt": "What is it?"})
add("drawn", task_options={"generation": {"temperature": 0.7}})
add("judged", task="judged", scoring=Scoring(by=JUDGE))
add("judged-by-lab", task="judged", scoring=Scoring(by="lab-model"))

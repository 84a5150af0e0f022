"""A vision-language model of transformers that notes what it is asked, and may be killed; and a set with two turns."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from testbed.answers import prompts
from testbed.data.tables.known import QuestionTable
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.models.transformers_vlm import ImageTextModel
from testbed.registry import registry

MARKS = Path(os.environ["WORLD_MARKS"])


class Noting:
    """The network, which notes each question in a file before it answers."""

    def __init__(self, network):
        self.network = network

    def eval(self):
        self.network.eval()

    def to(self, device):
        self.network.to(device)

    def generate(self, messages, config):
        with (MARKS / "asked").open("a") as file:
            for message in messages:
                file.write(f"{message.data_set} {message.sample} {len(message.history)}\n")
        if (MARKS / "deadly").exists() and is_recorded():
            os.kill(os.getpid(), signal.SIGKILL)
        return self.network.generate(messages, config)


def is_recorded():
    """Whether answers are stored, and what they were computed from."""
    with closing(sqlite3.connect(f"file:{MARKS}/killed.db?mode=ro", uri=True)) as store:
        return store.execute("SELECT COUNT(*) FROM evaluation_records").fetchone()[0] > 0


class Counted(ImageTextModel):
    def _network(self, options):
        return Noting(super()._network(options))


registry.add_model(Counted("counted", str(MARKS / "llava"), generation={"max_new_tokens": 3}))
registry.add_eval_setting(
    EvalSetting(
        name="Talks",
        dataset=QuestionTable("Talks"),
        size=None,
        task="question_answering",
        task_options={"prompt": prompts.conversation, "scoring": "exact", "report": "vqa"},
    )
)

"""Describing the photos of a table in VLMEvalKit's folder of tables, as a plug-in."""

from testbed.data.tables.known import QuestionTable
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry


class Photos(QuestionTable):
    """The table, with the answer to each question as a reference."""

    def open(self):
        source = super().open()
        source.targets = [[row["answer"]] for row in source.targets]
        return source


registry.add_eval_setting(
    EvalSetting(name="photo-questions", dataset=Photos("Photos"), size=4, task="captioning", task_options={})
)

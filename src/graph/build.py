"""Builds the nodes of a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError
from testbed.graph.message_ops import Generations, Prompt, RowAnswers
from testbed.graph.nodes import Artifact, Items, Op, OutputsOf, Rows
from testbed.graph.ops import Answers, TextEmbeddings
from testbed.models.base.capability import GenerationConfig, Message
from testbed.registry.references import IMAGE_EMBEDDINGS

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


class Graph:
    """The nodes of a cell.

    Nothing is opened or computed here: the planner looks up what is stored, and workers compute the rest.
    """

    def __init__(self, model: ModelDefinition, setting: EvalSetting) -> None:
        self.model = model
        self.setting = setting

    @property
    def judge(self) -> str:
        """The name of the setting's judge; raises DefinitionError if it has none."""
        if self.setting.scoring is None:
            raise DefinitionError(
                f"{self.setting.name} has no judge; give it scoring=Scoring(of=…, by='name of a model')"
            )
        return self.setting.scoring.by

    @property
    def judged(self) -> str:
        """The name of the setting whose outputs the judge scores: another one, or this one."""
        return (self.setting.scoring.of if self.setting.scoring is not None else "") or self.setting.name

    # One value for each sample ------------------------------------------------------------------------------------

    def rows(self, op: Op, inputs: dict[str, OutputsOf] | None = None, ones: dict[str, Artifact] | None = None) -> Rows:
        """Values of the cell's own samples; see `Rows`."""
        return Rows(op, inputs or {}, ones or {})

    def generations(
        self, message: Callable[[EvalSetting, str, Any], Message], config: GenerationConfig | None = None
    ) -> Rows:
        """The model's answer for each sample.

        Args:
            message: Makes the message from the setting, the sample's id and its RGB image (None if it has none).
            config: How text is generated.
        """
        return Rows(Generations(config or GenerationConfig(), message))

    def row_answers(self, prompt: Prompt, config: GenerationConfig, data_set: str, forced: bool = False) -> Rows:
        """The model's answer to each row of a table.

        Args:
            prompt: Makes the turns of the user from a `Row`: a list of lists of texts and `Picture`.
            config: How text is generated.
            data_set: The name of the data set, passed to models with prompts of their own.
            forced: Whether these take this prompt all the same.
        """
        return Rows(RowAnswers(config, prompt, data_set, forced))

    def outputs_of(self, setting: str) -> OutputsOf:
        """Returns the outputs of the model under test on another setting, which must have these samples."""
        return OutputsOf(setting)

    def image_embeddings(self, of: str = "", by: str = "") -> OutputsOf:
        """Embeddings of the images of this or another setting, stored once for each; by this or another model."""
        return OutputsOf(of or self.setting.name, IMAGE_EMBEDDINGS, by)

    # One value for each request -----------------------------------------------------------------------------------

    def text_embeddings(self, texts: Callable[[EvalSetting, Values], Sequence[str]], by: str = "") -> Items:
        """Embeddings of listed texts, each embedded once for each model; by this or another model."""
        return Items(TextEmbeddings(self.setting.language), texts, by)

    def answers(
        self,
        messages: Callable[[EvalSetting, Values], Sequence[Message]],
        by: str = "",
        config: GenerationConfig | None = None,
    ) -> Items:
        """Answers to listed messages of texts, such as a judge's verdicts; each different one is answered once."""
        return Items(Answers(config or GenerationConfig()), messages, by)

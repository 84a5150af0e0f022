"""The ops of generative models: what is read for a sample, and the messages that are made of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from testbed.data.picture_files import as_png
from testbed.data.rows import Picture, Row, RowSource
from testbed.data.source import ImageSource
from testbed.errors import DefinitionError, RunError
from testbed.graph.nodes import Op, Reads
from testbed.graph.ops import image_spec
from testbed.models.base.capability import GenerationConfig, Message
from testbed.tracing import own_code

if TYPE_CHECKING:
    from testbed.data.source import Source
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

TEXT = "text"  # the kind of generated rows: for each sample {"text": str or None, "finish_reason": str}
RENDERING = 1  # of how rows become messages, besides their prompt; raised when the same row gives another message

Change = Callable[[Any, str], Any]  # an image and the key of its random numbers → an image
Turn = Sequence[str | Picture]  # what the user says at a time
Prompt = Callable[[Row], Sequence[Turn]]  # the turns of the user for a row; most rows have one


@dataclass(frozen=True)
class MessageOp(Op):
    """The answer of a generative model for each sample."""

    config: GenerationConfig
    kind: ClassVar[str] = TEXT
    reads: ClassVar[Reads] = Reads.MESSAGES

    @abstractmethod
    def read(self, source: Source | None, position: int, setting: EvalSetting, sees_images: bool) -> Any:
        """Reads what a sample needs, in any thread; raises SampleError if it cannot be read."""

    @abstractmethod
    def changed(self, content: Any, sample: str, change: Change) -> Any:
        """Returns what was read, with its images changed."""

    @abstractmethod
    def turns(self, setting: EvalSetting, loaded: Any, sample: str, content: Any) -> Sequence[Message]:
        """Returns the user's turns in order; each but the first one follows the answer to the one before."""

    def spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """The pixels, the prompt, and how text is generated."""
        spec = {"task": setting.task, "generation": self.config.spec(), **self.prompt_spec(setting, seed)}
        if self.config.temperature > 0:
            spec["sampling"] = seed
        return spec

    @abstractmethod
    def prompt_spec(self, setting: EvalSetting, seed: int) -> dict[str, Any]:
        """The pixels and the prompt."""


@dataclass(frozen=True)
class Generations(MessageOp):
    """The answer to an image.

    Attributes:
        message: Makes the message from the setting, the sample's id and its image.
    """

    message: Callable[[EvalSetting, str, Any], Message]

    def read(self, source: Source | None, position: int, setting: EvalSetting, sees_images: bool) -> Any | None:
        """The transformed image; None for a model without image input."""
        if not sees_images:
            return None
        if not isinstance(source, ImageSource):
            if setting.perturbation:
                raise RunError(f"{setting.name} perturbs images, but its data set has none")
            return None
        image = source.image(position)
        return image if setting.transform is None else setting.transform(image)

    def changed(self, content: Any, sample: str, change: Change) -> Any:
        """The image, changed."""
        return None if content is None else change(content, sample)

    def turns(self, setting: EvalSetting, loaded: Any, sample: str, content: Any) -> Sequence[Message]:
        """The message."""
        return [self.message(setting, sample, content)]

    def prompt_spec(self, setting: EvalSetting, seed: int) -> dict[str, Any]:
        """The pixels and the prompt."""
        spec = {**image_spec(setting, seed), "prompt": setting.task_options.get("prompt")}
        function = getattr(self.message, "__func__", self.message)
        if own_code.is_own_function(function):
            spec["message"] = function
        return spec


@dataclass(frozen=True)
class RowAnswers(MessageOp):
    """The answer to a row of a table; to its last turn where it has several.

    Attributes:
        prompt: Makes the turns of the user from the row. A model with its own prompt for the data set
            (``prompt_for(row, data_set)`` of the loaded model) takes that instead, unless ``forced``.
        data_set: The name of the data set.
        forced: Whether models must take this prompt.
    """

    prompt: Prompt
    data_set: str
    forced: bool = False

    def read(self, source: Source | None, position: int, setting: EvalSetting, sees_images: bool) -> Row:
        """The row; without its pictures for a model that sees none."""
        if not isinstance(source, RowSource):
            found = "no data set" if source is None else f"the data set {source.name}"
            raise DefinitionError(f"{setting.name} asks questions from a table, but has {found}")
        if not sees_images:
            return Row(source.ids[position], source.targets[position])
        row = source.row(position)
        transform = setting.transform
        return row if transform is None else self.changed(row, "", lambda image, _: transform(image))

    def changed(self, content: Row, sample: str, change: Change) -> Row:
        """The row with its pictures changed; as PNG files, which keep all pixels."""
        pictures = [
            Picture(as_png(change(picture.image(), f"{sample}#{number}" if number else sample)), picture.name)
            for number, picture in enumerate(content.pictures)
        ]
        return replace(content, pictures=pictures)

    def turns(self, setting: EvalSetting, loaded: Any, sample: str, content: Any) -> Sequence[Message]:
        """The model's own prompt, else that of the data set."""
        own = getattr(loaded, "prompt_for", None)
        made = own(content, self.data_set) if callable(own) and not self.forced else None
        given = made if made is not None else self.prompt(content)
        return [Message(list(parts), sample=sample, data_set=self.data_set) for parts in given]

    def prompt_spec(self, setting: EvalSetting, seed: int) -> dict[str, Any]:
        """The prompt, and what is done to pictures; without that, models get the bytes of the table."""
        spec: dict[str, Any] = {"prompt": self.prompt, "data_set": self.data_set, "rendering": RENDERING}
        if setting.perturbation or setting.transform is not None:
            spec |= image_spec(setting, seed)
        return {**spec, "forced": True} if self.forced else spec

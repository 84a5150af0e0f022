"""The stored values of a cell, from which it is scored and from which requests to other models are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.errors import LackingEmbeddingsError
from testbed.models.base.capability import is_answer

if TYPE_CHECKING:
    import numpy as np

    from testbed.entities import SampleInfo
    from testbed.models.base.capability import Message

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class RowValues:
    """Stored embeddings.

    Attributes:
        values: Float array [n, D]; rows of images that could not be read are NaN.
        samples: The n samples, with their targets.
        errors: Position → why that image could not be read.
    """

    values: Array
    samples: Sequence[SampleInfo]
    errors: Mapping[int, str]


class Values:
    """The values of a cell.

    Args:
        outputs: Array [n, …], float, rows of unreadable samples NaN; or [n] objects, those of unreadable samples None.
        samples: The n samples.
        restricted: Whether the model has restricted the logits to the setting's ``class_sublist`` itself.
        unreadable: Positions of unreadable samples, which count as wrong.
        class_names: The class names of the data set.
        among: The logits that count, where a setting has only the classes of its data to choose from.
    """

    def __init__(
        self,
        outputs: Any,
        samples: Sequence[SampleInfo],
        restricted: bool = False,
        unreadable: Sequence[int] = (),
        class_names: Sequence[str] | None = None,
        among: Sequence[int] | None = None,
    ) -> None:
        self._outputs = outputs
        self.samples = samples
        self.restricted = restricted
        self.unreadable = unreadable
        self.class_names = class_names
        self.among = among

    @property
    def outputs(self) -> Any:
        """The outputs."""
        return self._outputs

    def texts(self, texts: Sequence[str]) -> Array:
        """The embeddings [len(texts), D] of texts; raises LackingEmbeddingsError if one is missing."""
        raise LackingEmbeddingsError("the cell has no embeddings of texts")

    def images(self) -> RowValues:
        """The judge's embeddings of the samples' images; raises LackingEmbeddingsError if one is missing."""
        raise LackingEmbeddingsError("the cell has no embeddings of images")

    def answers(self, role: str, messages: Sequence[Message]) -> list[dict[str, Any] | None]:
        """The stored answers to messages: ``text`` and ``finish_reason``; None where there is none.

        Args:
            role: The role of the answers in `Built.inputs`.
            messages: As the task lists them.
        """
        return [reply if reply is not None and is_answer(reply) else None for reply in self.replies(role, messages)]

    def replies(self, role: str, messages: Sequence[Message]) -> list[dict[str, Any] | None]:
        """Returns the answers like `answers`, and refusals: ``text`` is None, and ``finish_reason`` has the reason."""
        return [None] * len(messages)

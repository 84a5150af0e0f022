"""What tasks share that score captions with a model of their own: the scorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from testbed.errors import DataError
from testbed.metrics.caption_status import EMPTY, SCORED
from testbed.models.capability_base import EMBED_IMAGE, EMBED_TEXT
from testbed.tasks.captioning import task as captioning
from testbed.tasks.generation_base import KIND
from testbed.tasks.task_base import BoundCell, PrepareContext, Task, require

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

    Array = np.ndarray[Any, Any]


class ScorerTask(Task):
    """Captions that are stored, scored with the embeddings of a scorer.

    The captions are those of another setting's evaluation, from which the cells are derived. The scorer embeds each
    text once, whichever cell needs it, and each image once; both are stored, so that scoring again runs no model.

    Attributes:
        needs_images: Whether the scorer must embed images too.
    """

    output_kind = KIND
    has_outputs = False
    needs_images: ClassVar[bool] = False

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """As captioning: what the captioner must be able to do."""
        return captioning.route(model, setting)

    def require_scorer(self, scorer: ModelDefinition, setting: EvalSetting) -> None:
        """Checks what the scorer can do.

        Raises:
            UnsupportedError: If it cannot score this setting.
        """
        require(scorer, {EMBED_TEXT, EMBED_IMAGE} if self.needs_images else {EMBED_TEXT}, setting)

    def forward_spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """What decides the captions."""
        return captioning.forward_spec(model, setting, class_names, seed)

    def bind(self, loaded: Any, setting: EvalSetting, context: PrepareContext) -> BoundCell:
        """Never called: the model under test has said all that it is asked for."""
        raise NotImplementedError


def require_scored(status: Array, setting: EvalSetting) -> None:
    """Checks that embeddings are such that any caption could be scored.

    Args:
        status: Of each sample, after scoring.
        setting: The setting.

    Raises:
        DataError: If none could.
    """
    if np.isin(status, (SCORED, EMPTY)).any():
        return
    scorer = setting.scoring.by if setting.scoring is not None else "the scorer"
    raise DataError(
        f"{setting.name}: none of the {len(status)} captions can be scored: embeddings of {scorer} are not finite. At"
        " another --dtype they may be; --override embeds the texts again"
    )

"""Models whose outputs are computed from the stored outputs of others: nothing is loaded, and no image is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.errors import UnsupportedError
from testbed.models.base.capability import LOGITS
from testbed.models.base.definition import LoadOptions, ModelDefinition

if TYPE_CHECKING:
    from testbed.eval_settings.base.setting import EvalSetting

# The rules by which members are combined, and those by which one model is corrected.
PROBABILITIES, MEAN_LOGITS, RANKS = "mean of probabilities", "mean of logits", "mean of ranks"
TEMPERATURE, PRIOR_BY_EM, PRIOR_OF_LABELS = "temperature", "prior by expectation maximisation", "prior of the labels"
PRIOR_OF_SETTING = "prior of the labels of another setting"
REVISION = 1  # of how outputs are computed; raised when the same members give other ones


class DerivedModel(ModelDefinition):
    """A classifier that is made of the stored logits of others.

    Args:
        members: The others; one for a correction.
        rule: The rule of the derivation, one of the rules of this module.
        fitted_on: The setting that a temperature is fitted on, or whose labels a prior is counted from.
    """

    needs_torch = False

    def __init__(
        self, name: str, members: Sequence[ModelDefinition], rule: str, fitted_on: EvalSetting | None = None
    ) -> None:
        super().__init__(name, None, members[0].eval_batch_size)
        self.members = tuple(members)
        self.rule = rule
        self.fitted_on = fitted_on
        self.made_of = tuple(member.name for member in members)
        self.capabilities = frozenset({LOGITS})
        known = {member.num_classes for member in members}
        self.num_classes = known.pop() if len(known) == 1 else None
        self.model_type = members[0].model_type if len(members) == 1 else None

    def spec(self) -> dict[str, Any]:
        """Returns the rule. The members take the place of weights; the fitted data take the place of data."""
        return {"derived": self.rule, "revision": REVISION}

    def random_spec(self) -> dict[str, Any]:
        """Returns an empty description: its members are untrained."""
        return {}

    def make_network(self) -> Any:
        """Refuses, by an UnsupportedError: it has no network of its own."""
        raise UnsupportedError(
            f"{self.name} has no network: its outputs are computed from the stored outputs of"
            f" {' and '.join(self.made_of)}; wiseft: and soup: make models of weights"
        )

    def load(self, options: LoadOptions) -> Any:
        """Refuses, by an UnsupportedError, as `make_network`."""
        return self.make_network()

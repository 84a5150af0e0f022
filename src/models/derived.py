"""Models derived from others, by name; see `testbed.models.made.names` for the grammar.

From stored outputs, without a GPU: ``ensemble:A+B`` is the mean of probabilities, ``ensemble.logits:A+B`` of logits,
``ensemble.ranks:A+B`` of ranks. ``A@temperature=SETTING`` is A with a temperature that is fitted on SETTING,
``A@prior=em`` with shares of the classes that are estimated where it is evaluated, ``A@prior=oracle`` with those of the
labels there, ``A@prior=SETTING`` with those of the labels of SETTING. From weights: ``soup:A+B`` is their mean,
``wiseft:A,B,0.5`` lies between those of A and of B, and ``soup:A+B+C@@greedy=SETTING`` is the mean of those that a run
keeps by their results on SETTING.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.errors import DefinitionError
from testbed.inputs import active
from testbed.models.base.definition import ModelDefinition
from testbed.models.made import derived
from testbed.models.made.averaged import averaged
from testbed.models.made.derived import DerivedModel
from testbed.models.made.names import (
    EM,
    ENSEMBLE,
    ENSEMBLE_LOGITS,
    ENSEMBLE_RANKS,
    GREEDY,
    ORACLE,
    PRIOR,
    SOUP,
    TEMPERATURE,
    WISEFT,
    Made,
    NotMadeError,
    looks_made,
    marked,
    parse,
)
from testbed.registry import Catalog, registry

RULES = {
    (ENSEMBLE, ""): derived.PROBABILITIES,
    (ENSEMBLE_LOGITS, ""): derived.MEAN_LOGITS,
    (ENSEMBLE_RANKS, ""): derived.RANKS,
    (PRIOR, EM): derived.PRIOR_BY_EM,
    (PRIOR, ORACLE): derived.PRIOR_OF_LABELS,
}
FITTED = {TEMPERATURE: derived.TEMPERATURE, PRIOR: derived.PRIOR_OF_SETTING}


class DerivedFamily:
    """Everything that is made of other models."""

    name = "derived models"
    changes_others = True
    reads_files = True  # as models of checkpoints

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def names(self) -> Iterable[str]:
        """Lists none: there are as many as there are choices of models."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The name with the canonical names of what it is made of."""
        try:
            return str(self._parsed(name)) if looks_made(name) else None
        except NotMadeError:
            return None

    def build(self, name: str) -> ModelDefinition:
        """The model.

        Raises:
            DefinitionError: If the weights of some models cannot be averaged, or no run has chosen the members.
        """
        made = self._parsed(name)
        if made.how == GREEDY:
            return self._greedy(name, made)
        members = [self.catalog.models.get(each) for each in made.of]
        if made.how == SOUP:
            return _soup(name, members)
        if made.how == WISEFT:
            return averaged(name, members, [1 - float(made.value), float(made.value)])
        rule = RULES.get((made.how, made.value))
        if rule is not None:
            return DerivedModel(name, members, rule)
        return DerivedModel(name, members, FITTED[made.how], self.catalog.eval_settings.get(made.value))

    def _greedy(self, name: str, made: Made) -> ModelDefinition:
        """The soup of the members that a run keeps; see `testbed.runner.greedy`."""
        kept = dict(active().kept).get(name)
        if kept is None:
            raise DefinitionError(f"{name}: a run chooses its members by results on {made.value}: testbed run '{name}'")
        if isinstance(kept, str):
            raise DefinitionError(kept)
        members = [self.catalog.models.get(each) for each in kept]
        return _soup(name, members) if len(members) > 1 else members[0].under_name(name)

    def explain(self, name: str) -> str | None:
        """Explains which part of a name is wrong."""
        try:
            if looks_made(name) or (marked(name) and self.catalog.models.canonical(name.partition("@")[0])):
                self._parsed(name)
        except NotMadeError as error:
            return str(error)
        return None

    def _parsed(self, name: str) -> Made:
        return parse(name, self.catalog.models.canonical, self.catalog.eval_settings.canonical)


def _soup(name: str, members: Sequence[ModelDefinition]) -> ModelDefinition:
    return averaged(name, members, [1 / len(members)] * len(members))


registry.add_model_family(DerivedFamily(registry))

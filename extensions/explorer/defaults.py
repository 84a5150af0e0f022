"""What the pages show unless asked otherwise: the columns that come first, and the pinned models."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.db.store import Store
from testbed.entities import ELSEWHERE
from testbed.errors import unknown_name
from testbed.eval_settings.clip_benchmark_imagenet import ROBUSTNESS
from testbed.registry.catalog import Catalog
from testbed.registry.references import is_part

CLEAN = "imagenet1k"
MEAN_OF_CORRUPTIONS = "avg_corruptions"


class FirstColumns:
    """The columns that a study of robustness begins with: ImageNet, its natural shifts, the mean of its corruptions.

    The shifts are the data sets of CLIP benchmark's collection ``imagenet_robustness``, in its order, under whatever
    names the registry has settings of them.

    Args:
        catalog: The registry.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        collections = catalog.eval_setting_collections
        shifts = collections.members(ROBUSTNESS) if ROBUSTNESS in collections else []
        self._data = [self._data_of(name) for name in (CLEAN, *shifts)]

    def rank(self, column: str, setting: str | None) -> int | None:
        """Returns the place of a column among the first ones; None if it is not one of them."""
        if setting is None:
            return len(self._data) if column == MEAN_OF_CORRUPTIONS else None
        data = None if is_part(setting) else self._data_of(setting)
        return self._data.index(data) if data is not None and data in self._data else None

    def _data_of(self, name: str) -> str | None:
        """The name of a setting's data, if all of it is used as it is."""
        known = self._catalog.find_eval_setting(name)
        if known is None or known.parent_eval_setting or known.perturbation.cpu or known.perturbation.gpu:
            return None
        return getattr(known.dataset, "name", None)


def newest_own_model(store: Store, own: int, values: int) -> list[str]:
    """Returns the model that was evaluated last, if most values of the store are from elsewhere.

    Args:
        store: The results store.
        own: The number of values that were measured in this store.
        values: The number of all values.
    """
    if not own or 2 * own >= values:
        return []
    done = [each for each in store.evaluations.find(statuses=["complete"]) if each.origin not in ELSEWHERE]
    return [max(done, key=lambda each: (str(each.completed_at), each.id)).model] if done else []


def known_models(store: Store, models: Sequence[str]) -> list[str]:
    """Returns models to pin, as the store names them.

    Raises:
        UnknownNameError: If the store does not have one of them.
    """
    names = [model_facts.name for model_facts in store.results.model_facts()]
    for name in models:
        if name not in names:
            raise unknown_name("model", name, names, "the store", "testbed list models --stored")
    return list(models)

"""Opens models and settings by name, each once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from testbed.calls import catchable, reason_of
from testbed.data.class_lists import in_classes_of
from testbed.data.left_out import LeftOut
from testbed.data.source import ImageSource, Source, dataset_of
from testbed.entities import DatasetInfo, SampleInfo
from testbed.errors import DataError, TestbedError, WeightsError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.cells import LeftOuts, OpenedModel, OpenedSetting, left_out_of
from testbed.graph.nodes import OutputsOf
from testbed.graph.options import RunOptions
from testbed.identity.describe import describe, describe_fields, digest
from testbed.identity.fingerprints import weights_identity
from testbed.models.base.weights import Weights
from testbed.models.model_base import ModelDefinition
from testbed.provenance.remembered import RememberedWeights
from testbed.registry.catalog import Catalog
from testbed.registry.table import Registry
from testbed.tasks.task_base import get_task
from testbed.tracing import access_log, own_code

log = logging.getLogger("testbed")
T = TypeVar("T")

Choose = Callable[[EvalSetting, Sequence[int]], Sequence[int]]


class Opener:
    """Models whose weights are known, and settings whose samples are known.

    Args:
        fetch: Whether to download, train or load weights that are missing; a dry run does not.
        choose: Chooses some of the positions that a setting evaluates; default all.
        models: Models that are open already.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: RunOptions,
        fetch: bool = True,
        choose: Choose | None = None,
        models: dict[str, OpenedModel] | None = None,
    ) -> None:
        self.catalog = catalog
        self.options = options
        self.fetch = fetch
        self._choose = choose
        self._models: dict[str, OpenedModel | str] = dict(models or {})
        self._settings: dict[str, OpenedSetting | str] = {}
        self._datasets: dict[int, tuple[str, set[str], Any]] = {}  # id → its digest, files, and the object itself
        self._sources: dict[str, Source | str] = {}
        self._samples: dict[str, DatasetInfo] = {}
        self._remarks: dict[str, tuple[LeftOut, ...]] = {}
        self._remembered = RememberedWeights(catalog.plugins)

    def model(self, name: str) -> OpenedModel | str:
        """A model, or the reason why it cannot be opened."""
        if name not in self._models:
            self._models[name] = attempt(partial(self._open_model, name))
        return self._models[name]

    def setting(self, name: str) -> OpenedSetting | str:
        """A setting, or the reason why it cannot be opened."""
        if name not in self._settings:
            self._settings[name] = attempt(partial(self._open_setting, name))
        return self._settings[name]

    def fitted_on(self, own: OpenedSetting, others: Mapping[str, OutputsOf]) -> dict[str, DatasetInfo]:
        """The samples that a cell is fitted on, by role, with targets in the class list of the cell's own data set.

        Raises:
            DataError: If they cannot be opened, or the class lists differ and cannot be matched by name.
        """
        datasets = {role: setting.dataset for role, setting in self._opened(others).items()}
        return in_classes_of(own.dataset, datasets)

    def left_out(self, own: OpenedSetting, others: Mapping[str, OutputsOf]) -> LeftOuts:
        """Returns what the data sets of a cell leave out; arguments as in `fitted_on`."""
        return left_out_of(own, self._opened(others).values())

    def _opened(self, others: Mapping[str, OutputsOf]) -> dict[str, OpenedSetting]:
        found = {}
        for role, outputs_of in others.items():
            opened = self.setting(outputs_of.setting)
            if isinstance(opened, str):
                raise DataError(opened)
            found[role] = opened
        return found

    def _open_model(self, name: str) -> OpenedModel:
        definition = self.catalog.get_model(name)
        files = _origin(self.catalog.models, name)
        fields = definition.spec()
        if self.options.random_weights:
            fields = {**fields, **definition.random_spec()}
        description = describe_fields(fields, files)
        with access_log.watch(access_log.model(name)):
            load = partial(definition.weights, self.options.random_seed, self.fetch)
            loaded = self.options.random_seed is None and definition.identified_by_loading
            if parts := self._parts(definition):
                weights = _made_of(list(parts.values()))
            else:
                weights = self._remembered.of(definition, description, files, load) if loaded else load()
        identity = weights_identity(description, weights.id) if weights is not None else None
        files = files.union(*(part.files for part in parts.values()))
        return OpenedModel(definition, weights, description, identity, frozenset(files), parts)

    def _parts(self, definition: ModelDefinition) -> dict[str, OpenedModel]:
        """The models that one is made of; raises WeightsError if one of them cannot be opened."""
        found = {}
        for name in definition.made_of:
            opened = self.model(name)
            if isinstance(opened, str):
                raise WeightsError(opened if name in opened else f"{name}: {opened}")
            found[name] = opened
        return found

    def _open_setting(self, name: str) -> OpenedSetting:
        setting = self.catalog.get_eval_setting(name)
        source_key, files = self._describe_dataset(setting)
        if source_key not in self._sources:
            self._sources[source_key] = attempt(setting.dataset.open)
        source = self._sources[source_key]
        if isinstance(source, str):
            raise TestbedError(source)
        positions: Sequence[int] = setting.samples.positions(source, self.options.limit)
        if self._choose is not None:
            positions = self._choose(setting, positions)
        # Within this process: a range need not be written out for each of thousands of settings.
        samples_key = f"{source_key} {positions if isinstance(positions, range) else digest(list(positions))}"
        if samples_key not in self._samples:
            self._samples[samples_key] = source.describe_samples(positions)
        dataset = self._samples[samples_key]
        if setting.full_targets:
            samples = [replace(sample, target=setting.target(sample.id, sample.target)) for sample in dataset.samples]
            dataset = dataset_of(dataset.name, samples, dataset.class_names)
        told = get_task(setting.task).check_samples(setting, dataset.samples)
        if samples_key not in self._remarks:
            seen = source.remarks(positions, dataset) if isinstance(source, ImageSource) else ()
            self._remarks[samples_key] = seen
        opened = OpenedSetting(
            setting, source, source_key, positions, dataset, remarks=(*told, *self._remarks[samples_key])
        )
        if get_task(setting.task).of_images_alone:
            opened = _only_images(opened)
        return replace(opened, files=frozenset(files | _origin(self.catalog.eval_settings, name)))

    def _describe_dataset(self, setting: EvalSetting) -> tuple[str, set[str]]:
        """The digest of a setting's data set, and the files of its definition; settings often share the object."""
        key = id(setting.dataset)
        if key not in self._datasets:
            files: set[str] = set()
            self._datasets[key] = (digest(describe(setting.dataset, files)), files, setting.dataset)
        return self._datasets[key][:2]


def _made_of(parts: Sequence[OpenedModel]) -> Weights | None:
    """Returns the weights that a model is made of; None if some of them are not downloaded yet."""
    if any(part.identity is None for part in parts):
        return None
    size = max(part.weights.size_bytes if part.weights else 0 for part in parts)
    return Weights(f"made-of:{digest([part.identity for part in parts])}", size)


def attempt(open_it: Callable[[], T]) -> T | str:
    """Returns the value of a function, or the reason why it failed."""
    try:
        with catchable():
            return open_it()
    except TestbedError as error:
        return str(error)
    except Exception as error:  # definitions are the user's own code, and may raise anything
        log.debug("planning failed", exc_info=True)
        return reason_of(error)


def _origin(registry: Registry[Any], name: str) -> set[str]:
    """The file in which a name is defined, where it is the user's own."""
    file = registry.origin(name)
    return {file} if file is not None and own_code.is_own("", file) else set()


def _only_images(opened: OpenedSetting) -> OpenedSetting:
    """A setting of image embeddings: its samples are the images alone, without targets, each different one once.

    Unless they are perturbed with random numbers made from their names, images are named by their content: whatever has
    the same images, in whatever language, finds its embeddings here.
    """
    named = bool(opened.setting.perturbation)
    first: dict[tuple[str, str], int] = {}
    for place, sample in enumerate(opened.dataset.samples):
        first.setdefault((sample.id if named else sample.digest, sample.digest), place)
    positions = [opened.positions[place] for place in first.values()]
    samples = [SampleInfo(name, content, None) for name, content in first]
    return replace(opened, positions=positions, dataset=dataset_of(f"images of {opened.dataset.name}", samples))

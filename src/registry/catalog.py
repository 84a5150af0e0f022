"""The catalog: the registries of models and of eval settings, their collections, and loading definitions."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError, DuplicateNameError
from testbed.paths import expanded
from testbed.registry import discovery
from testbed.registry.references import Settings
from testbed.registry.table import Family, Registry, check_name
from testbed.tracing.patches import traced

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

log = logging.getLogger("testbed")

Members = Sequence[str] | Callable[[], Sequence[str]]


class Collections:
    """Named lists of names and patterns, such as ``demo`` or ``imagenet-c``."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._members: dict[str, list[Members]] = {}

    def snapshot(self) -> dict[str, list[Members]]:
        """The current state, for `restore`."""
        return {name: list(members) for name, members in self._members.items()}

    def restore(self, snapshot: dict[str, list[Members]]) -> None:
        """Removes what was added since a snapshot."""
        self._members = snapshot

    def add(self, name: str, members: Members) -> None:
        """Adds members to a collection, creating it if necessary; several files may add to one."""
        check_name(f"collection of {self.noun}s", name, "add_collection")
        self._members.setdefault(name, []).append(members)

    def names(self) -> list[str]:
        """The names of the collections, sorted."""
        return sorted(self._members)

    def members(self, name: str) -> list[str]:
        """The names and patterns in a collection, in the order they were added."""
        names: list[str] = []
        for members in self._members[name]:
            names.extend(members() if callable(members) else members)
        return names

    def __contains__(self, name: object) -> bool:
        return name in self._members


class Catalog:
    """Models, eval settings and collections, discovered on first use.

    Args:
        packages: Packages with definition files; None: testbed's own.
        entry_points: True to load installed plug-ins of the group ``testbed.plugins``.
    """

    def __init__(self, packages: Sequence[str] | None = None, entry_points: bool = True) -> None:
        self.faults: dict[str, str] = {}  # definition files that could not be loaded → why
        self.models: Registry[ModelDefinition] = Registry("model", "testbed list models")
        self.eval_settings = Settings(self.models)
        self.models.faults = self.eval_settings.faults = self.faults
        self.model_collections = Collections("model")
        self.eval_setting_collections = Collections("eval setting")
        self.plugins: list[Path] = []
        self._packages = None if packages is None else tuple(packages)
        self._entry_points = entry_points
        self._entered: list[EntryPoint] = []
        self._state = "empty"
        self._failed: dict[str, int | None] = {}  # definition files that failed → when they were changed

    # Adding -------------------------------------------------------------------------------------------------------

    def add_model(self, model: ModelDefinition, collections: Iterable[str] = ()) -> ModelDefinition:
        """Registers a model under its name, and in the given collections.

        Raises:
            DuplicateNameError: If another definition has this name; the message names both places.
        """
        _expect(model, "capabilities", "add_model", "a Model")
        self.models.add(model.name, model)
        for collection in collections:
            self.model_collections.add(collection, [model.name])
        return model

    def add_eval_setting(self, eval_setting: EvalSetting, collections: Iterable[str] = ()) -> EvalSetting:
        """Registers an eval setting under its name, and in the given collections.

        Raises:
            DefinitionError: If its task does not have one of its task options.
            DuplicateNameError: If another definition has this name; the message names both places.
        """
        _expect(eval_setting, "dataset", "add_eval_setting", "an EvalSetting")
        if eval_setting.task_options and self._state != "own definitions":  # which tests check
            discovery.named(discovery.CHECK)(eval_setting)
        self.eval_settings.add(eval_setting.name, eval_setting)
        for collection in collections:
            self.eval_setting_collections.add(collection, [eval_setting.name])
        return eval_setting

    def add_model_family(self, family: Family[ModelDefinition]) -> None:
        """Registers many models that follow one rule, without building them."""
        self.models.add_family(family)

    def add_eval_setting_family(self, family: Family[EvalSetting]) -> None:
        """Registers many eval settings that follow one rule, without building them."""
        self.eval_settings.add_family(family)

    def add_model_collection(self, name: str, members: Members) -> None:
        """Names a list of models: names, patterns, or a function that returns them."""
        self.model_collections.add(name, members)

    def add_eval_setting_collection(self, name: str, members: Members) -> None:
        """Names a list of eval settings: names, patterns, or a function that returns them."""
        self.eval_setting_collections.add(name, members)

    # Asking -------------------------------------------------------------------------------------------------------

    def get_model(self, name: str) -> ModelDefinition:
        """The model with this name; for an unknown name, the error suggests others."""
        self.load()
        return self.models.get(name)

    def get_eval_setting(self, name: str) -> EvalSetting:
        """The eval setting with this name; for an unknown name, the error suggests others."""
        self.load()
        return self.eval_settings.get(name)

    def model_names(self) -> list[str]:
        """The names of all models, without building them."""
        self.load()
        return self.models.names()

    def eval_setting_names(self) -> list[str]:
        """The names of all eval settings, without building them."""
        self.load()
        return self.eval_settings.names()

    def contains_model(self, name: str) -> bool:
        """Checks whether a model with this name is registered."""
        self.load()
        return name in self.models

    def contains_eval_setting(self, name: str) -> bool:
        """Checks whether an eval setting with this name is registered."""
        self.load()
        return name in self.eval_settings

    def find_model(self, name: str) -> ModelDefinition | None:
        """Returns the model of a stored result; None if there is none, or if it cannot be built here.

        Results are shown nevertheless.
        """
        self.load()
        return self.models.find(name)

    def find_eval_setting(self, name: str) -> EvalSetting | None:
        """Returns the eval setting of a stored result, likewise."""
        self.load()
        return self.eval_settings.find(name)

    def spec(self) -> dict[str, Any]:
        """Returns an empty description: functions that use the registry do not depend on what else is registered."""
        return {}

    # Filling ------------------------------------------------------------------------------------------------------

    @traced
    def load(self, plugins: Iterable[str | Path] = ()) -> Catalog:
        """Loads the definition files and installed plug-ins once, then the given plug-in files that are not loaded yet.

        A definition file in testbed's packages that cannot be loaded defines nothing: it is reported in one line, and
        again when an unknown name is looked up. It is loaded again once it has changed. A name that two
        such files define is refused.

        Raises:
            PluginError: If a plug-in cannot be loaded, with its name and the reason.
            DuplicateNameError: If a plug-in defines a name that is defined already.
        """
        if self._state == "empty":
            self._state = "own definitions"  # definition files may use the registry while they load
            try:
                self._load_rooms()
                self._state = "plug-ins"
                self._load_entry_points()
            except BaseException:
                self._state = "empty"
                raise
            self._state = "loaded"
        elif self._state == "loaded" and self._failed:
            self._load_definitions([path for path, when in self._failed.items() if discovery.changed(path) != when])
        for plugin in plugins:
            path = expanded(plugin).resolve()
            if path not in self.plugins:
                with self._all_or_nothing():
                    discovery.load_plugin(path, self)
                self.plugins.append(path)
        return self

    def _load_rooms(self) -> None:
        for package in discovery.packages() if self._packages is None else self._packages:
            self._load_definitions(discovery.package_modules(package))

    def _load_definitions(self, modules: Iterable[str]) -> None:
        for module in modules:
            self._failed.pop(module, None)
            self.faults.pop(module, None)
            known = self._disputes()
            try:
                with self._all_or_nothing(), self._allowing_disputes():
                    discovery.import_definitions(module)
            except DefinitionError as error:
                self._failed[module] = discovery.changed(module)
                self.faults[module] = str(error)
                _warn(f"{error}; it defines nothing")
            for dispute in self._disputes() - known:
                _warn(f"{dispute}; until then, nothing can use this name")

    def _disputes(self) -> set[str]:
        return {*self.models.disputed.values(), *self.eval_settings.disputed.values()}

    @contextmanager
    def _allowing_disputes(self) -> Iterator[None]:
        """Allows definition files to define a name twice; it is then refused only to those who need it."""
        registries: list[Registry[Any]] = [self.models, self.eval_settings]
        try:
            for registry in registries:
                registry.allows_disputes = True
            yield
        finally:
            for registry in registries:
                registry.allows_disputes = False

    def _load_entry_points(self) -> None:
        for entry_point in discovery.entry_points() if self._entry_points else ():
            if entry_point in self._entered:
                continue  # loaded before another failed
            with self._all_or_nothing():
                discovery.load_entry_point(entry_point, self)
            self._entered.append(entry_point)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undoes registrations on failure, so that a fixed file can be loaded again."""
        parts: list[Any] = [self.models, self.eval_settings, self.model_collections, self.eval_setting_collections]
        snapshots = [part.snapshot() for part in parts]
        try:
            yield
        except BaseException:
            for part, snapshot in zip(parts, snapshots, strict=True):
                part.restore(snapshot)
            raise

    def load_full_registry(self) -> Catalog:
        """Loads everything: ImageNet-testbed's name of `load`."""
        return self.load()


def _warn(message: str) -> None:
    if multiprocessing.parent_process() is None:  # which says it once
        log.warning("%s", message)


def _expect(item: object, attribute: str, method: str, what: str) -> None:
    if not hasattr(item, attribute) or not hasattr(item, "name"):
        raise DefinitionError(f"registry.{method} takes {what}, not {type(item).__name__}")


__all__ = ["Catalog", "Collections", "DuplicateNameError"]

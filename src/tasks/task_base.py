"""Tasks: what a model must be able to do, what is computed for a cell, and how that is scored."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from testbed.errors import DefinitionError, UnsupportedError

if TYPE_CHECKING:
    from testbed.data.left_out import LeftOut
    from testbed.entities import Metric, SampleInfo, Score
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.nodes import Built
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


T = TypeVar("T")

_NO_TASKS = ("task_base",)  # modules of `testbed.tasks` that are not tasks
_added: dict[str, Task] = {}
_made: WeakKeyDictionary[EvalSetting, dict[type[Any], Any]] = WeakKeyDictionary()  # options of settings
_WORDS: dict[Any, str] = {
    NoneType: "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Mapping: "a dictionary",
    Callable: "a function",
}


@dataclass(frozen=True)
class NoOptions:
    """The options of a task that has none."""


class Task(ABC):
    """One kind of evaluation, such as classification.

    Attributes:
        name: What a setting's ``task`` names: a module of `testbed.tasks`, or a task that was added with `add_task`.
        options: A dataclass of what its settings may say in ``task_options``.
        scorer: What computes the metrics, with its version, such as ``"retrieval@1"``; raised when numbers change.
        leaves_out_unreadable: Whether samples that could not be read are not scored, rather than wrong.
        of_images_alone: Whether its values depend on the images alone: equal images share one, whatever their targets.
    """

    name: ClassVar[str]
    scorer: ClassVar[str]
    options: ClassVar[type[Any]] = NoOptions
    leaves_out_unreadable: ClassVar[bool] = False
    of_images_alone: ClassVar[bool] = False

    @abstractmethod
    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """The way the model does this task, by its capabilities.

        Raises:
            UnsupportedError: If it cannot; names what is needed and what the model has.
        """

    @abstractmethod
    def build(self, graph: Graph) -> Built:
        """Builds what is computed and stored for a cell: its outputs, and what they are scored with."""

    @abstractmethod
    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Per-sample scores and metrics, from stored values. Runs no model."""

    def check_samples(self, setting: EvalSetting, samples: Sequence[SampleInfo]) -> tuple[LeftOut, ...]:
        """Checks what a setting's samples say, before any model runs.

        Returns:
            What a reader of the results should know.

        Raises:
            DataError: If they cannot be scored as they are; names the first such sample.
        """
        return ()

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """Describes what determines the metrics besides the stored values: the scorer and its options."""
        return {"scorer": self.scorer}


def add_task(task: Task) -> None:
    """Adds a task, so that settings can name it; for plug-ins.

    Raises:
        DefinitionError: If one of testbed's own tasks has this name.
    """
    if importlib.util.find_spec(f"testbed.tasks.{task.name}") is not None:
        raise DefinitionError(f"testbed has a task {task.name!r} already; choose another name")
    _added[task.name] = task


def get_task(name: str) -> Task:
    """The task with this name: one that was added, else the object ``task`` of the module ``testbed.tasks.<name>``.

    Raises:
        DefinitionError: If there is none.
    """
    if name in _added:
        return _added[name]
    try:
        module = importlib.import_module(f"testbed.tasks.{name}")
        task: Task = module.task
    except (ImportError, AttributeError) as error:
        raise DefinitionError(
            f"there is no task {name!r} in testbed.tasks, and no plug-in added one: {error}"
        ) from error
    return task


def task_with(scorer: str) -> Task | None:
    """The task whose metrics name this scorer, of whatever version; None if none does."""
    import testbed.tasks

    own = [module.name for module in pkgutil.iter_modules(testbed.tasks.__path__) if not module.ispkg]
    tasks = [*_added.values(), *(get_task(name) for name in own if name not in _NO_TASKS)]
    return next((task for task in tasks if task.scorer.partition("@")[0] == scorer.partition("@")[0]), None)


def require(model: ModelDefinition, needed: set[str], setting: EvalSetting) -> None:
    """Checks a model's capabilities; raises UnsupportedError with the name of a missing one."""
    missing = needed - model.capabilities
    if missing:
        raise UnsupportedError(
            f"{setting.name} needs {_listed(needed)}; {model.name} has {_listed(model.capabilities)}"
        )


def check_options(setting: EvalSetting) -> None:
    """Checks what a setting says of its task.

    Raises:
        DefinitionError: If there is no such task, or an option is unknown, missing, or of another type.
    """
    options_of(setting, get_task(setting.task).options)


def options_of(setting: EvalSetting, kind: type[T]) -> T:
    """Returns the task options of a setting, as the task's dataclass.

    Raises:
        DefinitionError: As `check_options`.
    """
    made = _made.setdefault(setting, {})
    if kind not in made:
        try:
            made[kind] = as_options(kind, setting.task_options, f"the task {setting.task}")
        except DefinitionError as error:
            raise DefinitionError(f"{setting.name}: {error}") from None
    return cast(T, made[kind])


def _listed(capabilities: set[str] | frozenset[str]) -> str:
    return " and ".join(sorted(capabilities)) or "no capability"


# Options of tasks ------------------------------------------------------------------------------------------------


def as_options(kind: type[T], given: Mapping[str, Any], what: str) -> T:
    """Makes a dataclass of a dictionary, and of dictionaries in it where fields are dataclasses.

    Args:
        kind: The dataclass.
        given: Field → value.
        what: What has these fields, for messages.

    Raises:
        DefinitionError: If a field is unknown or missing, or its type is wrong; the message names the expected type.
    """
    known = {field.name: field for field in fields(cast(Any, kind))}
    hints = get_type_hints(kind)
    for name in given:
        if name not in known:
            raise DefinitionError(f"{what} has no {name!r}; it has {', '.join(known) or 'none'}")
    for name, each in known.items():
        if name not in given and each.default is MISSING and each.default_factory is MISSING:
            raise DefinitionError(f"{what} needs {name!r}: {_in_words(hints[name])}")
    return kind(**{name: _value(hints[name], value, name) for name, value in given.items()})


def _value(hint: Any, value: Any, name: str) -> Any:
    if is_dataclass(hint) and isinstance(value, Mapping):
        return as_options(cast(Any, hint), value, f"the task option {name!r}")
    if not _fits(hint, value):
        raise DefinitionError(f"the task option {name!r} is {value!r}; expected {_in_words(hint)}")
    return value


def _fits(hint: Any, value: Any) -> bool:
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        return any(_fits(each, value) for each in get_args(hint))
    if kind in (Sequence, tuple):
        return isinstance(value, list | tuple) and all(_fits(get_args(hint)[0], each) for each in value)
    if kind is float:
        kind = int | float
    return kind is Any or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))


def _in_words(hint: Any) -> str:
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        return " or ".join(map(_in_words, get_args(hint)))
    if kind in (Sequence, tuple):
        return f"a list, each {_in_words(get_args(hint)[0])}"
    if is_dataclass(kind):
        return f"a dictionary with {', '.join(field.name for field in fields(kind))}"
    return _WORDS.get(kind, str(kind))

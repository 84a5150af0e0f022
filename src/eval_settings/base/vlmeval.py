"""Benchmarks in VLMEvalKit's form: a class with ``build_prompt(line)`` and ``evaluate(eval_file, **judge_kwargs)``."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from testbed.calls import catchable, reason_of
from testbed.data.picture_files import as_parts, write_pictures
from testbed.data.rows import Picture, Row
from testbed.errors import DataError, DefinitionError, SampleError, TestbedError
from testbed.eval_settings.base.frame_rows import FrameRows
from testbed.eval_settings.base.setting import EvalSetting
from testbed.paths import own_temporary
from testbed.tracing import own_code

# What of a class decides the questions, with all that these use.
_ASKING = ("__init__", "load_data", "prepare_tsv", "post_build", "dump_image", "build_prompt")
_PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# Code that can reach members by names that it makes.
_DYNAMIC = frozenset({"getattr", "vars", "eval", "exec", "globals", "__dict__", "__getattribute__", "methodcaller"})


class VLMEvalBenchmark(EvalSetting):
    """An eval setting made of a benchmark's class in VLMEvalKit's form.

    The prompt is the class's ``build_prompt``. The metrics are what its ``evaluate`` makes of the stored answers: of
    the file ``MODEL_SET.xlsx``, with all columns but the pictures, and ``prediction``.

    Args:
        name: Unique in the registry.
        cls: The class. It is called with the name of the set, and reads the table.
        data_set: The name of the set; default ``name``.
        arguments: Other arguments of the class.
        judge: The argument ``judge_kwargs`` of ``evaluate``; default ``{"model": "exact_matching"}``.
        generation: Fields of `GenerationConfig`.
        **options: See `EvalSetting`.
    """

    def __init__(
        self,
        name: str,
        cls: type,
        *,
        data_set: str = "",
        arguments: Mapping[str, Any] | None = None,
        judge: Mapping[str, Any] | None = None,
        generation: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        lacking = [name for name in ("build_prompt", "evaluate") if not callable(getattr(cls, name, None))]
        if not isinstance(cls, type) or lacking:
            raise DefinitionError(
                f"eval setting {name!r}: a class with build_prompt(line) and evaluate(eval_file, **judge_kwargs) is"
                f" expected; {getattr(cls, '__name__', cls)!s} has no {' and no '.join(lacking)}"
            )
        self.benchmark = Benchmark(data_set or name, cls, arguments or {})
        given: dict[str, Any] = {"judge": judge, "generation": generation}
        super().__init__(
            name,
            self.benchmark,
            options.pop("size", None),
            task="vlmeval_benchmark",
            task_options={key: dict(value) for key, value in given.items() if value is not None},
            **options,
        )


class Benchmark:
    """A benchmark's class with its arguments: a data set, a prompt, and the scoring of answers.

    Args:
        data_set: The name of the set.
        cls: The class.
        arguments: Its other arguments.
    """

    def __init__(self, data_set: str, cls: type, arguments: Mapping[str, Any]) -> None:
        self.data_set = data_set
        self.cls = cls
        self.arguments = dict(arguments)

    def spec(self) -> dict[str, Any]:
        """The class, with all its code."""
        return {"set": self.data_set, "class": self.cls, "arguments": self.arguments}

    @cached_property
    def made(self) -> Any:
        """The object, with its table in ``data``; raises DataError if it cannot be made."""
        try:
            made = self._make()
            if getattr(made, "data", None) is None:
                made.data = self._table(made)
            if not hasattr(made, "dataset_name"):
                made.dataset_name = self.data_set
        except TestbedError:
            raise
        except Exception as error:  # the class is the user's own code, and may raise anything
            raise DataError(f"{self.data_set}: {self.cls.__name__} cannot be made: {reason_of(error)}") from error
        return made

    def open(self) -> FrameRows:
        """The rows of its table."""
        return self._rows

    @property
    def prompt(self) -> ClassPrompt:
        """The prompt for a row."""
        return ClassPrompt(self)

    @property
    def forced(self) -> bool:
        """True if models must take this prompt."""
        return bool(getattr(self.cls, "force_use_dataset_prompt", False))

    @cached_property
    def _rows(self) -> FrameRows:
        made = self.made
        return FrameRows(self.data_set, made.data, str(getattr(made, "img_root", "")))

    def _make(self) -> Any:
        """Creates the object: the set is passed as ``dataset=…``, as by VLMEvalKit, or else by position."""
        parameters = list(inspect.signature(self.cls).parameters.values())
        kinds = {parameter.kind for parameter in parameters}
        places = [
            parameter for parameter in parameters if parameter.kind in _PLACES and parameter.name not in self.arguments
        ]
        if any(parameter.name == "dataset" for parameter in parameters) or (
            not places and inspect.Parameter.VAR_KEYWORD in kinds
        ):
            return self.cls(**{"dataset": self.data_set, **self.arguments})
        told = (self.data_set,) if places or inspect.Parameter.VAR_POSITIONAL in kinds else ()
        return self.cls(*told, **self.arguments)

    def _table(self, made: Any) -> Any:
        if callable(getattr(made, "load_data", None)):
            return made.load_data(self.data_set)
        from testbed.standins.vlmevalkit.dataset import ImageBaseDataset

        return ImageBaseDataset(self.data_set).data

    def turns(self, row: Row) -> list[list[str | Picture]]:
        """Returns the turns that the class's ``build_prompt`` makes of a row.

        Its pictures are files in a folder of their own, which ``img_root`` names meanwhile.

        Raises:
            SampleError: If it does not make a message.
        """
        made, line = self.made, self._rows.line(row)
        root = getattr(made, "img_root", None)
        with own_temporary() as folder:
            if row.pictures and "image" not in line:
                line["image_path"] = write_pictures(row.pictures, Path(folder))
            made.img_root = folder
            try:
                with catchable():
                    message = made.build_prompt(line)
            except TestbedError as error:
                raise SampleError(f"{row.index}: {error}") from error
            except Exception as error:
                raise SampleError(f"{row.index}: {self.cls.__name__}.build_prompt fails: {reason_of(error)}") from error
            finally:
                made.img_root = root
            return [as_parts(message, f"{self.cls.__name__}.build_prompt")]


class ClassPrompt:
    """The prompt of a benchmark's class."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark

    def __call__(self, row: Row) -> list[list[str | Picture]]:
        """The turn of the user for a row."""
        return self.benchmark.turns(row)

    def spec(self) -> dict[str, Any]:
        """Returns the code that makes questions; that of ``evaluate`` does not change them."""
        return {"class": asking(self.benchmark.cls), "arguments": self.benchmark.arguments}


def asking(cls: type) -> Any:
    """Returns what determines a class's questions: its members that `_ASKING` reach, and the library classes behind it.

    It is the class itself where its code may reach any member.
    """
    own = [base for base in cls.__mro__ if own_code.is_own_class(base)]
    if not own:
        return cls
    members_by_name: dict[str, list[Any]] = {}
    waiting = list(_ASKING)
    while waiting:
        name = waiting.pop()
        members = [vars(base)[name] for base in own if name in vars(base)] if name not in members_by_name else []
        if not members:
            continue
        members_by_name[name] = [[_alone(function) for function in _functions(member)] or member for member in members]
        names = {name for member in members for part in _functions(member) for name in _names(part.__code__)}
        if names & _DYNAMIC:
            return cls
        waiting += sorted(names)
    return {
        "members": {name: members_by_name[name] for name in sorted(members_by_name)},
        "bases": [base for base in cls.__mro__ if base not in own and base is not object],
    }


def _functions(member: Any) -> list[types.FunctionType]:
    """The functions that a member of a class consists of."""
    parts = (member.fget, member.fset, member.fdel) if isinstance(member, property) else (member,)
    plain = [part.__func__ if isinstance(part, staticmethod | classmethod) else part for part in parts]
    return [inspect.unwrap(part) for part in plain if isinstance(part, types.FunctionType)]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)


def _alone(function: types.FunctionType) -> types.FunctionType:
    """A function without the class around it, to which ``super()`` refers."""
    names = function.__code__.co_freevars
    cells = zip(names, function.__closure__ or (), strict=True)
    closure = tuple(types.CellType(None) if name == "__class__" else cell for name, cell in cells)
    alone = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, closure
    )
    alone.__kwdefaults__ = function.__kwdefaults__
    return alone

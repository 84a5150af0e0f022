"""Models in VLMEvalKit's form: a class with ``generate_inner(message, dataset=None)``."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.calls import catchable, reason_of
from testbed.data.picture_files import as_message, as_parts, write_pictures
from testbed.data.rows import Picture, Row
from testbed.errors import DefinitionError, RunError, SampleError, UnsupportedError
from testbed.models.base.capability import NETWORK, Generation, GenerationConfig, Message
from testbed.models.base.definition import LoadOptions
from testbed.models.base.generator import Generator, LoadedGenerator
from testbed.paths import own_temporary

# What VLMEvalKit's base classes return in place of an answer.
FAILURES = ("Failed to obtain answer via API", "Chat Mode: Failed with all possible conversation turns")


class VLMEvalModel(Generator):
    """A model in VLMEvalKit's form.

    It is asked one message at a time: by ``generate(message, dataset=…)`` if its class derives from VLMEvalKit's
    ``BaseModel`` or ``BaseAPI``, else by ``generate_inner(message, dataset=…)``; with earlier turns, by
    ``chat(messages, dataset=…)`` or ``chat_inner``. Pictures are files with the bytes of the data set. Its own prompts
    (``use_custom_prompt``, ``build_prompt``) are used. How text is generated is up to the class and its arguments.

    Args:
        name: Unique in the registry.
        cls: The class.
        generation: As for `Generator`.
        weights: As for `ModelDefinition`; default a digest of the modules of torch that the object holds.
        model_type: As for `ModelDefinition`.
        eval_batch_size: For a class that derives from ``BaseAPI``: the number of messages that it is asked at a time,
            in threads.
        **arguments: Arguments of the class.
    """

    def __init__(
        self,
        name: str,
        cls: type,
        *,
        generation: Mapping[str, Any] | None = None,
        weights: Any = None,
        model_type: str | None = None,
        eval_batch_size: int | None = None,
        **arguments: Any,
    ) -> None:
        if not isinstance(cls, type) or not any(callable(getattr(cls, name, None)) for name in _ASKS):
            raise DefinitionError(f"model {name!r}: a class with generate_inner(message, dataset=None) is expected")
        served = _derives(cls, "BaseAPI")
        super().__init__(
            name,
            self._made,
            eval_batch_size or (4 if served else 1),
            generation=generation,
            weights=weights,
            model_type=model_type,
            architecture={"class": cls, "arguments": arguments},
        )
        self.cls = cls
        self.arguments = arguments
        if served:
            self.resource, self.costs_money = NETWORK, True

    def _made(self) -> Any:
        """The object, after the modules of torch that it holds, if any."""
        made = self.cls(**self.arguments)
        modules = [
            attribute
            for attribute in getattr(made, "__dict__", {}).values()
            if callable(getattr(attribute, "state_dict", 0))
        ]
        return (*modules, made) if modules and not callable(getattr(made, "state_dict", None)) else made

    def load(self, options: LoadOptions) -> LoadedVLMEvalModel:
        """The object, ready to be asked."""
        made = self._network(options)
        return LoadedVLMEvalModel(self, made[-1] if isinstance(made, tuple) else made, options)


class LoadedVLMEvalModel(LoadedGenerator):
    """A model in VLMEvalKit's form that has been made."""

    def __init__(self, definition: VLMEvalModel, model: Any, options: LoadOptions) -> None:
        super().__init__(definition, _Adapter(definition.name, model), options)
        self.model = model
        self._pictures: list[str] = []  # the files of the row whose prompt is being built
        if callable(getattr(model, "set_dump_image", None)):
            model.set_dump_image(lambda line: list(self._pictures))

    def prompt_for(self, row: Row, data_set: str) -> Sequence[Sequence[str | Picture]] | None:
        """The model's own prompt for a row; None if it takes the data set's.

        Raises:
            SampleError: If it makes no message of this row.
        """
        use = getattr(self.model, "use_custom_prompt", None)
        if not callable(use) or not use(data_set):
            return None
        with own_temporary() as folder:
            self._pictures = write_pictures(row.pictures, Path(folder))
            try:
                with catchable():
                    made = self.model.build_prompt(line_of(row), dataset=data_set)
            except Exception as error:
                raise SampleError(f"{_whose(self.model)}.build_prompt fails: {reason_of(error)}") from error
            return [as_parts(made, f"{_whose(self.model)}.build_prompt")]


class _Adapter:
    """Asks an object in VLMEvalKit's form."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self.model = model

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation | Exception]:
        """An answer, or why there is none, for each message; one after the other."""
        return [self._answer(message) for message in messages]

    def _answer(self, message: Message) -> Generation | Exception:
        try:
            with catchable(), own_temporary() as folder:
                return self._generation(self._asked(message, Path(folder)))
        except Exception as error:  # the class is the user's own code, and may raise anything
            return error

    def _asked(self, message: Message, folder: Path) -> Any:
        data_set = message.data_set or None
        if not message.history:
            ask = self._method("generate", "generate_inner")
            return ask(as_message(message.parts, folder), dataset=data_set)
        if not callable(getattr(self.model, "chat_inner", None)):
            raise UnsupportedError(
                f"{_whose(self.model)} has no chat_inner(message, dataset), which multi-turn questions need"
            )
        said = [{"role": turn.role, "content": as_message(turn.parts, folder)} for turn in message.turns]
        return self._method("chat", "chat_inner")(said, dataset=data_set)

    def _method(self, outer: str, inner: str) -> Callable[..., Any]:
        """The method of VLMEvalKit's base class if the object has it, else the one that it leads to."""
        names = (outer, inner) if _derives(type(self.model), "BaseModel", "BaseAPI") else (inner, outer)
        chosen: Callable[..., Any] = next(
            method for name in names if callable(method := getattr(self.model, name, None))
        )
        return chosen

    def _generation(self, answer: Any) -> Generation:
        """Converts the result of the class to an answer; raises RunError if it is a failure, or not an answer."""
        extra: dict[str, Any] = {}
        if isinstance(answer, tuple) and len(answer) == 3:  # of a class for an API
            code, answer, told = answer
            if code != 0:
                raise RunError(f"the API failed with the code {code}: {answer!s:.200} {told!s:.200}".strip())
            extra = {"extra_records": told} if isinstance(told, dict) else {}
        elif isinstance(answer, dict) and "prediction" in answer:
            records = answer.get("extra_records")
            extra, answer = {} if records is None else {"extra_records": records}, answer["prediction"]
        if not isinstance(answer, str):
            raise RunError(f"{self.name}: {_whose(self.model)} answers with {_kind(answer)}; a text is expected")
        own = getattr(self.model, "fail_msg", None)
        failures = (*FAILURES, own) if isinstance(own, str) and own else FAILURES
        if answer.startswith(failures):
            raise RunError(answer)
        return Generation(answer, extra=json.loads(json.dumps(extra, default=str)))


_ASKS = ("generate_inner", "generate")
_THEIRS = ("vlmeval", "testbed.standins.vlmevalkit")  # modules with VLMEvalKit's classes, or in their place


def line_of(row: Row) -> Any:
    """A row as VLMEvalKit's classes take it: a Series of pandas with all columns, pictures in base64.

    An ``index`` that is a whole number is an integer; an empty cell is absent.
    """
    import pandas as pd

    pictures = [base64.b64encode(picture.eight_bits().data).decode() for picture in row.pictures]
    image = {"image": pictures[0] if len(pictures) == 1 else pictures} if pictures else {}
    index = int(row.index) if row.index.isdecimal() else row.index
    return pd.Series({"index": index, **row.columns, **image}, dtype=object)


def _derives(cls: type, *names: str) -> bool:
    """Checks whether a class derives from one of VLMEvalKit's, the installed ones or testbed's in their place."""
    return any(base.__name__ in names and base.__module__.startswith(_THEIRS) for base in cls.__mro__)


def _whose(model: Any) -> str:
    return type(model).__name__


def _kind(answer: Any) -> str:
    return "None" if answer is None else f"{type(answer).__name__} ({answer!r:.60})"

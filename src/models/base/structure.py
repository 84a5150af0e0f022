"""Structure of a loaded network besides its weights: its layers, their settings, their hooks.

A network may be built by code that its definition only names: a plug-in registered with timm, a folder given to
torch.hub, a module imported by its name. The built network shows what that code did.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any

from testbed.identity import source_code
from testbed.identity.code import MARK
from testbed.identity.describe import Describer, digest, digest_bytes, hooks_of, is_network, torch_bookkeeping
from testbed.tracing import own_code

# What transformers keeps in a configuration about where it was loaded from, and by which version of what.
_WHEREABOUTS = frozenset({"_name_or_path", "name_or_path", "_commit_hash", "transformers_version"})

# Makes a name of TorchScript unique within the process, by the order of loading.
_MANGLED = re.compile(r"___torch_mangle_\d+\.")


def structure_of(network: Any) -> Any:
    """A network's structure, as a JSON value.

    For each module within it, in order: its class, its fields, its hooks. A library's classes count by name. What
    cannot be described counts by its type's name. Training mode, the tensors' device and their gradients do not count.

    Args:
        network: A module of torch; of another object with a state dict, its class and fields.
    """
    if not is_network(network):
        describer = _StructureDescriber({})
        return [describer.value(type(network)), describer.fields_of(getattr(network, "__dict__", {}))]
    modules = list(network.named_modules(remove_duplicate=False))
    describer = _StructureDescriber({id(module): name for name, module in reversed(modules)})
    return [[name, *describer.layer(name, module)] for name, module in modules]


def companion_of(thing: Any) -> Any:
    """Describes what a loader returns beside a network, such as a tokenizer, as JSON: library counts by type."""
    describer = _StructureDescriber({})
    own = own_code.is_own_class(type(thing)) or isinstance(thing, types.FunctionType | types.MethodType)
    return describer.attempt(thing, type_name(thing)) if own else type_name(thing)


def type_name(thing: Any) -> str:
    """Returns the name of a thing's type, without its module: a plug-in's module name contains its location."""
    return f"{MARK}{type(thing).__qualname__}"


class _StructureDescriber(Describer):
    """Describes the parts of a network.

    Args:
        names: The modules of the network by their ids; a field that holds one of them counts by the module's name.
    """

    def __init__(self, names: dict[int, str]) -> None:
        super().__init__()
        self._names = names

    def layer(self, name: str, module: Any) -> list[Any]:
        """Returns the class, the fields and the hooks of a module; its name alone if it also stands elsewhere."""
        if self._names[id(module)] != name:
            return [self._names[id(module)]]
        common = torch_bookkeeping() | {"training"}
        # A scripted module keeps a method in a field once somebody has looked at it.
        own = {key: value for key, value in vars(module).items() if type(value).__name__ != "ScriptMethod"}
        fields = {key: value for key, value in own.items() if key not in common}
        fields |= {key: value for key, value in module._buffers.items() if key in module._non_persistent_buffers_set}
        described = [self._class_of(module), self.fields_of(fields), self.fields_of(hooks_of(module))]
        code = getattr(type(module), "code", None)
        if isinstance(code, property) and type(module).__module__.startswith("torch.jit"):
            described.append(self._code_of(module))
            described += [beside] if (beside := self._scripted_beside(module)) else []
        return described

    def _class_of(self, module: Any) -> Any:
        """The class of a module, or the file of it where the class refers to something that cannot be described."""
        kind = type(module)
        described = self.attempt(kind)
        if described is None:
            described = self._text_of(kind)
        return [kind.__qualname__, described]

    def _text_of(self, kind: type) -> Any:
        """The text of the file of a class."""
        path = own_code.class_file(kind)
        if path is None or not path.endswith(".py") or not own_code.is_own_class(kind):
            return self.value(kind)  # which explains why it cannot be described
        return digest_bytes(source_code.file_text(path).encode(errors="surrogatepass"))

    def fields_of(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Describes fields, as far as they can be described."""
        return {name: self.attempt(fields[name], type_name(fields[name])) for name in sorted(fields)}

    def _handler(self, value: Any) -> Callable[[Any], Any]:
        kind = type(value)
        if id(value) in self._names:
            return lambda module: {f"{MARK}module": self._names[id(module)]}
        if is_network(value):  # held in a field, where torch does not see it
            return lambda module: {f"{MARK}network": digest(structure_of(module)), "state": self._tensors(module)}
        if kind.__module__ == "torch" and kind.__name__ == "device":
            return type_name
        if kind.__module__.startswith("transformers.") and callable(getattr(value, "to_dict", None)):
            return lambda config: self.fields({k: v for k, v in config.to_dict().items() if k not in _WHEREABOUTS})
        return super()._handler(value)

    def _code_of(self, module: Any) -> Any:
        """The text of a scripted module, and the constants in it."""
        return self._text_and_constants("forward", module) if module._c._has_method("forward") else None

    def _scripted_beside(self, module: Any) -> dict[str, Any]:
        """Returns the other methods and the values of a scripted module, beside weights, parts and forward method."""
        import torch

        kept = (module._parameters, module._buffers, module._modules)
        known = {"training", *torch_bookkeeping(), *(name for group in kept for name in group.keys())}  # noqa: SIM118
        kind: Any = torch._C.ConcreteModuleType.from_jit_type(module._c._type())
        names = kind.get_attributes().keys() - known
        values = self.fields_of({name: value for name in names if (value := getattr(module, name)) is not None})
        methods = {
            f"{name}()": self._text_and_constants(name, module)
            for name in module._c._method_names()
            if name != "forward"
        }
        return values | methods

    def _text_and_constants(self, name: str, module: Any) -> list[Any]:
        """The text of a method and its constants; its whole graph if it refers to others' texts."""
        method = module._c._get_method(name)
        text, constants = method.code_with_constants
        if "__torch__" in text:  # functions or classes, which the text names in a form that depends on what is loaded
            text = _MANGLED.sub("", method.inlined_graph.str(False))
        return [text, self.attempt(dict(constants))]

    def _tensors(self, network: Any) -> Any:
        return {name: self.attempt(value, type_name(value)) for name, value in network.state_dict().items()}

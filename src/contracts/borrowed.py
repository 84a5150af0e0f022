"""Networks that belong to the user's program: evaluation changes them, and then puts them back as it found them.

A loader may return a network that a training loop goes on with. While it is evaluated, it is in evaluation mode, its
weights ask for no gradients, and it may be on another device. A `Loan` remembers how each of its parts was.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from testbed.contracts.modes import set_mode

_MISSING = object()
_numbers = itertools.count()  # in which order networks were found
_loan: ContextVar[Loan | None] = ContextVar("loan", default=None)


class _NetworkState:
    """A network as it was found: modes, classes of layers, parameters, buffers, some attributes.

    Tensors are kept rather than copied: moving a network to a device makes new ones. With the old ones, whatever else
    refers to them (an optimizer, shared memory, a tied layer) still does.
    """

    def __init__(self, network: Any, attributes: tuple[str, ...]) -> None:
        self.network = network
        self.attributes = {name: vars(network).get(name, _MISSING) for name in attributes}
        self.number = next(_numbers)
        self.modules = [(module, type(module), module.training) for module in network.modules()]
        self.tensors = [
            (module, kind, name, tensor)
            for module in network.modules()
            for kind in ("_parameters", "_buffers")
            for name, tensor in list(getattr(module, kind).items())
        ]
        self.parameters = [
            (
                parameter,
                parameter.requires_grad,
                parameter.data,
                None if parameter.grad is None else parameter.grad.data,
            )
            for parameter in network.parameters()
        ]

    def restore(self) -> None:
        """Puts the network back."""
        training = self.modules[0][2]
        if self.network.training != training:
            # A method of its own may undo what evaluation mode did, such as adapters that were merged into the weights.
            set_mode(self.network, training)
        for module, kind, training in self.modules:
            if type(module) is not kind:
                module.__class__ = kind
            if module.training != training:
                module.training = training
        for module, held, name, tensor in self.tensors:
            there = getattr(module, held)  # in a scripted module it is not a dictionary
            if name not in there or there[name] is not tensor:
                there[name] = tensor
        import torch

        for parameter, wanted, data, grad in self.parameters:
            if _moved(parameter.data, data):
                parameter.data = data
            if grad is not None and parameter.grad is not None and _moved(parameter.grad.data, grad):
                parameter.grad.data = grad
            if parameter.requires_grad != wanted:
                with torch.inference_mode(parameter.is_inference()):  # as torch asks
                    parameter.requires_grad_(wanted)
        for name, value in self.attributes.items():
            if value is not _MISSING:
                setattr(self.network, name, value)
            elif name in vars(self.network):
                delattr(self.network, name)


class Loan:
    """The networks of a model while it is loaded.

    Two models may be made of the same network: what the first one took is given back with the last one.
    """

    _open: list[Loan] = []  # noqa: RUF012 -- all those of this process

    def __init__(self) -> None:
        self._found: list[_NetworkState] = []
        Loan._open.append(self)

    @contextlib.contextmanager
    def taking(self) -> Iterator[None]:
        """Networks that are made ready within the block belong to this loan."""
        token = _loan.set(self)
        try:
            yield
        finally:
            _loan.reset(token)

    def end(self) -> None:
        """Puts everything back, unless another loan still uses some of it; that one then does so."""
        if self not in Loan._open:
            return
        Loan._open.remove(self)
        mine = self._modules()
        heir = next((loan for loan in Loan._open if mine & loan._modules()), None)
        if heir is not None:
            heir._found = sorted([*self._found, *heir._found], key=lambda found: found.number)
        else:
            for found in reversed(self._found):
                found.restore()
        self._found = []

    def _modules(self) -> set[int]:
        return {id(module) for state in self._found for module, _, _ in state.modules}


def _moved(now: Any, before: Any) -> bool:
    """Checks whether a tensor lies on another device, or in another order in memory."""
    return bool(now.device != before.device or now.stride() != before.stride())


def remember(network: Any, *attributes: str) -> None:
    """Remembers a network before it is changed. Without a loan, as in a worker's own process, nothing is kept.

    Args:
        network: A module of torch.
        *attributes: Names of attributes of it that will be set.
    """
    loan = _loan.get()
    if loan is not None:
        loan._found.append(_NetworkState(network, attributes))

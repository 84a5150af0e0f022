"""Training and evaluation mode of networks, including those that have none: exported programs."""

from __future__ import annotations

from typing import Any

from testbed.errors import WeightsError


def set_mode(network: Any, training: bool) -> None:
    """Puts a network into training or evaluation mode.

    A program of torch.export keeps the mode in which it was exported and refuses to change it; the rest of a network
    that contains one changes.
    """
    try:
        network.train(training)
    except NotImplementedError:
        for child in network.children():
            set_mode(child, training)


def refuse_training_programs(network: Any) -> None:
    """Checks that exported programs were exported in evaluation mode: dropout in them stays on otherwise.

    Raises:
        WeightsError: If one was exported in training mode.
    """
    from torch import fx, jit

    for module in network.modules():
        # A traced part without a forward of its own, such as one of which only the weights are used, has no graph.
        graph = None if isinstance(module, jit.ScriptModule) else getattr(module, "graph", None)
        for node in graph.nodes if isinstance(graph, fx.Graph) else ():
            if _trains(node):
                raise WeightsError(
                    f"the exported program computes {node.target} in training mode, so its outputs are not those of the"
                    " trained network; call network.eval() before torch.export.export"
                )


def _trains(node: Any) -> bool:
    """Checks whether a step of a graph computes something else in training, and is in training mode."""
    schema = getattr(getattr(node, "target", None), "_schema", None)
    if getattr(node, "op", "") != "call_function" or schema is None:
        return False
    given = dict(zip((argument.name for argument in schema.arguments), node.args, strict=False)) | dict(node.kwargs)
    return given.get("train") is True or given.get("training") is True

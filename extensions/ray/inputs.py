"""Checks that the nodes of a Ray cluster have the weights and data of a run: results must not depend on the node."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

from testbed.calls import first_line
from testbed.data.content import MISSING
from testbed.errors import RunError
from testbed.extensions.ray.actor import pack
from testbed.extensions.ray.cluster import Node, environment
from testbed.graph.options import RunOptions
from testbed.graph.passes import Job
from testbed.inputs import using
from testbed.registry.catalog import Catalog
from testbed.registry.plugin_pickle import PluginPickle

SHOWN = 3


def require_inputs(ray: Any, nodes: Sequence[Node], job: Job, catalog: Catalog) -> None:
    """Compares the weights of the job's models, and its first and last samples, on each node with this machine's.

    Raises:
        RunError: If some are missing or different on a node; the message names the node and the files.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    packed = ray.put(pack(PluginPickle(job, job.options.plugins)))
    here = found_inputs(job, catalog)
    look = ray.remote(num_cpus=0, max_retries=2)(differing_inputs)
    asked = {
        node.address: look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)).remote(
            packed, here, environment()
        )
        for node in nodes
    }
    for address, answer in asked.items():
        try:
            lacking = ray.get(answer)
        except (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError):
            continue
        if lacking:
            more = f"; and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            raise RunError(
                f"the Ray node {address} has other files than this machine: {'; '.join(lacking[:SHOWN])}{more}. Keep"
                " weights and data on a file system that all nodes see, or copy them to the same paths"
            )


def differing_inputs(packed: bytes, expected: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """Runs on a node: describes its differences from the expected inputs."""
    from testbed.registry import registry

    os.environ.update(variables)
    job = ForkingPickler.loads(packed)
    found = found_inputs(job, registry)
    return [
        found[name] if found[name].startswith(name) else f"{name} differs"
        for name, content in expected.items()
        if found.get(name, content) != content
    ]


def found_inputs(job: Job, catalog: Catalog) -> dict[str, str]:
    """Digests of the weights and of some samples, by name; or a line with the name and the problem.

    Weights that are identified by a word, or created on demand, are not files.
    """
    found = {}
    with using(job.inputs):
        for name in dict.fromkeys(model for one_pass in job.passes for model in one_pass.models):
            if (content := _weights(name, job.options, catalog)) is not None:
                found[f"the model {name}"] = content
        for one_pass in job.passes:
            if one_pass.source is not None and len(one_pass.positions):
                for position in {one_pass.positions[0], one_pass.positions[-1]}:
                    what = f"the sample {one_pass.source.ids[position]} of {one_pass.settings[0]}"
                    content = one_pass.source.digests([position])[0]
                    found[what] = f"{what} cannot be read" if content == MISSING else content
    return found


def _weights(name: str, options: RunOptions, catalog: Catalog) -> str | None:
    definition = catalog.get_model(name)
    if options.random_seed is not None or isinstance(definition.weights_source, str | None):
        return None
    try:
        weights = definition.weights(None, fetch=False)
    except Exception as error:  # definitions are the user's own code
        return f"the model {name}: {first_line(error)}"
    return weights.id if weights is not None else None

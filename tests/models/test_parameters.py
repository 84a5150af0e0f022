"""The number of parameters of what was loaded."""

from types import SimpleNamespace

import torch
from tables import cases

from testbed.models.base.parameters import parameters_of

LINEAR = torch.nn.Linear(3, 2)  # 6 weights, 2 biases
LOOP = SimpleNamespace()
LOOP.model = LOOP


@cases(
    ("loaded", "count"),
    [
        (LINEAR, 8),
        ((LINEAR, torch.nn.Linear(2, 2)), 14),
        ((LINEAR, "a tokenizer"), 8),
        (SimpleNamespace(network=LINEAR), 8),
        (SimpleNamespace(generator=SimpleNamespace(model=LINEAR)), 8),
        (SimpleNamespace(generator=SimpleNamespace(url="http://localhost")), None),
        (SimpleNamespace(), None),
        (object(), None),
        (LOOP, None),
        (torch.nn.Identity(), None),
    ],
)
def test_networks_are_counted_wherever_a_loaded_model_holds_them(loaded, count):
    assert parameters_of(loaded) == count
